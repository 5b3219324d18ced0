//! The APIServices that the server keeps by itself, and the condition of those that it serves
//! (`k8s.io/kube-aggregator/pkg/controllers/{autoregister,status/local}`,
//! `k8s.io/kubernetes/pkg/controlplane/controller/crdregistration`).

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::try_join_all;
use kubewright_codec::body::Decoded;
use kubewright_kinds::built_in::apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITION;
use kubewright_kinds::built_in::apiregistration::api_service::API_SERVICE;
use kubewright_kinds::rules::api_services::availability::{self, Finding};
use kubewright_kinds::rules::api_services::local::{self, Step};
use kubewright_kinds::{Kind, encode};
use kubewright_meta::{ApiError, object};
use serde_json::Value;

use crate::engine::{Engine, MANAGER, SERVER};
use crate::request::{Call, DeleteOptions, WriteOptions};
use crate::verbs::{Part, create, delete, update};

/// After a commit of an APIService: what the server keeps is put right, and the condition of what it serves itself.
pub(super) async fn changed(engine: &Engine, kind: &Arc<Kind>, name: &str) {
    let current = stored(engine, kind, name);
    let desired = desired_of(engine, name);
    // Changed meanwhile: who did that comes here too.
    let _ = Box::pin(take(engine, kind, name, current.as_ref(), desired.as_ref(), false)).await;
    let Some(current) = stored(engine, kind, name) else { return };
    let is_local = current["spec"]["service"].is_null();
    if is_local && !availability::says(&current, &Finding::local()) {
        let _ = Box::pin(report(engine, kind, name, &Finding::local())).await;
    }
}

/// After a change of a definition of this group: each version that definitions serve has an APIService, and no other version.
pub(super) async fn sync_group(engine: &Engine, group: &str) {
    let kinds = engine.kinds();
    let Some(kind) = kinds.find(&API_SERVICE) else { return };
    let ending = format!(".{group}");
    let snapshot = engine.snapshot();
    let there = snapshot.range(&kind.collection, "", None).filter(|entry| entry.key.ends_with(&ending));
    let mut names: BTreeSet<String> = there.map(|entry| entry.key.to_string()).collect();
    names.extend(served_versions(engine, group).iter().map(|version| local::name(group, version)));
    for name in names {
        let (current, desired) = (stored(engine, kind, &name), desired_of(engine, &name));
        let _ = Box::pin(take(engine, kind, &name, current.as_ref(), desired.as_ref(), false)).await;
    }
}

/// When the server starts: those of the built-in versions are written, all at once, and those that a server before this one
/// has left behind go.
pub(crate) async fn begin(engine: &Engine) -> Result<(), ApiError> {
    let kinds = engine.kinds();
    let Some(kind) = kinds.find(&API_SERVICE) else { return Ok(()) };
    let mut desired = local::of_built_in(&kinds);
    let custom: BTreeSet<(&str, &str)> = kinds
        .iter()
        .filter(|kind| kind.custom.is_some())
        .map(|kind| (kind.group.as_str(), kind.version.as_str()))
        .collect();
    desired.extend(custom.into_iter().map(|(group, version)| local::of_custom(group, version)));
    let wanted: BTreeSet<&str> = desired.iter().map(object::name).collect();
    let snapshot = engine.snapshot();
    let others: Vec<Value> = snapshot
        .range(&kind.collection, "", None)
        .filter(|entry| !wanted.contains(&*entry.key))
        .map(|entry| encode::value(kind, entry))
        .collect();
    let wanted = desired.iter().map(async |one| {
        let name = object::name(one);
        take(engine, kind, name, stored(engine, kind, name).as_ref(), Some(one), true).await
    });
    try_join_all(wanted).await?;
    for other in &others {
        let name = object::name(other);
        take(engine, kind, name, Some(other), desired_of(engine, name).as_ref(), true).await?;
    }
    Ok(())
}

/// Writes what was found out about an APIService into its condition.
///
/// # Errors
/// What the rules of the kind have against it.
pub async fn report(
    engine: &Engine,
    kind: &Arc<Kind>,
    name: &str,
    finding: &Finding,
) -> Result<(), ApiError> {
    let now = object::time(engine.world().clock.now());
    write(engine, kind, name, Part::Status, |object| availability::set(object, finding, now.clone())).await
}

/// Writes a change of an APIService as a client would, which starts again when another write comes between. One that is gone is left.
async fn write(
    engine: &Engine,
    kind: &Arc<Kind>,
    name: &str,
    part: Part,
    change: impl Fn(&mut Value),
) -> Result<(), ApiError> {
    const MOST: usize = 10;
    let call = Call { kind, namespace: "", name, user: &SERVER };
    for _ in 0..MOST {
        let Some(mut object) = stored(engine, kind, name) else { return Ok(()) };
        change(&mut object);
        let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() };
        match Box::pin(update(engine, call, part, Decoded::of(object), options)).await {
            Err(error) if error.reason == "Conflict" => {}
            done => return gone_is_fine(done.map(drop)),
        }
    }
    Ok(())
}

/// Does what is to be done about an APIService of that name.
async fn take(
    engine: &Engine,
    kind: &Arc<Kind>,
    name: &str,
    current: Option<&Value>,
    desired: Option<&Value>,
    starts: bool,
) -> Result<(), ApiError> {
    let call = Call { kind, namespace: "", name, user: &SERVER };
    match (local::step(current, desired, starts), desired) {
        (Step::Create, Some(desired)) => {
            let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::default() };
            let call = Call { name: "", ..call };
            match create(engine, call, Decoded::of(desired.clone()), options).await {
                // Created in the meantime.
                Err(error) if error.reason == "AlreadyExists" => Ok(()),
                done => done.map(drop),
            }
        }
        (Step::Replace, Some(desired)) => {
            write(engine, kind, name, Part::Main, |object| object["spec"] = desired["spec"].clone()).await
        }
        (Step::Delete, _) => {
            let uid = current.map(|current| object::uid(current).to_owned());
            let options = DeleteOptions { uid, ..DeleteOptions::default() };
            gone_is_fine(delete(engine, call, &options).await.map(drop))
        }
        _ => Ok(()),
    }
}

/// Deleted or changed in the meantime: who did that has a follow-up, too.
fn gone_is_fine(done: Result<(), ApiError>) -> Result<(), ApiError> {
    match done {
        Err(error) if matches!(&*error.reason, "NotFound" | "Conflict") => Ok(()),
        done => done,
    }
}

fn stored(engine: &Engine, kind: &Kind, name: &str) -> Option<Value> {
    engine.snapshot().get(&kind.collection, name).map(|entry| encode::value(kind, entry))
}

/// The one of that name that there is to be: that of a built-in version, or of one which a definition serves.
fn desired_of(engine: &Engine, name: &str) -> Option<Value> {
    let (version, group) = name.split_once('.')?;
    if engine.kinds().in_version(group, version).any(|kind| kind.custom.is_none()) {
        return local::of_built_in_version(group, version);
    }
    served_versions(engine, group).contains(version).then(|| local::of_custom(group, version))
}

/// The versions of a group that definitions serve, or would if their names were theirs.
fn served_versions(engine: &Engine, group: &str) -> BTreeSet<String> {
    let kinds = engine.kinds();
    let custom = kinds.iter().filter(|kind| kind.custom.is_some() && kind.group == group);
    let mut versions: BTreeSet<String> = custom.map(|kind| kind.version.clone()).collect();
    let snapshot = engine.snapshot();
    for name in engine.definitions().waiting_in(group) {
        let Some(entry) = snapshot.get(CUSTOM_RESOURCE_DEFINITION.collection(), &name) else { continue };
        let definition: Value = serde_json::from_slice(&entry.bytes).unwrap_or_default();
        let served = definition["spec"]["versions"].as_array().into_iter().flatten();
        let served = served.filter(|version| version["served"] == true);
        versions.extend(served.filter_map(|version| version["name"].as_str()).map(str::to_owned));
    }
    versions
}
