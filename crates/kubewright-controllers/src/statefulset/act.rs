//! Carrying out what a StatefulSet has to do, and telling people (`pkg/controller/statefulset/stateful_pod_control.go`).

use futures::future::join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kubewright_runtime::{Context, Error, EventType, Key};

use super::ordinals;
use super::plan::{Stage, Task};
use super::storage::Storage;
use crate::pod_control::{as_seen, slow_start};

/// What was done about a pod, in words of events.
#[derive(Clone, Copy)]
enum Verb {
    Create,
    Update,
    Delete,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Update => "Update",
            Self::Delete => "Delete",
        }
    }
}

/// Carries out a stage, slowly at first; after a batch with a failure no other follows.
///
/// # Errors
/// The first failure.
pub(super) async fn stage(ctx: &Context, set: &StatefulSet, stage: &Stage) -> Result<(), Error> {
    for batch in slow_start(stage) {
        let answers = join_all(batch.iter().map(|task| perform(ctx, set, task))).await;
        answers.into_iter().collect::<Result<(), Error>>()?;
    }
    Ok(())
}

async fn perform(ctx: &Context, set: &StatefulSet, task: &Task) -> Result<(), Error> {
    match task {
        Task::Create(pod, storage) => create(ctx, set, pod, storage).await,
        Task::Supply(pod, storage) => {
            supply(ctx, set, pod, storage).await?;
            record_pod_failure(ctx, set, Verb::Update, pod, own(ctx, set, storage).await)
        }
        Task::Repair(pod, storage) => repair(ctx, set, pod, storage).await,
        Task::Bequeath(_, storage) => own(ctx, set, storage).await,
        Task::Delete(pod) => {
            let deleted = ctx.delete::<Pod>(&Key::of(&**pod), as_seen(pod)).await.map(|_| ());
            record_pod_event(ctx, set, Verb::Delete, pod, deleted)
        }
    }
}

async fn create(ctx: &Context, set: &StatefulSet, pod: &Pod, storage: &Storage) -> Result<(), Error> {
    record_pod_failure(ctx, set, Verb::Create, pod, supply(ctx, set, pod, storage).await)?;
    let created = ctx.create(pod).await.map(|_| ());
    if created.as_ref().is_err_and(Error::is_already_exists) {
        return created;
    }
    record_pod_failure(ctx, set, Verb::Update, pod, own(ctx, set, storage).await)?;
    record_pod_event(ctx, set, Verb::Create, pod, created)
}

async fn repair(ctx: &Context, set: &StatefulSet, pod: &Pod, storage: &Storage) -> Result<(), Error> {
    record_pod_failure(ctx, set, Verb::Update, pod, supply(ctx, set, pod, storage).await)?;
    record_pod_failure(ctx, set, Verb::Update, pod, own(ctx, set, storage).await)?;
    let updated = ctx.update(pod).await.map(|_| ());
    record_pod_event(ctx, set, Verb::Update, pod, updated)
}

/// Creates the missing claims; all are tried.
async fn supply(ctx: &Context, set: &StatefulSet, pod: &Pod, storage: &Storage) -> Result<(), Error> {
    let mut failures = Vec::new();
    for claim in &storage.missing {
        let created = ctx.create(claim).await.map(|_| ());
        record_claim_event(ctx, set, pod, claim, &created);
        if let Err(error) = created {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            failures.push(format!("failed to create PVC {name}: {error}"));
        }
    }
    failures.extend(storage.going.iter().map(|name| format!("pvc {name} is being deleted")));
    match failures.as_slice() {
        [] => Ok(()),
        [failure] => Err(Error::new(failure.clone())),
        failures => Err(Error::new(format!("[{}]", failures.join(", ")))),
    }
}

/// Writes the owners of claims.
async fn own(ctx: &Context, set: &StatefulSet, storage: &Storage) -> Result<(), Error> {
    if storage.owners.is_empty() {
        return Ok(());
    }
    for name in &storage.foreign {
        let note = format!(
            "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, \
             the retention policy is ignored for this claim"
        );
        ctx.event(set, EventType::Warning, "ConflictingController", &note);
    }
    for claim in &storage.owners {
        if let Err(error) = ctx.update(claim).await {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            let message = format!("could not update claim {name} for delete policy ownerRefs: {error}");
            return Err(Error::new(message));
        }
    }
    Ok(())
}

/// Tells what came of it, and hands it on.
fn record_pod_event(
    ctx: &Context,
    set: &StatefulSet,
    verb: Verb,
    pod: &Pod,
    done: Result<(), Error>,
) -> Result<(), Error> {
    if done.is_ok() {
        let (verb, name) = (verb.name(), pod.metadata.name.as_deref().unwrap_or_default());
        let note = format!("{verb} Pod {name} in StatefulSet {} successful", ordinals::name(set));
        ctx.event(set, EventType::Normal, &format!("Successful{verb}"), &note);
    }
    record_pod_failure(ctx, set, verb, pod, done)
}

/// Tells if it failed, and hands it on.
fn record_pod_failure(
    ctx: &Context,
    set: &StatefulSet,
    verb: Verb,
    pod: &Pod,
    done: Result<(), Error>,
) -> Result<(), Error> {
    if let Err(error) = &done {
        let (verb, name) = (verb.name(), pod.metadata.name.as_deref().unwrap_or_default());
        let note = format!("{verb} Pod {name} in StatefulSet {} failed error: {error}", ordinals::name(set));
        ctx.event(set, EventType::Warning, &format!("Failed{verb}"), &note);
    }
    done
}

fn record_claim_event(
    ctx: &Context,
    set: &StatefulSet,
    pod: &Pod,
    claim: &PersistentVolumeClaim,
    created: &Result<(), Error>,
) {
    let claim = claim.metadata.name.as_deref().unwrap_or_default();
    let (pod, set_name) = (pod.metadata.name.as_deref().unwrap_or_default(), ordinals::name(set));
    match created {
        Ok(()) => {
            let note = format!("Create Claim {claim} Pod {pod} in StatefulSet {set_name} success");
            ctx.event(set, EventType::Normal, "SuccessfulCreate", &note);
        }
        Err(Error::OwnerGone(_)) => {}
        Err(error) if error.is_already_exists() => {}
        Err(error) => {
            let note =
                format!("Create Claim {claim} for Pod {pod} in StatefulSet {set_name} failed error: {error}");
            ctx.event(set, EventType::Warning, "FailedCreate", &note);
        }
    }
}
