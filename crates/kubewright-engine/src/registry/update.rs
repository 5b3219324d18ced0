//! Update and patch: both are "read the current object, make the next one of it, compare and swap".

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use kubewright_codec::body::Decoded;
use kubewright_identity::authz::{Attributes, forbidden};
use kubewright_kinds::rules::Generation;
use kubewright_kinds::{Kind, Role, Summary, encode};
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_schema::patch::{Change, Configuration, Patch};
use kubewright_schema::{Candidate, Extent, fields};
use kubewright_store::{self as store, Entry, Expect, Revision};
use serde_json::Value;

use super::allocate::addresses_of;
use super::member::Member;
use super::reset::Epoch;
use super::{Call, Registry, WriteOptions, Written, body, create, custom};
use crate::admission::{self, Operation, Options, Review};

/// The part of an object that a write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All but status (where status is a subresource).
    Main,
    /// `status` alone.
    Status,
    /// One member alone: what the smaller subresources change.
    Member(Member),
    /// Whatever the server itself has changed, such as the node of a pod that is bound.
    Trusted,
}

impl Part {
    /// The subresource by which it is written; empty for the object itself.
    #[must_use]
    pub fn subresource(self) -> &'static str {
        match self {
            Self::Main | Self::Trusted => "",
            Self::Status => "status",
            Self::Member(Member::Approval) => "approval",
            Self::Member(Member::Finalizers) => "finalize",
            Self::Member(Member::EphemeralContainers) => "ephemeralcontainers",
            Self::Member(Member::Containers) => "resize",
        }
    }
}

/// How the next object comes from the current one.
enum Step<'a> {
    /// The client sent it whole.
    Replace(Value),
    /// The client sent a change.
    Change(&'a Change),
    /// The client sent what its manager wants the object to have.
    Apply(&'a Configuration),
    /// The server changes one thing.
    Edit(&'a (dyn Fn(&mut Value) -> Result<(), ApiError> + Send + Sync)),
    /// The client changes something that is shown in a form of its own.
    View(&'a dyn View),
}

/// A subresource that shows a part of its object in a form of its own, as a scale does: admission sees that form.
pub(super) trait View: Send + Sync {
    /// Its name in URLs.
    fn subresource(&self) -> &'static str;

    /// What is shown of an object.
    fn of(&self, object: &Value) -> Value;

    /// What the write makes of what is shown.
    fn next(&self, current: &Value) -> Result<Value, ApiError>;

    /// Puts what is to be shown into the object.
    fn put(&self, shown: &Value, object: &mut Value) -> Result<(), ApiError>;
}

impl<'a> Step<'a> {
    fn view(&self) -> Option<&'a dyn View> {
        match self {
            Self::View(view) => Some(*view),
            _ => None,
        }
    }
}

impl Registry {
    /// Replaces an object (or a part) by what a request's body says. Kinds that allow it are created when they are missing.
    ///
    /// # Errors
    /// 404, 409 when the body names another resource version or uid than the current, and all that [`Registry::create`] has.
    pub async fn update(
        &self,
        call: Call<'_>,
        part: Part,
        decoded: Decoded,
        options: WriteOptions,
    ) -> Result<Written, ApiError> {
        if call.kind.behaviour.create_on_update
            && part == Part::Main
            && self.snapshot().get(&call.kind.collection, &call.key()).is_none()
        {
            create::check_name(call, object::name(&decoded.value))?;
            return self.create_by_update(call, decoded, options).await;
        }
        let mut warnings = Vec::new();
        let replacement =
            body::object_of(call.kind, decoded, options.validation, &mut warnings).and_then(|mut object| {
                create::check_name(call, object::name(&object))?;
                create::place(call, &mut object)?;
                Ok(object)
            });
        match replacement {
            Ok(object) => self.swap(call, part, &Step::Replace(object), &options, warnings).await,
            Err(error) => Err(error.with_warnings(warnings)),
        }
    }

    async fn create_by_update(
        &self,
        call: Call<'_>,
        mut decoded: Decoded,
        options: WriteOptions,
    ) -> Result<Written, ApiError> {
        let uid = object::uid(&decoded.value).to_owned();
        if !uid.is_empty() {
            return Err(precondition_failed(call, "UID", &uid, ""));
        }
        self.may_create(call).await?;
        object::set_meta(&mut decoded.value, "resourceVersion", None);
        self.create(call, decoded, options).await
    }

    /// Who creates by an update needs the right to create, too
    /// (`k8s.io/apiserver/pkg/endpoints/handlers/update.go`, `withAuthorization`).
    pub(super) async fn may_create(&self, call: Call<'_>) -> Result<(), ApiError> {
        let what = Attributes {
            verb: "create",
            group: &call.kind.group,
            version: &call.kind.version,
            resource: &call.kind.plural,
            namespace: call.namespace,
            name: call.name,
            ..Attributes::default()
        };
        let snapshot = self.snapshot();
        let decision = self.authorizer.resolve(&snapshot, |rights| rights.authorize(call.user, &what)).await;
        if decision.allowed() { Ok(()) } else { Err(forbidden(call.user, &what, &decision.reason)) }
    }

    /// Changes an object (or a part) by a patch.
    ///
    /// # Errors
    /// As [`Registry::update`], and what the patch itself has.
    pub async fn patch(
        &self,
        call: Call<'_>,
        part: Part,
        patch: Patch,
        options: WriteOptions,
    ) -> Result<Written, ApiError> {
        match &patch {
            Patch::Change(change) => self.swap(call, part, &Step::Change(change), &options, Vec::new()).await,
            Patch::Apply(config) => {
                let missing = self.snapshot().get(&call.kind.collection, &call.key()).is_none();
                if part == Part::Main && missing {
                    return self.create_by_apply(call, config, &options).await;
                }
                self.swap(call, part, &Step::Apply(config), &options, Vec::new()).await
            }
        }
    }

    /// Changes the current object by a function of the server's own.
    ///
    /// # Errors
    /// 404, and what the function or the rules of the kind have against it.
    pub async fn edit(
        &self,
        call: Call<'_>,
        part: Part,
        dry_run: bool,
        edit: &(dyn Fn(&mut Value) -> Result<(), ApiError> + Send + Sync),
    ) -> Result<Written, ApiError> {
        let options = WriteOptions { dry_run, ..WriteOptions::default() };
        self.swap(call, part, &Step::Edit(edit), &options, Vec::new()).await
    }

    /// Changes the part of the current object that a view shows.
    ///
    /// # Errors
    /// 404, and what the view, admission or the rules of the kind have against it.
    pub(super) async fn write_view(
        &self,
        call: Call<'_>,
        view: &dyn View,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        self.swap(call, Part::Main, &Step::View(view), options, Vec::new()).await
    }

    /// Changes the current object by a step, once more whenever somebody was faster. `told`: the warnings so far.
    async fn swap(
        &self,
        call: Call<'_>,
        part: Part,
        step: &Step<'_>,
        options: &WriteOptions,
        told: Vec<String>,
    ) -> Result<Written, ApiError> {
        loop {
            let mut warnings = told.clone();
            match self.try_swap(call, part, step, options, &mut warnings).await.transpose() {
                None => {}
                Some(outcome) => return Written::new(StatusCode::OK, outcome, warnings),
            }
        }
    }

    /// `None` when somebody was faster.
    async fn try_swap(
        &self,
        call: Call<'_>,
        part: Part,
        step: &Step<'_>,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Bytes>, ApiError> {
        let epoch = self.epochs.now();
        let stored = self.entry(call)?;
        let entry = self.viewed(call.kind, Arc::clone(&stored)).await?;
        let current = encode::value(call.kind, &entry);
        let shown = step.view().map(|view| view.of(&current));
        let review = Review {
            registry: self,
            call,
            operation: Operation::Update,
            subresource: step.view().map_or(part.subresource(), View::subresource),
            old: Some(shown.as_ref().unwrap_or(&current)),
            dry_run: options.dry_run,
            options: Options::Write(options),
            collection: false,
        };
        let mut next = self.next(&review, part, step, options, &current, warnings).await?;
        if matches!(step, Step::Change(_) | Step::Apply(_)) {
            create::check_name(call, object::name(&next))?;
        }
        let conditional = check_version(call, &current, &next, matches!(step, Step::Replace(_)))?;
        body::default(call.kind, &mut next);
        if matches!(step, Step::Replace(_) | Step::Change(_)) {
            self.own(call, part.subresource(), options, Some(&current), &mut next);
        }
        // What the server changes by itself was admitted as what asked for it.
        let asks = part != Part::Trusted;
        if asks && shown.is_none() {
            admission::mutate(&review, &mut next, warnings).await?;
        }
        prepare(call.kind, part, &mut next, &current);
        let _allocation = self.allocate(call.kind, &mut next, Some(&current)).await?;
        self.check(call, part, &next, &current, warnings)?;
        if part == Part::Main {
            warnings.extend(call.kind.rules.warnings(&next, Some(&current)));
        }
        warnings.extend(self.warnings_of_definition(call.kind, &next, Some(&current)));
        raise_generation(call.kind, part, &mut next, &current);
        fields::keep_times(&mut next, &current);
        if asks {
            let shown = step.view().map(|view| view.of(&next));
            admission::validate(&review, shown.as_ref().unwrap_or(&next), warnings).await?;
        }
        let same = next == current;
        if same && !encode::is_outdated(call.kind, &stored) {
            return Ok(Some(encode::object(call.kind, &entry)));
        }
        if options.dry_run {
            return self.as_read_back(call.kind, next).await.map(Some);
        }
        let before = addresses_of(call.kind, &current);
        let goes = is_finished(call.kind, &next);
        let now = if goes { BTreeSet::new() } else { addresses_of(call.kind, &next) };
        let draft = encode::draft(call.kind, self.in_storage_version(call.kind, next).await?);
        // What would be stored in other words is written although nothing changes: so objects are moved to the storage version,
        // and keep the defaults of today.
        if same && !goes && encode::is_stored_as(&draft, &stored) {
            return Ok(Some(encode::object(call.kind, &entry)));
        }
        let change = if goes { store::Change::Delete(draft) } else { store::Change::Put(draft) };
        match self.commit_next(epoch, call, &entry, change).await? {
            Some(entry) => {
                self.addresses_changed(call.namespace, call.name, &before, &now).await;
                let entry = self.viewed(call.kind, entry).await?;
                Ok(Some(encode::object(call.kind, &entry)))
            }
            None if conditional => Err(modified(call)),
            None => Ok(None),
        }
    }

    /// What a step makes of the current object: typed, not yet defaulted. Of a view, admission has seen
    /// what is shown.
    async fn next(
        &self,
        review: &Review<'_>,
        part: Part,
        step: &Step<'_>,
        options: &WriteOptions,
        current: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<Value, ApiError> {
        let call = review.call;
        Ok(match step {
            Step::Replace(object) => object.clone(),
            Step::Edit(edit) => {
                let mut next = current.clone();
                edit(&mut next)?;
                next
            }
            Step::View(view) => {
                let mut shown = view.next(current)?;
                admission::mutate(review, &mut shown, warnings).await?;
                let mut next = current.clone();
                view.put(&shown, &mut next)?;
                next
            }
            Step::Change(change) => body::patched(call.kind, change, current, options.validation, warnings)?,
            Step::Apply(config) => {
                self.applied(call, part.subresource(), config, options, Some(current), warnings)?
            }
        })
    }

    /// Commits what an object becomes; an object that was only waiting for its last finalizer goes instead.
    /// `None` when somebody was faster.
    async fn commit_next(
        &self,
        epoch: Epoch,
        call: Call<'_>,
        entry: &Entry<Summary>,
        change: store::Change<Summary>,
    ) -> Result<Option<Arc<Entry<Summary>>>, ApiError> {
        let kind = call.kind;
        let goes = matches!(change, store::Change::Delete(_));
        let expect = Expect::At(entry.revision);
        let Some(entry) = self.commit(epoch, kind, &call.key(), expect, change).await? else {
            return Ok(None);
        };
        if goes {
            self.object_gone(kind).await;
        }
        self.follow_up(kind, call.name).await;
        Ok(Some(entry))
    }

    fn check(
        &self,
        call: Call<'_>,
        part: Part,
        next: &Value,
        current: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let kind = call.kind;
        let mut errors: Vec<FieldError> = match part {
            Part::Main => kind.rules.errors_on_update(next, current, kind.namespaced()),
            Part::Status => kind.rules.errors_on_status(next, current, kind.namespaced()),
            Part::Member(member) => member.errors(next, current),
            Part::Trusted => return Ok(()),
        };
        let extent = if part == Part::Status { Extent::Status } else { Extent::Whole };
        let candidate = Candidate { object: next, old: Some(current), part: extent };
        warnings.extend(custom::check(kind, candidate, &mut errors));
        errors.extend(self.errors_of_definition(kind, candidate));
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(kind, call.name, &errors))
    }
}

/// What the server owns is carried over; what the part does not hold stays as it is.
fn prepare(kind: &Kind, part: Part, next: &mut Value, current: &Value) {
    match part {
        Part::Main => {
            carry_metadata(next, current);
            if kind.has_status() {
                object::copy_member(next, current, "status");
            }
            (kind.rules.prepare_update)(next, current);
        }
        Part::Status => {
            let written = std::mem::replace(next, current.clone());
            object::copy_member(next, &written, "status");
            object::copy_meta(next, &written, "managedFields");
            for field in kind.behaviour.metadata_of_status_writes {
                object::copy_meta(next, &written, field);
            }
        }
        Part::Trusted => {}
        Part::Member(member) => member.prepare(next, current),
    }
}

/// The version and uid that a write names must be the current ones. Returns whether it named a version.
fn check_version(call: Call<'_>, current: &Value, next: &Value, replace: bool) -> Result<bool, ApiError> {
    let given = object::resource_version(next);
    let uid = object::uid(next);
    if replace && !uid.is_empty() && uid != object::uid(current) {
        return Err(precondition_failed(call, "UID", uid, object::uid(current)));
    }
    if given.is_empty() || given == "0" {
        if replace && call.kind.behaviour.conditional_update {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            return Err(ApiError::invalid_of(&call.kind.group, &call.kind.plural, call.name, &[error]));
        }
        return Ok(false);
    }
    let Ok(version) = given.parse::<u64>() else {
        return Err(ApiError::unexplained(format!("strconv.ParseUint: parsing {given:?}: invalid syntax")));
    };
    let newest = object::resource_version(current).parse::<u64>().unwrap_or_default();
    if Revision(version) == Revision(newest) { Ok(replace) } else { Err(modified(call)) }
}

/// 409: somebody else has changed the object.
pub(super) fn modified(call: Call<'_>) -> ApiError {
    ApiError::conflict(
        call.kind,
        call.name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )
}

/// 409: a precondition does not hold, in the words of the storage layer (`k8s.io/apiserver/pkg/storage/errors.go`).
pub(super) fn precondition_failed(call: Call<'_>, what: &str, given: &str, current: &str) -> ApiError {
    let path = format!("/registry/{}/{}", call.kind.storage_prefix(), call.key());
    ApiError::conflict(
        call.kind,
        call.name,
        &format!(
            "StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {given}, {what} in object meta: {current}"
        ),
    )
}

/// What only the server sets in metadata. A uid that the client gives stays, to be compared.
fn carry_metadata(next: &mut Value, current: &Value) {
    for field in ["creationTimestamp", "resourceVersion", "generation", "selfLink"] {
        object::copy_meta(next, current, field);
    }
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if next["metadata"].get(field).is_none_or(Value::is_null) {
            object::copy_meta(next, current, field);
        }
    }
}

fn raise_generation(kind: &Kind, part: Part, next: &mut Value, current: &Value) {
    // Where status is not written apart, it is content like any other.
    let raised = |status_counts: bool| {
        kind.rules.generation.raised(next, current)
            || (status_counts
                && kind.rules.generation == Generation::Content
                && next.get("status") != current.get("status"))
    };
    if !matches!(part, Part::Status | Part::Trusted) && raised(!kind.has_status()) {
        object::set_meta(next, "generation", Some((object::generation(current) + 1).into()));
    }
}

/// Whether a deletion has nothing left to wait for.
pub(super) fn is_finished(kind: &Kind, object: &Value) -> bool {
    object::is_deleting(object)
        && object::finalizers(object).next().is_none()
        && object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && !(kind.behaviour.role == Role::Namespace && object::holds_content(object))
}
