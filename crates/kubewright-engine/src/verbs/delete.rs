//! Delete, of one object or of many (`k8s.io/apiserver/pkg/registry/rest/delete.go`).

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use jiff::{Timestamp, ToSpan};
use kubewright_kinds::{Kind, Role, Summary, encode};
use kubewright_meta::{ApiError, object};
use kubewright_store::{Change, Draft, Entry, Expect};
use serde_json::{Value, json};

use super::follow_up::addresses;
use super::preconditions::modified;
use super::{List, Part, WriteResult, Written, definitions, follow_up, read, unread};
use crate::admission::{self, Operation, Options, Review};
use crate::engine::allocate::addresses_of;
use crate::engine::epochs::Epoch;
use crate::engine::{Engine, convert};
use crate::request::{Call, DeleteOptions, DeletedTogether, Propagation};

/// The grace period of a pod that does not say.
const DEFAULT_GRACE: i64 = 30;

/// So many of a collection are deleted before others have their turn.
const TURN: usize = 100;

/// Whether admission is asked about a deletion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// It is part of what was admitted already, or is the server's own.
    Nobody,
    /// It is the one that the request names.
    ForOne,
    /// It is one of many.
    ForMany,
}

/// Deletes an object: at once, or, where finalizers or a grace period hold it, by marking it.
///
/// # Errors
/// 404; 409 when a precondition does not hold; 403 when admission refuses.
pub async fn delete(engine: &Engine, call: Call<'_>, options: &DeleteOptions) -> Result<Written, ApiError> {
    if options.unread {
        return Written::new(StatusCode::OK, unread::delete(engine, call, options).await, Vec::new());
    }
    let mut warnings = warnings_of(call, options);
    let outcome = delete_asking(engine, call, options, Asks::ForOne, &mut warnings).await;
    // That it stays for a while is told by the code only to who asked by `orphanDependents` (`endpoints/handlers/delete.go`).
    let waits = options.cascades && outcome.as_ref().is_ok_and(|(_, gone)| !gone);
    let code = if waits { StatusCode::ACCEPTED } else { StatusCode::OK };
    Written::new(code, outcome.map(|(result, _)| result), warnings)
}

/// As [`delete`], of an object whose deletion is part of what was admitted already, or that the server deletes by itself.
///
/// # Errors
/// As [`delete`], but for admission.
pub(super) async fn delete_admitted(
    engine: &Engine,
    call: Call<'_>,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    delete_asking(engine, call, options, Asks::Nobody, &mut Vec::new()).await.map(drop)
}

/// The answer to a deletion, and whether the object is gone.
async fn delete_asking(
    engine: &Engine,
    call: Call<'_>,
    options: &DeleteOptions,
    asks: Asks,
    warnings: &mut Vec<String>,
) -> Result<(WriteResult, bool), ApiError> {
    let epoch = engine.epoch();
    loop {
        let stored = engine.entry(call)?;
        let entry = convert::viewed(engine, call.kind, Arc::clone(&stored)).await?;
        let current = encode::value(call.kind, &entry);
        check_preconditions(call, &current, options)?;
        let review = Review {
            objects: engine,
            call,
            operation: Operation::Delete,
            subresource: "",
            old: Some(&current),
            dry_run: options.dry_run,
            options: Options::Delete(options),
            collection: asks == Asks::ForMany,
        };
        if asks != Asks::Nobody {
            admission::admit_deletion(&review, warnings).await?;
        }
        let Deletion { object: next, goes } = deletion(engine, call, &current, options);
        let stays = !goes && next == current;
        if options.dry_run || stays && !is_stored_otherwise(engine, call, &stored, &next).await? {
            // On trial what only finalizers held, which would be taken from it, is told as an object that nobody has written, and not
            // as gone (`Store.Delete`).
            let was_held = goes && object::finalizers(&current).next().is_some();
            let shown = if was_held && call.kind.behaviour.role != Role::Pod {
                call.kind.unwritten(None).to_string().into()
            } else {
                let mut shown = next.clone();
                if goes {
                    convert::hide(call.kind, Part::Main, &mut shown);
                }
                encode::bytes(call.kind, &shown)
            };
            return Ok((answer(call, &next, shown, goes && !was_held), goes));
        }
        // What ends gracefully is marked before it goes, even where it goes at once.
        let differs = |field: &str| next["metadata"].get(field) != current["metadata"].get(field);
        let ends_otherwise = differs("deletionTimestamp") || differs("deletionGracePeriodSeconds");
        let marks = !goes || call.kind.behaviour.role == Role::Pod && ends_otherwise;
        let mark = if marks { Some(mark_of(engine, call, &stored, &next, options).await?) } else { None };
        if let Some(entry) = mark_and_remove(engine, epoch, call, stored, mark, goes).await? {
            if goes {
                let had = addresses_of(call.kind, &current);
                addresses::changed(engine, call.namespace, call.name, &had, &BTreeSet::new()).await;
            }
            let entry = convert::viewed(engine, call.kind, entry).await?;
            // What stays is answered as it is stored (`Store.Delete` decorates what is gone alone).
            let shown = if goes {
                convert::answered(call.kind, Part::Main, entry)
            } else {
                encode::object(call.kind, &entry)
            };
            return Ok((answer(call, &next, shown, goes), goes));
        }
        if options.resource_version.is_some() {
            return Err(modified(call));
        }
    }
}

/// Whether an object would be stored in other words than it is, though it is read as that: so it is written, as with any write.
async fn is_stored_otherwise(
    engine: &Engine,
    call: Call<'_>,
    stored: &Entry<Summary>,
    object: &Value,
) -> Result<bool, ApiError> {
    if !encode::is_outdated(call.kind, stored) {
        return Ok(false);
    }
    let object = convert::in_storage_version(engine, call.kind, object.clone()).await?;
    Ok(!encode::is_stored_as(&encode::draft(call.kind, object), stored))
}

/// What is stored of an object that is to be marked. Built-in kinds are marked as they are stored, whatever the version in which that is asked:
/// what is added where an object is converted is not stored.
async fn mark_of(
    engine: &Engine,
    call: Call<'_>,
    stored: &Entry<Summary>,
    marked: &Value,
    options: &DeleteOptions,
) -> Result<Draft<Summary>, ApiError> {
    let kinds = engine.kinds();
    let Some(kind) = call.kind.stored_in().and_then(|kind| kinds.find(kind)) else {
        let marked = convert::in_storage_version(engine, call.kind, marked.clone()).await?;
        return Ok(encode::draft(call.kind, marked));
    };
    let marked = deletion(engine, Call { kind, ..call }, &encode::value(kind, stored), options);
    Ok(encode::draft(kind, marked.object))
}

/// Stores the mark of an object that is deleted, and removes what goes. `None` when somebody was faster; but who removes what was marked here,
/// as a kubelet does, has done what was asked for (`registry/generic/registry/store.go`, `ignoreNotFound`).
async fn mark_and_remove(
    engine: &Engine,
    epoch: Epoch,
    call: Call<'_>,
    mut entry: Arc<Entry<Summary>>,
    mark: Option<Draft<Summary>>,
    goes: bool,
) -> Result<Option<Arc<Entry<Summary>>>, ApiError> {
    let is_marked = mark.is_some();
    if let Some(mark) = mark {
        let Some(marked) = commit_deletion(engine, epoch, call, &entry, Change::Put(mark)).await? else {
            return Ok(None);
        };
        entry = marked;
    }
    if !goes {
        return Ok(Some(entry));
    }
    let marked_for = engine.settings().marked_for;
    if is_marked && !marked_for.is_zero() {
        tokio::time::sleep(marked_for).await;
    }
    // Watchers are told the object as it was stored last.
    let last = Change::Delete(encode::last_state(&entry));
    let removed = commit_deletion(engine, epoch, call, &entry, last).await?;
    Ok(removed.or_else(|| (is_marked && !is_there(engine, call, &entry)).then_some(entry)))
}

/// Whether the object of an entry is still there, whatever became of it.
fn is_there(engine: &Engine, call: Call<'_>, entry: &Entry<Summary>) -> bool {
    let uid = |entry: &Entry<Summary>| encode::value(call.kind, entry)["metadata"]["uid"].take();
    engine.entry(call).is_ok_and(|now| uid(&now) == uid(entry))
}

async fn commit_deletion(
    engine: &Engine,
    epoch: Epoch,
    call: Call<'_>,
    entry: &Entry<Summary>,
    change: Change<Summary>,
) -> Result<Option<Arc<Entry<Summary>>>, ApiError> {
    let goes = matches!(change, Change::Delete(_));
    let expect = Expect::At(entry.revision);
    let Some(entry) = engine.commit(epoch, call.kind, &call.key(), expect, change).await? else {
        return Ok(None);
    };
    if goes {
        follow_up::object_gone(engine, call.kind).await;
    }
    follow_up::follow_up(engine, call.kind, call.name).await;
    Ok(Some(entry))
}

/// What a deletion makes of an object. Only pods end gracefully; what else nothing holds goes as it is, unmarked
/// (`k8s.io/apiserver/pkg/registry/generic/registry/store.go`, `Delete`).
fn deletion(engine: &Engine, call: Call<'_>, current: &Value, options: &DeleteOptions) -> Deletion {
    let now = engine.world().clock.now();
    let role = call.kind.behaviour.role;
    let asked_before = object::is_deleting(current);
    let mut next = current.clone();
    if role == Role::Namespace && object::holds_content(current) {
        if !asked_before {
            set_propagation(call, &mut next, current, options);
            object::set_meta(&mut next, "deletionTimestamp", Some(object::time(now)));
            object::member_mut(&mut next, "status").insert("phase".into(), "Terminating".into());
        }
        return Deletion { object: next, goes: false };
    }
    if role == Role::Definition && !asked_before {
        object::set_meta(&mut next, "deletionTimestamp", Some(object::time(now)));
        definitions::begin_termination(&mut next, now);
        return Deletion { object: next, goes: false };
    }
    // What is to end in a while may be asked to end sooner, and for nothing else.
    if role == Role::Pod && is_pending(current, options.grace_seconds) {
        return Deletion { object: next, goes: false };
    }
    set_propagation(call, &mut next, current, options);
    if role == Role::Pod {
        grant_grace(&mut next, current, options.grace_seconds, now);
        let goes = is_finished(call.kind, &next);
        return Deletion { object: next, goes };
    }
    let held = object::finalizers(&next).next().is_some();
    match (held, asked_before) {
        (true, false) => mark(&mut next, 0, now),
        (true, true) => mark_again(&mut next, now),
        (false, _) => {}
    }
    Deletion { object: next, goes: !held }
}

/// Deletes all objects that selectors name; the answer is the list of them.
///
/// # Errors
/// As [`delete`]; what is gone meanwhile is no error.
pub async fn delete_collection(
    engine: &Engine,
    call: Call<'_>,
    list: DeletedTogether,
    options: &DeleteOptions,
) -> Result<(List, Vec<String>), ApiError> {
    options.check_of_many()?;
    let mut warnings = warnings_of(call, options);
    match delete_each(engine, call, list, options, &mut warnings).await {
        Ok(list) => Ok((list, warnings)),
        Err(error) => Err(error.with_warnings(warnings)),
    }
}

async fn delete_each(
    engine: &Engine,
    call: Call<'_>,
    list: DeletedTogether,
    options: &DeleteOptions,
    warnings: &mut Vec<String>,
) -> Result<List, ApiError> {
    let found = read::find(engine, call, &list.options()?, |error| error).await?;
    for (at, entry) in found.entries.iter().enumerate() {
        if at % TURN == TURN - 1 {
            // Whoever waits no more can end it, and others have their turn.
            tokio::task::yield_now().await;
        }
        let object = encode::value(call.kind, entry);
        let (namespace, name) = (object::namespace(&object), object::name(&object));
        let call = Call { namespace, name, ..call };
        match delete_asking(engine, call, options, Asks::ForMany, warnings).await {
            Err(error) if error.code != StatusCode::NOT_FOUND => return Err(error),
            _ => {}
        }
    }
    Ok(found)
}

/// What a deletion is warned of before it is tried.
fn warnings_of(call: Call<'_>, options: &DeleteOptions) -> Vec<String> {
    let warning = call.kind.rules.warning_of_silent_deletion().filter(|_| options.propagation.is_none());
    warning.map(str::to_owned).into_iter().collect()
}

/// What a deletion makes of an object.
struct Deletion {
    /// The object: marked where it stays for a while.
    object: Value,
    /// Whether it goes at once.
    goes: bool,
}

/// Notes in an object's finalizers what becomes of its dependents.
fn set_propagation(call: Call<'_>, next: &mut Value, current: &Value, options: &DeleteOptions) {
    if !call.kind.behaviour.has_dependents {
        return;
    }
    let propagation = options.propagation.unwrap_or_else(|| default_propagation(call, current));
    for (finalizer, wanted) in
        [(object::ORPHAN, Propagation::Orphan), (object::FOREGROUND, Propagation::Foreground)]
    {
        if propagation == wanted {
            object::add_finalizer(next, finalizer);
        } else if options.propagation.is_some() {
            object::remove_finalizer(next, finalizer);
        }
    }
}

/// Marks an object as deleted in so many seconds; that is a new generation of it.
fn mark(next: &mut Value, grace: i64, now: Timestamp) {
    let at = now.checked_add(grace.seconds()).unwrap_or(now);
    object::set_meta(next, "deletionTimestamp", Some(object::time(at)));
    object::set_meta(next, "deletionGracePeriodSeconds", Some(grace.into()));
    let generation = object::generation(next);
    if generation > 0 {
        object::set_meta(next, "generation", Some((generation + 1).into()));
    }
}

/// Marks an object that is deleted already, whoever said so: it ends now at the latest (`markAsDeleting`).
fn mark_again(next: &mut Value, now: Timestamp) {
    let ends = object::meta_text(next, "deletionTimestamp").parse::<Timestamp>();
    if ends.is_ok_and(|ends| ends > now) {
        object::set_meta(next, "deletionTimestamp", Some(object::time(now)));
    }
    object::set_meta(next, "deletionGracePeriodSeconds", Some(0.into()));
}

/// Gives a pod its time to end. Asked again, the time only gets shorter, and not by itself
/// (`k8s.io/apiserver/pkg/registry/rest/delete.go`, `BeforeDelete`).
fn grant_grace(next: &mut Value, current: &Value, asked: Option<i64>, now: Timestamp) {
    if !object::is_deleting(current) {
        return mark(next, pod_grace(current, asked), now);
    }
    let before = granted(current);
    let Some(asked) = asked.map(at_least_one).filter(|asked| *asked < before) else { return };
    let at = object::meta_text(current, "deletionTimestamp").parse::<Timestamp>().unwrap_or(now);
    let sooner = at.checked_sub((before - asked).seconds()).unwrap_or(now);
    // What should have ended by now ends now, but for as long as its kubelet needs to see that.
    let asked = if sooner < now { asked.min(1) } else { asked };
    object::set_meta(next, "deletionTimestamp", Some(object::time(sooner.max(now))));
    object::set_meta(next, "deletionGracePeriodSeconds", Some(asked.into()));
}

/// How many seconds a pod that is deleted was given to end.
fn granted(pod: &Value) -> i64 {
    pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0)
}

/// Whether a pod is about to end, and is not asked to end any sooner.
fn is_pending(pod: &Value, asked: Option<i64>) -> bool {
    let granted = granted(pod);
    object::is_deleting(pod) && granted != 0 && asked.map(at_least_one).is_none_or(|asked| asked >= granted)
}

/// A negative period is the shortest that is one.
fn at_least_one(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

/// What a deletion does to dependents when it does not say: an earlier wish stands, else the kind's default.
fn default_propagation(call: Call<'_>, current: &Value) -> Propagation {
    let asked = |finalizer| object::finalizers(current).any(|one| one == finalizer);
    if asked(object::ORPHAN) {
        Propagation::Orphan
    } else if asked(object::FOREGROUND) {
        Propagation::Foreground
    } else if call.kind.behaviour.orphans_by_default {
        Propagation::Orphan
    } else {
        Propagation::Background
    }
}

/// How many seconds a pod has to end: none where no node runs it (`pkg/registry/core/pod/strategy.go`, `CheckGracefulDelete`).
fn pod_grace(pod: &Value, asked: Option<i64>) -> i64 {
    let runs = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    if !runs || ended {
        return 0;
    }
    at_least_one(
        asked.or_else(|| pod["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(DEFAULT_GRACE),
    )
}

/// The conflict is on the kind, as Kubernetes says it here and nowhere else (`BeforeDelete` in
/// `apiserver/pkg/registry/rest/delete.go`).
fn check_preconditions(call: Call<'_>, current: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    // What is stored as another kind is named by that one's group.
    let group = call.kind.storage_api_version();
    let group = group.split_once('/').map_or("", |(group, _)| group);
    let conflict = |why: &str| ApiError::conflict_on_kind(&call.kind.kind, group, object::name(current), why);
    // These two look themselves before anything else does (`registry/core/namespace/storage/storage.go`,
    // `apiextensions-apiserver/pkg/registry/customresourcedefinition/etcd.go`).
    let looks_itself = matches!(call.kind.behaviour.role, Role::Namespace | Role::Definition);
    let precondition = |what: &str, given: &str, found: &str, why: &str| {
        if !looks_itself {
            return conflict(why);
        }
        let why =
            format!("Precondition failed: {what} in precondition: {given}, {what} in object meta: {found}");
        ApiError::conflict(call.kind, call.name, &why)
    };
    let uid = object::uid(current);
    if let Some(given) = options.uid.as_deref().filter(|given| *given != uid) {
        let why = format!(
            "the UID in the precondition ({given}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        );
        return Err(precondition("UID", given, uid, &why));
    }
    let version = object::resource_version(current);
    if let Some(given) = options.resource_version.as_deref().filter(|given| *given != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({given}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(precondition("ResourceVersion", given, version, &why));
    }
    Ok(())
}

/// The object where it is still there or its kind answers so, else a Status.
fn answer(call: Call<'_>, next: &Value, bytes: Bytes, goes: bool) -> WriteResult {
    if !goes || call.kind.behaviour.deletion_answers_object {
        return WriteResult::Object(bytes);
    }
    let mut details = json!({"name": object::name(next), "kind": call.kind.plural, "uid": object::uid(next)});
    if !call.kind.group.is_empty() {
        details["group"] = call.kind.group.clone().into();
    }
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    WriteResult::Status(status.to_string().into())
}

/// Whether a deletion has nothing left to wait for.
pub(super) fn is_finished(kind: &Kind, object: &Value) -> bool {
    object::is_deleting(object)
        && object::finalizers(object).next().is_none()
        && object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && !(kind.behaviour.role == Role::Namespace && object::holds_content(object))
}
