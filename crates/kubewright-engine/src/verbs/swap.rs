//! How every change of an object is made, whatever asks for it: read the current object, make the next one of it, compare and
//! swap.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use kubewright_kinds::{Kind, Summary, encode, unreadable};
use kubewright_meta::rules::at;
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_schema::patch::{Change, Configuration};
use kubewright_schema::{Candidate, Encoding, Extent, fields};
use kubewright_store::{self as store, Entry, Expect, Revision};
use serde_json::Value;

use super::delete::is_finished;
use super::follow_up::addresses;
use super::part::{Part, prepare, raise_generation, stamp};
use super::{Written, custom, definitions, device_claims, follow_up, ownership};
use crate::admission::{self, Edit, Operation, Options, Review};
use crate::engine::allocate::{self, addresses_of};
use crate::engine::epochs::Epoch;
use crate::engine::{Engine, convert};
use crate::request::place::{check_name, place_in_namespace};
use crate::request::{Call, WriteOptions, body, type_of_body, version_of};

/// How the next object comes from the current one.
pub(super) enum Step<'a> {
    /// The client sent it whole.
    Replace(Value),
    /// The client sent a change.
    Change(&'a Change),
    /// The client sent what its manager wants the object to have.
    Apply(&'a Configuration),
    /// The server changes one thing.
    Edit(&'a Edit<'a>),
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
    fn next(&self, current: &Value, warnings: &mut Vec<String>) -> Result<Value, ApiError>;

    /// Puts what is to be shown into the object.
    fn put(&self, shown: &Value, object: &mut Value) -> Result<(), ApiError>;
}

impl<'a> Step<'a> {
    /// The verb that a client asks by.
    fn verb(&self) -> &'static str {
        match self {
            Self::Change(_) | Self::Apply(_) => "patch",
            Self::Replace(_) | Self::Edit(_) | Self::View(_) => "update",
        }
    }

    fn view(&self) -> Option<&'a dyn View> {
        match self {
            Self::View(view) => Some(*view),
            _ => None,
        }
    }
}

/// Changes the current object by a step, once more whenever somebody was faster. `told`: the warnings so far.
pub(super) async fn swap(
    engine: &Engine,
    call: Call<'_>,
    part: Part,
    step: &Step<'_>,
    options: &WriteOptions,
    told: Vec<String>,
) -> Result<Written, ApiError> {
    loop {
        let mut warnings = told.clone();
        match try_swap(engine, call, part, step, options, &mut warnings).await.transpose() {
            None => {}
            Some(outcome) => return Written::new(StatusCode::OK, outcome, warnings),
        }
    }
}

/// `None` when somebody was faster.
async fn try_swap(
    engine: &Engine,
    call: Call<'_>,
    part: Part,
    step: &Step<'_>,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Option<Bytes>, ApiError> {
    let epoch = engine.epoch();
    let stored = engine.stored(call)?;
    unreadable::check_to_write(call.kind, &stored)?;
    let entry = convert::viewed(engine, call.kind, Arc::clone(&stored)).await?;
    let current = encode::value(call.kind, &entry);
    let shown = step.view().map(|view| view.of(&current));
    let review = Review {
        objects: engine,
        call,
        operation: Operation::Update,
        subresource: step.view().map_or(part.subresource(), View::subresource),
        old: Some(shown.as_ref().unwrap_or(&current)),
        dry_run: options.dry_run,
        options: Options::Write(options),
        collection: false,
    };
    let mut next = next(engine, &review, part, step, options, &current, warnings).await?;
    if matches!(step, Step::Change(_) | Step::Apply(_)) {
        place_in_namespace(call, &mut next)?;
        check_name(call, object::name(&next))?;
    }
    let replaces = matches!(step, Step::Replace(_));
    if replaces {
        check_uid(call, options, &current, &next)?;
    }
    match step {
        Step::Apply(_) => body::default_changed(call.kind, &mut next),
        // Nobody decodes the object that a scale is put into, and so it gets no defaults.
        Step::View(_) if call.kind.custom.is_some() => {}
        _ => body::default(call.kind, &mut next),
    }
    if let Some(complete) = call.kind.rules.complete {
        complete(&mut next);
    }
    let is_owned = match step {
        Step::Replace(_) | Step::Change(_) => true,
        Step::Edit(_) => !options.manager.is_empty(),
        Step::Apply(_) | Step::View(_) => false,
    };
    if is_owned {
        ownership::own(engine, call, part.subresource(), options, Some(&current), &mut next);
    }
    call.kind.schema().settle(&mut next);
    // What the server changes by itself was admitted as what asked for it.
    let asks = part != Part::Trusted;
    if asks && shown.is_none() {
        admission::mutate(&review, &mut next, warnings).await?;
    }
    // After who may change the object has seen it (`Store.Update`).
    let conditional = check_version(call, &current, &next)? && replaces;
    let named = type_of_body::named_in_refusals(call.kind, &next);
    prepare(call.kind, part, &mut next, &current);
    if matches!(part, Part::Main | Part::Status) {
        stamp(engine, call.kind, &mut next, Some(&current));
    }
    let _allocation = match part {
        Part::Status => None,
        _ => Some(allocate::allocate(engine, call.kind, &mut next, Some(&current), options.dry_run).await?),
    };
    let rights = device_claims::errors(engine, call, (part, step.verb()), &next, Some(&current));
    check(&review, part, (&next, &named), &current, rights, warnings)?;
    if part == Part::Main {
        warnings.extend(call.kind.rules.warnings(&next, Some(&current)));
    }
    warnings.extend(definitions::warnings(call.kind, &next, Some(&current)));
    raise_generation(call.kind, part, &mut next, &current);
    call.kind.schema().leave_out(&mut next, Encoding::Json);
    fields::keep_times(&mut next, &current, if call.kind.custom.is_some() { Value::eq } else { at::same });
    if asks {
        let shown = step.view().map(|view| view.of(&next));
        admission::validate(&review, shown.as_ref().unwrap_or(&next), warnings).await?;
    }
    call.kind.schema().leave_out(&mut next, call.kind.encoding());
    let lacks_defaults = complete_as_read(call.kind, &mut next);
    // What is said in an older version is more once it is stored, though it reads the same.
    let may_add = call.kind.stored_in().is_some();
    let found = Found { part, stored: &stored, entry: &entry, current: &current, lacks_defaults, may_add };
    keep(engine, epoch, call, found, next, options, conditional).await
}

/// Fills in what is not stored of an object and is there whenever it is read. Returns whether there is any.
fn complete_as_read(kind: &Kind, object: &mut Value) -> bool {
    let Some(complete) = kind.rules.complete else { return false };
    let stored = object.clone();
    complete(object);
    *object != stored
}

/// What a write has found.
struct Found<'a> {
    /// What of the object is written.
    part: Part,
    stored: &'a Arc<Entry<Summary>>,
    /// The same in the version that is written.
    entry: &'a Arc<Entry<Summary>>,
    current: &'a Value,
    /// Whether what it makes is stored without defaults that are there when it is read.
    lacks_defaults: bool,
    /// Whether what it makes may be stored otherwise although it is read as what is there.
    may_add: bool,
}

/// Keeps the next object, unless nothing changes or it is only a trial. `None` when somebody was faster.
async fn keep(
    engine: &Engine,
    epoch: Epoch,
    call: Call<'_>,
    Found { part, stored, entry, current, lacks_defaults, may_add }: Found<'_>,
    mut next: Value,
    options: &WriteOptions,
    conditional: bool,
) -> Result<Option<Bytes>, ApiError> {
    if !options.dry_run {
        // It is never stored (`APIObjectVersioner.PrepareObjectForStorage`).
        object::set_meta(&mut next, "selfLink", None);
    }
    // What has a time of its deletion and nothing to wait for goes with any write, and is answered as it was asked for.
    let goes = is_finished(call.kind, &next);
    let asked = goes.then(|| {
        let mut asked = next.clone();
        convert::hide(call.kind, part, &mut asked);
        encode::bytes(call.kind, &asked)
    });
    let leaves_unread = custom::prune(call.kind, &mut next) || lacks_defaults;
    let same = next == *current;
    if same && !goes && !leaves_unread && !may_add && !encode::is_outdated(call.kind, stored) {
        return Ok(Some(convert::answered(call.kind, part, Arc::clone(entry))));
    }
    if options.dry_run {
        return convert::as_read_back(engine, call.kind, part, next).await.map(Some);
    }
    let before = addresses_of(call.kind, current);
    let now = if goes { BTreeSet::new() } else { addresses_of(call.kind, &next) };
    let draft = if leaves_unread { encode::lacking } else { encode::draft };
    let kinds = engine.kinds();
    let draft = match call.kind.stored_in().and_then(|kind| kinds.find(kind)) {
        Some(kind) => draft(kind, in_stored_kind(call.kind, part, next, &encode::value(kind, stored))),
        None => draft(call.kind, convert::in_storage_version(engine, call.kind, next).await?),
    };
    // What would be stored in other words is written although nothing changes: so objects are moved to the storage version,
    // and keep the defaults of today. What a custom object would be stored as in the same words is not, whatever was sent (1.0 for 1).
    if (same || call.kind.custom.is_some()) && !goes && encode::is_stored_as(&draft, stored) {
        return Ok(Some(convert::answered(call.kind, part, Arc::clone(entry))));
    }
    // Watchers are told what goes as it was stored last.
    let change = match goes {
        true => store::Change::Delete(encode::last_state(stored)),
        false => store::Change::Put(draft),
    };
    match commit_next(engine, epoch, call, entry, change).await? {
        Some(entry) => {
            addresses::changed(engine, call.namespace, call.name, &before, &now).await;
            if asked.is_some() {
                return Ok(asked);
            }
            let entry = convert::viewed(engine, call.kind, entry).await?;
            Ok(Some(convert::answered(call.kind, part, entry)))
        }
        None if conditional => Err(modified(call)),
        None => Ok(None),
    }
}

/// A built-in object as the kind that it is stored as. What the write of a part does not change stays as it is stored: less may be stored
/// than is read in another version.
fn in_stored_kind(kind: &Kind, part: Part, mut object: Value, stored: &Value) -> Value {
    kind.to_storage(&mut object);
    let Some(members) = stored.as_object() else { return object };
    for member in members.keys() {
        let is_written = match (part, member.as_str()) {
            (_, "apiVersion" | "kind" | "metadata") => true,
            (Part::Main, "status") => !kind.has_status(),
            (Part::Status, member) => member == "status",
            (Part::Main | Part::Member(_) | Part::Trusted, _) => true,
        };
        if !is_written {
            object::copy_member(&mut object, stored, member);
        }
    }
    object
}

/// What a step makes of the current object: typed, not yet defaulted, and owned where it is applied. Of a view, admission has seen
/// what is shown.
async fn next(
    engine: &Engine,
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
            let mut shown = view.next(current, warnings)?;
            admission::mutate(review, &mut shown, warnings).await?;
            let mut next = current.clone();
            view.put(&shown, &mut next)?;
            next
        }
        Step::Change(change) => body::patched(call.kind, change, current, options.validation, warnings)?,
        Step::Apply(config) => {
            let subresource = part.subresource();
            ownership::applied(engine, call, subresource, config, options, Some(current), warnings)?
        }
    })
}

/// Commits what an object becomes; an object that was only waiting for its last finalizer goes instead.
/// `None` when somebody was faster.
async fn commit_next(
    engine: &Engine,
    epoch: Epoch,
    call: Call<'_>,
    entry: &Entry<Summary>,
    change: store::Change<Summary>,
) -> Result<Option<Arc<Entry<Summary>>>, ApiError> {
    let kind = call.kind;
    let goes = matches!(change, store::Change::Delete(_));
    let expect = Expect::At(entry.revision);
    let Some(entry) = engine.commit(epoch, kind, &call.key(), expect, change).await? else {
        return Ok(None);
    };
    if goes {
        follow_up::object_gone(engine, kind).await;
    }
    follow_up::follow_up(engine, kind, call.name).await;
    Ok(Some(entry))
}

fn check(
    review: &Review<'_>,
    part: Part,
    (next, named): (&Value, &(String, String)),
    current: &Value,
    mut errors: Vec<FieldError>,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let kind = review.call.kind;
    errors.extend(match part {
        Part::Main if type_of_body::says_other(kind, next) => {
            kind.rules.errors_of_metadata_on_update(next, current, kind.namespaced())
        }
        Part::Main => kind.rules.errors_on_update(next, current, kind.namespaced()),
        Part::Status => kind.rules.errors_on_status(next, current, kind.namespaced()),
        Part::Member(member) => {
            let of_member = || member.errors(next, current);
            kind.rules.errors_on_member((next, current), kind.namespaced(), member.revalidates(), of_member)
        }
        Part::Trusted => return Ok(()),
    });
    let extent = if part == Part::Status { Extent::Status } else { Extent::Whole };
    let candidate = Candidate { object: next, old: Some(current), part: extent, version: kind.kubernetes() };
    warnings.extend(custom::check(kind, candidate, &mut errors));
    if errors.is_empty() && part == Part::Status {
        errors = admission::pod_certificates::status_errors(review, next, current);
    }
    errors.extend(kind.rules.within(|| definitions::errors(kind, candidate)));
    if errors.is_empty() {
        return Ok(());
    }
    // Admission may have changed the name.
    Err(ApiError::invalid_of(&named.0, &named.1, object::name(next), &errors))
}

/// The uid that a replacement names must be the current one.
fn check_uid(call: Call<'_>, options: &WriteOptions, current: &Value, next: &Value) -> Result<(), ApiError> {
    let uid = object::uid(next);
    if !uid.is_empty() && uid != object::uid(current) {
        return Err(precondition_failed(call, options.dry_run, "UID", uid, object::uid(current)));
    }
    Ok(())
}

/// The version that a write names must be the current one. Returns whether it named one.
pub(super) fn check_version(call: Call<'_>, current: &Value, next: &Value) -> Result<bool, ApiError> {
    let version = version_of(next)?;
    if version == 0 {
        if call.kind.behaviour.conditional_update {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            return Err(ApiError::invalid_of(&call.kind.group, &call.kind.plural, call.name, &[error]));
        }
        return Ok(false);
    }
    let newest = object::resource_version(current).parse::<u64>().unwrap_or_default();
    if Revision(version) == Revision(newest) { Ok(true) } else { Err(modified(call)) }
}

/// 409: somebody else has changed the object.
pub(super) fn modified(call: Call<'_>) -> ApiError {
    ApiError::conflict(
        call.kind,
        call.name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )
}

/// 409: a precondition does not hold, in the words of the storage layer (`k8s.io/apiserver/pkg/storage/errors.go`). What is done
/// on trial does not reach the layer that knows where the registry begins.
pub(super) fn precondition_failed(
    call: Call<'_>,
    dry_run: bool,
    what: &str,
    given: &str,
    current: &str,
) -> ApiError {
    let root = if dry_run { "" } else { "/registry" };
    let path = format!("{root}/{}/{}", call.kind.storage_prefix(), call.key());
    ApiError::conflict(
        call.kind,
        call.name,
        &format!(
            "StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {given}, {what} in object meta: {current}"
        ),
    )
}
