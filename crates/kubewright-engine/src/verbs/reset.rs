//! Back to the beginning: the state that [`crate::bootstrap`] leaves, without a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_kinds::{Kind, Summary, encode};
use kubewright_meta::{ApiError, object};
use kubewright_store::{Change, Expect, Memory, Name, Snapshot};
use serde_json::Value;

use crate::engine::{Engine, definitions};

/// How many bytes are removed before watches get a chance to read: far fewer than a collection keeps of its past.
const BATCH: usize = 2 << 20;
/// What an event costs beside its object.
const EVENT: usize = 4096;

/// What is there now is what [`reset`] goes back to. Called when a new cluster has its first objects; later
/// calls change nothing.
pub(crate) fn keep_origin(engine: &Engine) {
    engine.epochs().keep_origin(engine.snapshot());
}

/// Puts the cluster back into the state in which it was started: every object that is not one of the first goes, at
/// once and whatever its finalizers and grace periods say, definitions with their kinds and objects too; the first
/// objects that were changed or deleted are put back.
///
/// It is one sequence: no write is committed between its first step and its last. A write that began before and had
/// not been committed finds what it was about gone (404), or, a creation, is refused (409): it was admitted into a
/// cluster that is no more. Readers may see a part of the sequence while it runs; when it has returned, all of it has
/// happened.
///
/// Open watches are told of each object that goes (`DELETED`), comes back (`ADDED`) or is put back (`MODIFIED`), and
/// go on. Revisions only rise. What objects used (addresses and ports of services, quotas) is free again. An object
/// that was deleted and comes back has a new uid; one that is there keeps its own.
///
/// # Errors
/// 500 when the store has failed.
pub async fn reset(engine: &Engine) -> Result<(), ApiError> {
    let origin = origin(engine).await?;
    // In this order: who holds the one waits for the other.
    let _definitions = engine.definitions().following().await;
    let _alone = engine.epochs().next().await;
    let now = engine.snapshot();
    let kinds = stored_kinds(engine);
    // Who is told that a definition is gone, or is as it was at first, finds it so.
    definitions::reload(engine, &origin);
    remove_others(engine, &now, &origin, &kinds).await?;
    put_back(engine, &now, &origin, &kinds).await?;
    // Once more: a kind knows in which versions its objects are stored, and those that came since are gone only now.
    definitions::reload(engine, &engine.snapshot());
    Ok(())
}

/// What a reset goes back to: what was kept, else (a store that outlived its process) what a new cluster of these
/// settings has.
async fn origin(engine: &Engine) -> Result<Snapshot<Summary>, ApiError> {
    let made = async || {
        let twin = Engine::with(engine.world().clone(), Arc::new(Memory::new()), engine.settings().clone());
        Box::pin(crate::bootstrap::bootstrap(&twin)).await?;
        Ok(twin.snapshot())
    };
    engine.epochs().origin(made).await
}

/// The kinds by the collections of their objects, in the version in which these are stored.
fn stored_kinds(engine: &Engine) -> BTreeMap<Name, Arc<Kind>> {
    let mut kinds: BTreeMap<Name, Arc<Kind>> = BTreeMap::new();
    for kind in engine.kinds().iter() {
        if kind.is_storage() || !kinds.contains_key(&kind.collection) {
            kinds.insert(Arc::clone(&kind.collection), Arc::clone(kind));
        }
    }
    kinds
}

/// Custom objects first, then those of namespaces, then all others: what is told of first is what depends on others.
async fn remove_others(
    engine: &Engine,
    now: &Snapshot<Summary>,
    origin: &Snapshot<Summary>,
    kinds: &BTreeMap<Name, Arc<Kind>>,
) -> Result<(), ApiError> {
    let mut collections: Vec<&Name> = now.collections().collect();
    collections.sort_by_key(|name| match kinds.get(*name) {
        Some(kind) if kind.custom.is_some() => 0,
        Some(kind) if kind.namespaced() => 1,
        _ => 2,
    });
    let mut told = 0;
    for collection in collections {
        let all = now.range(collection, "", None);
        for entry in all.filter(|entry| origin.get(collection, &entry.key).is_none()) {
            told += EVENT + entry.bytes.len();
            if told > BATCH {
                told = 0;
                tokio::task::yield_now().await;
            }
            let last = Change::Delete(encode::last_state(entry));
            step(engine, collection, &entry.key, Expect::At(entry.revision), last).await?;
        }
    }
    Ok(())
}

async fn put_back(
    engine: &Engine,
    now: &Snapshot<Summary>,
    origin: &Snapshot<Summary>,
    kinds: &BTreeMap<Name, Arc<Kind>>,
) -> Result<(), ApiError> {
    for collection in origin.collections() {
        let Some(kind) = kinds.get(collection) else { continue };
        for first in origin.range(collection, "", None) {
            let there = now.get(collection, &first.key);
            if there.is_some_and(|there| there.revision == first.revision) {
                continue;
            }
            let mut object = encode::value(kind, first);
            let expect = match there {
                Some(there) => {
                    let current = encode::value(kind, there);
                    for field in ["uid", "creationTimestamp"] {
                        object::set_meta(&mut object, field, current["metadata"].get(field).cloned());
                    }
                    if same_but_version(&object, &current) {
                        continue;
                    }
                    Expect::At(there.revision)
                }
                None => {
                    object::set_meta(&mut object, "uid", Some(engine.world().dice.uid().into()));
                    let time = object::time(engine.world().clock.now());
                    object::set_meta(&mut object, "creationTimestamp", Some(time));
                    Expect::Absent
                }
            };
            let put = Change::Put(encode::draft(kind, object));
            step(engine, collection, &first.key, expect, put).await?;
        }
    }
    Ok(())
}

/// One commit, which nothing can come before: the gate is closed.
async fn step(
    engine: &Engine,
    collection: &Name,
    key: &Name,
    expect: Expect,
    change: Change<Summary>,
) -> Result<(), ApiError> {
    let outcome = engine.store().commit(collection, key, expect, change).await;
    outcome.map(drop).map_err(|error| ApiError::internal(&error.to_string()))
}

/// Whether two states of an object differ in nothing but their version.
fn same_but_version(one: &Value, other: &Value) -> bool {
    let stripped = |object: &Value| {
        let mut object = object.clone();
        object::set_meta(&mut object, "resourceVersion", None);
        object
    };
    stripped(one) == stripped(other)
}
