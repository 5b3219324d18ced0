//! Create.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::StatusCode;
use kubewright_codec::body::Decoded;
use kubewright_kinds::{Kind, Role, encode};
use kubewright_meta::rules::metadata::NameRule;
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_schema::patch::Configuration;
use kubewright_schema::{Candidate, Encoding, Extent};
use kubewright_store::{Change, Expect};
use serde_json::Value;

use super::follow_up::addresses;
use super::ownership::OwnedWrite;
use super::part::{Part, stamp};
use super::{Written, custom, definitions, device_claims, follow_up, update};
use crate::admission::{self, Review};
use crate::engine::allocate::{self, addresses_of};
use crate::engine::epochs::Epoch;
use crate::engine::{Engine, convert};
use crate::request::place::{check_name, place, place_in_namespace};
use crate::request::{Call, WriteOptions, body, key, type_of_body, version_of};

/// How often a generated name is tried (`k8s.io/apiserver/pkg/registry/generic/registry`, `maxNameGenerationCreateAttempts`).
const NAME_ATTEMPTS: usize = 8;
/// The letters that are appended to `generateName`.
const SUFFIX_LENGTH: usize = 5;
/// The most of `generateName` that is kept, so that the whole is a DNS label.
const GENERATED_BASE: usize = 63 - SUFFIX_LENGTH;

/// Creates an object from a request's body. `call.name` is empty, or (create on update) the name that it must have.
///
/// # Errors
/// What the body, the rules of the kind, admission, or an object of that name have against it.
pub async fn create(
    engine: &Engine,
    call: Call<'_>,
    decoded: Decoded,
    options: WriteOptions,
) -> Result<Written, ApiError> {
    let mut warnings = Vec::new();
    let begun = begin_creation(engine, call)
        .and_then(|_| body::object_of(call.kind, decoded, options.validation, &mut warnings));
    match begun {
        Ok(draft) => create_decoded(engine, call, Part::Main, draft, &options, warnings).await,
        Err(error) => Err(error.with_warnings(warnings)),
    }
}

/// Creates an object that was decoded.
///
/// # Errors
/// As [`create`].
pub(super) async fn create_decoded(
    engine: &Engine,
    call: Call<'_>,
    part: Part,
    draft: Value,
    options: &WriteOptions,
    mut warnings: Vec<String>,
) -> Result<Written, ApiError> {
    let outcome = create_of_body(engine, call, part, draft, options, &mut warnings).await;
    Written::new(StatusCode::CREATED, outcome, warnings)
}

async fn create_of_body(
    engine: &Engine,
    call: Call<'_>,
    part: Part,
    mut draft: Value,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Bytes, ApiError> {
    let epoch = begin_creation(engine, call)?;
    place(call, &mut draft)?;
    if call.name.is_empty() {
        wipe(&mut draft);
    }
    definitions::may_come(call.kind, object::name(&draft))?;
    body::default(call.kind, &mut draft);
    let write = OwnedWrite { engine, call, subresource: part.subresource(), options, live: None };
    write.own_converting(&mut draft).await;
    let new = New { object: draft, is_applied: false };
    create_draft(engine, epoch, call, part, new, options, warnings).await
}

/// Takes away what a POST may not set. Who creates by PUT or apply may (`k8s.io/apiserver/pkg/endpoints/handlers/create.go`,
/// `WipeObjectMetaSystemFields`, which `update.go` and `patch.go` do not call).
fn wipe(draft: &mut Value) {
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        object::set_meta(draft, field, None);
    }
}

/// Creates what an applied configuration says.
///
/// # Errors
/// As [`create`], and what the configuration itself has.
pub(super) async fn create_by_apply(
    engine: &Engine,
    call: Call<'_>,
    part: Part,
    config: &Configuration,
    options: &WriteOptions,
) -> Result<Written, ApiError> {
    let mut warnings = Vec::new();
    let outcome = create_of_config(engine, call, part, config, options, &mut warnings).await;
    Written::new(StatusCode::CREATED, outcome, warnings)
}

async fn create_of_config(
    engine: &Engine,
    call: Call<'_>,
    part: Part,
    config: &Configuration,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Bytes, ApiError> {
    let epoch = begin_creation(engine, call)?;
    let write = OwnedWrite { engine, call, subresource: part.subresource(), options, live: None };
    let mut draft = write.applied(config, warnings).await?;
    let uid = object::uid(&config.value);
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(ApiError::conflict(call.kind, call.name, &why));
    }
    place_in_namespace(call, &mut draft)?;
    check_name(call, object::name(&draft))?;
    definitions::may_come(call.kind, call.name)?;
    body::default_changed(call.kind, &mut draft);
    let new = New { object: draft, is_applied: true };
    create_draft(engine, epoch, call, part, new, options, warnings).await
}

/// The cluster that an object is to be created in; the kind has to be one of it.
fn begin_creation(engine: &Engine, call: Call<'_>) -> Result<Epoch, ApiError> {
    let epoch = engine.epoch();
    let kind = call.kind;
    if kind.custom.is_some() && engine.kinds().get(&kind.group, &kind.version, &kind.plural).is_none() {
        return Err(ApiError::no_such_path());
    }
    Ok(epoch)
}

/// An object that is to be created: typed, defaulted and owned.
struct New {
    object: Value,
    is_applied: bool,
}

/// Creates an object.
async fn create_draft(
    engine: &Engine,
    epoch: Epoch,
    call: Call<'_>,
    part: Part,
    New { object: mut draft, is_applied }: New,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Bytes, ApiError> {
    let draft = &mut draft;
    call.kind.schema().settle(draft);
    admission::mutate(&Review::of_new(engine, call, part.subresource(), options), draft, warnings).await?;
    // A webhook may have moved it. One that has renamed it decides.
    place_in_namespace(call, draft)?;
    if is_applied {
        version_of(draft)?;
        // What is not stored is answered as it was sent.
        if !options.dry_run {
            object::set_meta(draft, "resourceVersion", None);
        }
    }
    begin(engine, call, draft);
    let generates = object::name(draft).is_empty() && !object::meta_text(draft, "generateName").is_empty();
    let mut attempts = if generates { NAME_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let mut next = if attempts == 0 { std::mem::take(draft) } else { draft.clone() };
        if generates {
            generate_name(engine, call.kind, &mut next);
        } else if call.kind.behaviour.names_itself && object::name(&next).is_empty() {
            object::set_meta(&mut next, "name", Some(engine.world().dice.uid().into()));
        }
        match create_object(engine, epoch, call, part, next, options, warnings).await {
            Err(error) if attempts > 0 && error.reason == "AlreadyExists" => {}
            outcome => return outcome,
        }
    }
}

/// The parts of metadata that only the server sets.
fn begin(engine: &Engine, call: Call<'_>, draft: &mut Value) {
    if call.name.is_empty() {
        wipe(draft);
    }
    let now = object::time(engine.world().clock.now());
    object::set_meta(draft, "creationTimestamp", Some(now));
    object::set_meta(draft, "uid", Some(engine.world().dice.uid().into()));
    if call.kind.rules.generation.counts() {
        object::set_meta(draft, "generation", Some(1.into()));
    }
}

fn generate_name(engine: &Engine, kind: &Kind, object: &mut Value) {
    let mut base = object::meta_text(object, "generateName").to_owned();
    if kind.rules.name == NameRule::Address {
        // No address comes of letters.
        return object::set_meta(object, "name", Some(base.into()));
    }
    if base.len() > GENERATED_BASE {
        let cut = (0..=GENERATED_BASE).rev().find(|at| base.is_char_boundary(*at)).unwrap_or(0);
        base.truncate(cut);
    }
    let name = base + &engine.world().dice.suffix(SUFFIX_LENGTH);
    object::set_meta(object, "name", Some(name.into()));
}

async fn create_object(
    engine: &Engine,
    epoch: Epoch,
    call: Call<'_>,
    part: Part,
    mut object: Value,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Bytes, ApiError> {
    let kind = call.kind;
    // A pod makes its own of the one that was sent.
    let has_its_own = kind.behaviour.born_with_status || kind.behaviour.role == Role::Pod;
    if kind.has_status() && !has_its_own {
        object::as_map(&mut object).remove("status");
    }
    let lacks_defaults = kind.rules.within(|| (kind.rules.lacks_defaults)(&object));
    kind.rules.early_warnings(&object, warnings);
    kind.rules.prepare_create(&mut object);
    stamp(engine, kind, &mut object, None);
    (kind.rules.author)(&mut object, call.user);
    // A write to the status allocates nothing, even where it creates (`k8s.io/kubernetes/pkg/registry/core/service/storage`, `NewREST`).
    let _allocation = match part {
        Part::Main => Some(allocate::allocate(engine, kind, &mut object, None, options.dry_run).await?),
        _ => None,
    };
    let name = object::name(&object).to_owned();
    let mut errors = device_claims::errors(engine, call, (Part::Main, "create"), &object, None);
    errors.extend(errors_of_new(call, &object, warnings));
    if !errors.is_empty() {
        return Err(type_of_body::invalid(kind, &object, &name, &errors));
    }
    warnings.extend(kind.rules.warnings(&object, None));
    warnings.extend(definitions::warnings(kind, &object, None));
    // Who creates by an update or by applying, and may not, is told so of a good object alone, as in Kubernetes.
    if !call.name.is_empty() {
        update::may_create(engine, call).await?;
    }
    admission::validate(&Review::of_new(engine, call, part.subresource(), options), &object, warnings)
        .await?;
    if let Some(complete) = kind.rules.complete {
        complete(&mut object);
    }
    let was_pruned = custom::prune(kind, &mut object);
    let encoding = kind.encoding();
    let has_bytes = kind.schema().leave_out(&mut object, encoding) && encoding == Encoding::Protobuf;
    let leaves_unread = lacks_defaults || was_pruned || has_bytes;
    // What an update or an applied configuration creates is stored where the request says, even if admission has renamed it.
    let key = key(call.namespace, if call.name.is_empty() { &name } else { call.name });
    let generates = !object::meta_text(&object, "generateName").is_empty();
    if options.dry_run {
        return if engine.snapshot().get(&kind.collection, &key).is_some() {
            Err(already_exists(engine, kind, &key, &name, generates))
        } else {
            convert::as_read_back(engine, kind, part, object).await
        };
    }
    // What is no number is none.
    if version_of(&object).is_ok_and(|version| version != 0) {
        return Err(ApiError::unexplained("resourceVersion should not be set on objects to be created"));
    }
    // It is never stored (`APIObjectVersioner.PrepareObjectForStorage`).
    object::set_meta(&mut object, "selfLink", None);
    let addresses = addresses_of(kind, &object);
    let draft = if leaves_unread { encode::lacking } else { encode::draft };
    let change = Change::Put(draft(kind, convert::in_storage_version(engine, kind, object).await?));
    let entry = engine
        .commit(epoch, kind, &key, Expect::Absent, change)
        .await?
        .ok_or_else(|| already_exists(engine, kind, &key, &name, generates))?;
    follow_up::follow_up(engine, kind, &name).await;
    addresses::changed(engine, call.namespace, &name, &BTreeSet::new(), &addresses).await;
    Ok(convert::answered(kind, part, convert::viewed(engine, kind, entry).await?))
}

/// 409, which says when the object of that name is on its way out (`k8s.io/apiserver/pkg/registry/generic/registry/store.go`).
fn already_exists(engine: &Engine, kind: &Kind, key: &str, name: &str, generates: bool) -> ApiError {
    let mut error = match generates {
        true => ApiError::generated_name_exists(kind, name),
        false => ApiError::already_exists(kind, name),
    };
    let snapshot = engine.snapshot();
    let there = snapshot.get(&kind.collection, key).map(|entry| encode::value(kind, entry));
    if there.is_some_and(|there| !object::meta_text(&there, "deletionTimestamp").is_empty()) {
        error.message.insert_str(0, "object is being deleted: ");
    }
    error
}

fn errors_of_new(call: Call<'_>, object: &Value, warnings: &mut Vec<String>) -> Vec<FieldError> {
    let kind = call.kind;
    let mut errors = kind.rules.errors_on_create(object, kind.namespaced());
    let candidate = Candidate { object, old: None, part: Extent::Whole, version: kind.kubernetes() };
    warnings.extend(custom::check(kind, candidate, &mut errors));
    errors.extend(kind.rules.within(|| definitions::errors(kind, candidate)));
    if kind.behaviour.role == Role::Definition {
        // What its name must be is found where names are looked at: first.
        let is_name = |field: &str| matches!(field, "metadata.generateName" | "metadata.name");
        errors.sort_by_key(|error| !is_name(&error.field));
    }
    errors
}
