//! Create.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::StatusCode;
use kubewright_codec::body::Decoded;
use kubewright_kinds::encode;
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_schema::patch::Configuration;
use kubewright_schema::{Candidate, Extent};
use kubewright_store::{Change, Expect};
use serde_json::Value;

use super::allocate::addresses_of;
use super::reset::Epoch;
use super::{Call, Registry, WriteOptions, Written, body, custom, definitions, key};
use crate::admission::{self, Review};

/// How often a generated name is tried (`k8s.io/apiserver/pkg/registry/generic/registry`, `maxNameGenerationCreateAttempts`).
const NAME_ATTEMPTS: usize = 8;
/// The letters that are appended to `generateName`.
const SUFFIX_LENGTH: usize = 5;
/// The most of `generateName` that is kept, so that the whole is a DNS label.
const GENERATED_BASE: usize = 63 - SUFFIX_LENGTH;

impl Registry {
    /// Creates an object from a request's body. `call.name` is empty, or (create on update) the name that it must have.
    ///
    /// # Errors
    /// What the body, the rules of the kind, admission, or an object of that name have against it.
    pub async fn create(
        &self,
        call: Call<'_>,
        decoded: Decoded,
        options: WriteOptions,
    ) -> Result<Written, ApiError> {
        let mut warnings = Vec::new();
        let outcome = self.create_of_body(call, decoded, &options, &mut warnings).await;
        Written::new(StatusCode::CREATED, outcome, warnings)
    }

    async fn create_of_body(
        &self,
        call: Call<'_>,
        decoded: Decoded,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Bytes, ApiError> {
        let epoch = self.begin_creation(call)?;
        let mut draft = body::object_of(call.kind, decoded, options.validation, warnings)?;
        place(call, &mut draft)?;
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            object::set_meta(&mut draft, field, None);
        }
        definitions::may_come(call.kind, object::name(&draft))?;
        body::default(call.kind, &mut draft);
        self.own(call, "", options, None, &mut draft);
        self.create_draft(epoch, call, draft, options, warnings).await
    }

    /// Creates what an applied configuration says.
    ///
    /// # Errors
    /// As [`Registry::create`], and what the configuration itself has.
    pub(super) async fn create_by_apply(
        &self,
        call: Call<'_>,
        config: &Configuration,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let uid = object::uid(&config.value);
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(call.kind, call.name, &why));
        }
        self.may_create(call).await?;
        definitions::may_come(call.kind, call.name)?;
        let mut warnings = Vec::new();
        let outcome = self.create_of_config(call, config, options, &mut warnings).await;
        Written::new(StatusCode::CREATED, outcome, warnings)
    }

    async fn create_of_config(
        &self,
        call: Call<'_>,
        config: &Configuration,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Bytes, ApiError> {
        let epoch = self.begin_creation(call)?;
        let mut draft = self.applied(call, "", config, options, None, warnings)?;
        check_name(call, object::name(&config.value))?;
        object::set_meta(&mut draft, "resourceVersion", None);
        place(call, &mut draft)?;
        body::default(call.kind, &mut draft);
        self.create_draft(epoch, call, draft, options, warnings).await
    }

    /// The cluster that an object is to be created in; the kind has to be one of it.
    fn begin_creation(&self, call: Call<'_>) -> Result<Epoch, ApiError> {
        let epoch = self.epochs.now();
        let kind = call.kind;
        if kind.custom.is_some() && self.kinds().get(&kind.group, &kind.version, &kind.plural).is_none() {
            return Err(ApiError::no_such_path());
        }
        Ok(epoch)
    }

    /// Creates an object that is typed, defaulted and owned.
    async fn create_draft(
        &self,
        epoch: Epoch,
        call: Call<'_>,
        mut draft: Value,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Bytes, ApiError> {
        admission::mutate(&Review::of_new(self, call, "", options), &mut draft, warnings).await?;
        // A webhook may have moved it.
        place(call, &mut draft)?;
        self.begin(call, &mut draft);
        let generates =
            object::name(&draft).is_empty() && !object::meta_text(&draft, "generateName").is_empty();
        let mut attempts = if generates { NAME_ATTEMPTS } else { 1 };
        loop {
            attempts -= 1;
            let mut object = if attempts == 0 { std::mem::take(&mut draft) } else { draft.clone() };
            if generates {
                self.generate_name(&mut object);
            }
            match self.create_object(epoch, call, object, options, warnings).await {
                Err(error) if attempts > 0 && error.reason == "AlreadyExists" => {}
                outcome => return outcome,
            }
        }
    }

    /// The parts of metadata that only the server sets.
    fn begin(&self, call: Call<'_>, draft: &mut Value) {
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            object::set_meta(draft, field, None);
        }
        let now = object::time(self.world.clock.now());
        object::set_meta(draft, "creationTimestamp", Some(now));
        object::set_meta(draft, "uid", Some(self.world.dice.uid().into()));
        if call.kind.rules.generation.counts() {
            object::set_meta(draft, "generation", Some(1.into()));
        }
    }

    fn generate_name(&self, object: &mut Value) {
        let mut base = object::meta_text(object, "generateName").to_owned();
        if base.len() > GENERATED_BASE {
            let cut = (0..=GENERATED_BASE).rev().find(|at| base.is_char_boundary(*at)).unwrap_or(0);
            base.truncate(cut);
        }
        let name = base + &self.world.dice.suffix(SUFFIX_LENGTH);
        object::set_meta(object, "name", Some(name.into()));
    }

    async fn create_object(
        &self,
        epoch: Epoch,
        call: Call<'_>,
        mut object: Value,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Bytes, ApiError> {
        let kind = call.kind;
        if kind.has_status() && !kind.behaviour.born_with_status {
            object::as_map(&mut object).remove("status");
        }
        (kind.rules.prepare_create)(&mut object);
        (kind.rules.author)(&mut object, call.user);
        let _allocation = self.allocate(kind, &mut object, None).await?;
        let name = object::name(&object).to_owned();
        let errors = self.errors_of_new(call, &object, warnings);
        if !errors.is_empty() {
            return Err(ApiError::invalid(kind, &name, &errors));
        }
        warnings.extend(kind.rules.warnings(&object, None));
        warnings.extend(self.warnings_of_definition(kind, &object, None));
        admission::validate(&Review::of_new(self, call, "", options), &object, warnings).await?;
        let key = key(call.namespace, &name);
        if options.dry_run {
            let there = self.snapshot().get(&kind.collection, &key).is_some();
            return if there {
                Err(ApiError::already_exists(kind, &name))
            } else {
                self.as_read_back(kind, object).await
            };
        }
        if !object::resource_version(&object).is_empty() {
            return Err(ApiError::unexplained("resourceVersion should not be set on objects to be created"));
        }
        let addresses = addresses_of(kind, &object);
        let change = Change::Put(encode::draft(kind, self.in_storage_version(kind, object).await?));
        let entry = self
            .commit(epoch, kind, &key, Expect::Absent, change)
            .await?
            .ok_or_else(|| ApiError::already_exists(kind, &name))?;
        self.follow_up(kind, &name).await;
        self.addresses_changed(call.namespace, &name, &BTreeSet::new(), &addresses).await;
        Ok(encode::object(kind, &*self.viewed(kind, entry).await?))
    }

    fn errors_of_new(&self, call: Call<'_>, object: &Value, warnings: &mut Vec<String>) -> Vec<FieldError> {
        let kind = call.kind;
        let mut errors = kind.rules.errors_on_create(object, kind.namespaced());
        let candidate = Candidate { object, old: None, part: Extent::Whole };
        warnings.extend(custom::check(kind, candidate, &mut errors));
        errors.extend(self.errors_of_definition(kind, candidate));
        errors
    }
}

/// 400: the object says that it belongs elsewhere.
fn elsewhere() -> ApiError {
    ApiError::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    )
}

/// The object belongs where the URL says: its namespace and name are the URL's, or are not given. (What namespace an
/// object of the cluster names does not matter.)
pub(super) fn place(call: Call<'_>, draft: &mut Value) -> Result<(), ApiError> {
    let given = object::namespace(draft);
    if call.kind.namespaced() {
        if !given.is_empty() && given != call.namespace {
            return Err(elsewhere());
        }
        object::set_meta(draft, "namespace", Some(call.namespace.into()));
    } else {
        object::set_meta(draft, "namespace", None);
    }
    let given = object::name(draft);
    if !call.name.is_empty() {
        if !given.is_empty() && given != call.name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({})",
                call.name
            )));
        }
        object::set_meta(draft, "name", Some(call.name.into()));
    }
    Ok(())
}

/// 400 for a replacement that does not say which object it is about, or another one
/// (`k8s.io/apiserver/pkg/endpoints/handlers/rest.go`, `checkName`).
pub(super) fn check_name(call: Call<'_>, given: &str) -> Result<(), ApiError> {
    match given {
        "" => Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name
        ))),
        same if same == call.name => Ok(()),
        other => Err(ApiError::bad_request(format!(
            "the name of the object ({other}) does not match the name on the URL ({})",
            call.name
        ))),
    }
}
