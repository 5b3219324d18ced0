//! After a commit of a CustomResourceDefinition: its status is brought up to date, and one that is being deleted takes its
//! objects with it, at once and with no controller.

use std::sync::Arc;

use kubewright_kinds::{Kind, definition, encode};
use kubewright_meta::object;
use kubewright_store::{Change, Expect, Name};
use serde_json::Value;

use crate::engine::definitions::{is_definition, made_by};
use crate::engine::{Engine, MANAGER, SERVER};
use crate::request::{Call, DeleteOptions, WriteOptions};
use crate::verbs::definitions::{CLEANUP, set_terminating};
use crate::verbs::delete::{self, is_finished};
use crate::verbs::{OwnedWrite, Part};

use super::api_services;

/// After a commit of a definition: its status is brought up to date, and a definition that is being deleted takes
/// its objects with it. Names that it gave up are there for others.
pub(super) async fn changed(engine: &Engine, kind: &Arc<Kind>, name: &str) {
    let _turn = engine.definitions().following().await;
    let established = establish(engine, kind, name).await;
    register_versions(engine, name).await;
    let Some(definition) = established else { return };
    names_freed(engine, kind, &definition).await;
    if object::is_deleting(&definition) {
        delete_objects_of(engine, kind, name).await;
    }
}

/// Registers the versions that the definitions of a group serve. A definition is named after its plural and its group.
async fn register_versions(engine: &Engine, definition: &str) {
    if let Some((_, group)) = definition.split_once('.') {
        Box::pin(api_services::sync_group(engine, group)).await;
    }
}

/// Looks again at the definitions of the same group that lack a name
/// (`apiextensions-apiserver/pkg/controller/status/naming_controller.go`, `requeueAllOtherGroupCRDs`).
async fn names_freed(engine: &Engine, definitions: &Arc<Kind>, by: &Value) {
    let others = engine.definitions().waiting_beside(by);
    for other in others {
        establish(engine, definitions, &other).await;
    }
}

/// Brings the status of a definition up to date. What it is now; nothing when it is gone.
async fn establish(engine: &Engine, kind: &Arc<Kind>, name: &str) -> Option<Value> {
    let key: Name = name.into();
    let epoch = engine.epoch();
    while let Some(entry) = engine.snapshot().get(&kind.collection, &key).cloned() {
        let current = encode::value(kind, &entry);
        let mut next = current.clone();
        definition::status(&mut next, &engine.kinds(), engine.world().clock.now());
        if object::is_deleting(&next) {
            terminate(&mut next, engine.world().clock.now());
        }
        let now = if next == current {
            current
        } else {
            let call = Call { kind, namespace: "", name, user: &SERVER };
            let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() };
            let (subresource, live) = (Part::Status.subresource(), Some(&current));
            OwnedWrite { engine, call, subresource, options: &options, live }.own(&mut next);
            let change = Change::Put(encode::draft(kind, next.clone()));
            match engine.commit(epoch, kind, &key, Expect::At(entry.revision), change).await {
                Ok(Some(_)) => next,
                Ok(None) => continue,
                Err(_) => current,
            }
        };
        engine.definitions().note(&now);
        return Some(now);
    }
    engine.definitions().forget(name);
    None
}

/// Goes on with what a server that was stopped has left half done: definitions that are not established yet, or on
/// their way out.
pub(crate) async fn resume(engine: &Engine) {
    let Some(definitions) = engine.kinds().iter().find(|kind| is_definition(kind)).cloned() else { return };
    let snapshot = engine.snapshot();
    for entry in snapshot.range(&definitions.collection, "", None) {
        changed(engine, &definitions, &entry.key).await;
    }
}

/// Deletes the objects of a definition straight from the store: no admission is asked (`CRDFinalizer.deleteInstances`).
async fn delete_objects_of(engine: &Engine, definitions: &Arc<Kind>, name: &str) {
    let kinds = engine.kinds();
    let made: Vec<_> = kinds.iter().filter(|kind| made_by(kind, name)).collect();
    // In the version that they are stored in: nobody has to convert them for that.
    let stored = made.iter().find(|kind| kind.is_storage()).or(made.first());
    if let Some(kind) = stored.map(|kind| Arc::clone(kind)) {
        let call = Call { kind: &kind, namespace: "", name: "", user: &SERVER };
        let all: Vec<_> = engine.snapshot().range(&kind.collection, "", None).cloned().collect();
        for entry in all {
            let object = encode::value(&kind, &entry);
            let (namespace, name) = (object::namespace(&object), object::name(&object));
            // Gone meanwhile, or held by a finalizer: both are fine, the last one to go finishes the definition.
            let call = Call { namespace, name, ..call };
            let _ = Box::pin(delete::delete_admitted(engine, call, &DeleteOptions::default())).await;
        }
    }
    finish_definition(engine, definitions, name).await;
}

/// After an object has gone: a definition that was only waiting for it goes too.
pub(in crate::verbs) async fn object_gone(engine: &Engine, kind: &Kind) {
    let Some(custom) = &kind.custom else { return };
    let kinds = engine.kinds();
    let mut made = kinds.iter().filter(|kind| made_by(kind, &custom.definition));
    if made.any(|kind| kind.custom.as_ref().is_some_and(|custom| !custom.terminating)) {
        return;
    }
    if let Some(definitions) = kinds.iter().find(|kind| is_definition(kind)) {
        finish_definition(engine, definitions, &custom.definition).await;
    }
}

/// Lets a terminating definition go when none of its objects is left.
async fn finish_definition(engine: &Engine, definitions: &Arc<Kind>, name: &str) {
    let key: Name = name.into();
    let epoch = engine.epoch();
    let snapshot = engine.snapshot();
    let Some(entry) = snapshot.get(&definitions.collection, &key) else { return };
    let mut next = encode::value(definitions, entry);
    let left = engine.kinds().iter().any(|kind| made_by(kind, name) && snapshot.len(&kind.collection) > 0);
    if !object::is_deleting(&next) || left {
        return;
    }
    object::remove_finalizer(&mut next, CLEANUP);
    let goes = is_finished(definitions, &next);
    let change = match goes {
        true => Change::Delete(encode::last_state(entry)),
        false => Change::Put(encode::draft(definitions, next.clone())),
    };
    let outcome = engine.commit(epoch, definitions, &key, Expect::At(entry.revision), change).await;
    if matches!(outcome, Ok(Some(_))) {
        engine.definitions().forget(name);
        names_freed(engine, definitions, &next).await;
        register_versions(engine, name).await;
    }
}

/// Its objects are being deleted (`apiextensions-apiserver/pkg/controller/finalizer`).
fn terminate(definition: &mut Value, now: jiff::Timestamp) {
    set_terminating(definition, "InstanceDeletionInProgress", "CustomResource deletion is in progress", now);
}
