//! How every change of an object is made, whatever asks for it: read the current object, make the next one of it, compare and
//! swap.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use kubewright_kinds::{Kind, Role, Summary, encode, unreadable};
use kubewright_meta::{ApiError, object};
use kubewright_schema::patch::{Change, Configuration};
use kubewright_store::{self as store, Entry, Expect};
use serde_json::Value;

use super::delete::is_finished;
use super::follow_up::addresses;
use super::part::Part;
use super::preconditions::modified;
use super::proposal::{Judged, Proposal};
use super::{Written, custom, follow_up};
use crate::admission::{Edit, Operation, Options, Review};
use crate::engine::allocate::addresses_of;
use crate::engine::epochs::Epoch;
use crate::engine::{Engine, convert};
use crate::request::{Call, WriteOptions};

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
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::Change(_) | Self::Apply(_) => "patch",
            Self::Replace(_) | Self::Edit(_) | Self::View(_) => "update",
        }
    }

    pub(super) fn view(&self) -> Option<&'a dyn View> {
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
    let proposal = Proposal { engine, review, part, step, options, current: &current };
    let next = proposal.next(warnings).await?;
    let judged = proposal.judge(next, warnings).await?;
    let found = Found { part, stored: &stored, entry: &entry, current: &current };
    keep(engine, epoch, call, found, judged, options).await
}

/// What a write has found.
struct Found<'a> {
    /// What of the object is written.
    part: Part,
    stored: &'a Arc<Entry<Summary>>,
    /// The same in the version that is written.
    entry: &'a Arc<Entry<Summary>>,
    current: &'a Value,
}

/// Keeps the next object, unless nothing changes or it is only a trial. `None` when somebody was faster.
async fn keep(
    engine: &Engine,
    epoch: Epoch,
    call: Call<'_>,
    Found { part, stored, entry, current }: Found<'_>,
    Judged { object: mut next, leaves_unread, names_version, is_live, .. }: Judged<'_>,
    options: &WriteOptions,
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
    call.kind.schema().leave_out(&mut next, call.kind.encoding());
    let lacks_defaults = complete_as_read(call.kind, &mut next);
    let is_pruned = custom::prune(call.kind, &mut next);
    let is_outdated = encode::is_outdated(call.kind, stored);
    // The status stays as it is stored, with a certificate that has no contents.
    let keeps_certificate = part != Part::Status && call.kind.behaviour.role == Role::SigningRequest;
    let is_read_otherwise = leaves_unread || lacks_defaults || is_pruned || keeps_certificate && is_outdated;
    let same = next == *current;
    let kinds = engine.kinds();
    // What is said in an older version is more once it is stored, though it reads the same. That of an event is not.
    let is_more = call.kind.has_status() && !is_live;
    let older = call.kind.stored_in().filter(|_| is_more).and_then(|kind| kinds.find(kind));
    if same && !goes && !is_read_otherwise && older.is_none() && !is_outdated {
        return Ok(Some(convert::answered(call.kind, part, Arc::clone(entry))));
    }
    if options.dry_run {
        return convert::as_read_back(engine, call.kind, part, next).await.map(Some);
    }
    let before = addresses_of(call.kind, current);
    let now = if goes { BTreeSet::new() } else { addresses_of(call.kind, &next) };
    let draft = if is_read_otherwise { encode::lacking } else { encode::draft };
    let draft = match older {
        Some(kind) => draft(kind, in_stored_kind(call.kind, part, next, &encode::value(kind, stored))),
        None => draft(call.kind, convert::in_storage_version(engine, call.kind, next).await?),
    };
    // What would be stored in other words is written although nothing changes: so objects are moved to the storage version,
    // and keep the defaults of today. What a custom object would be stored as in the same words is not, whatever was sent (1.0 for 1), nor
    // one of an older version (annotations that stand for what is stored).
    // What lacks what is read is compared with that (`Cacher.GuaranteedUpdate` hands over what its cache has).
    let may_be_none = (same && !lacks_defaults || call.kind.custom.is_some() || older.is_some()) && !goes;
    if may_be_none && encode::is_stored_as(&draft, stored) {
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
        None if names_version => Err(modified(call)),
        None => Ok(None),
    }
}

/// Fills in what is not stored of an object and is there whenever it is read. Returns whether there is any.
fn complete_as_read(kind: &Kind, object: &mut Value) -> bool {
    let Some(complete) = kind.rules.complete else { return false };
    let stored = object.clone();
    complete(object);
    *object != stored
}

/// A built-in object as the kind that it is stored as. What the write of a part does not change stays as it is stored: less may be stored
/// than is read in another version.
fn in_stored_kind(kind: &Kind, part: Part, mut object: Value, stored: &Value) -> Value {
    kind.to_storage(&mut object);
    let Some(members) = stored.as_object() else { return object };
    for member in members.keys() {
        let is_written = match (part, member.as_str()) {
            (_, "apiVersion" | "kind" | "metadata") => true,
            (Part::Main, "status") => false,
            (Part::Status, member) => member == "status",
            (Part::Main | Part::Member(_) | Part::Trusted, _) => true,
        };
        if !is_written {
            object::copy_member(&mut object, stored, member);
        }
    }
    object
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
