//! The ReplicaSet controller: as many pods as `spec.replicas` says (`pkg/controller/replicaset`).

mod plan;
mod ranking;
mod status;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kubewright_runtime::{Context, Controller, Deletion, Error, EventType, Key, Outcome, Reconciler, owner};

use self::plan::Step;
use self::status::Failure;
use crate::claims::{self, Selectors};
use crate::{is_namespace_terminating, pod};

/// The controller, which runs under the name of its events' source.
#[must_use]
pub(crate) fn controller() -> Controller {
    let selectors = Selectors::default();
    let adopters = selectors.clone();
    Controller::new("replicaset-controller", Replication { selectors })
        .for_kind::<ReplicaSet>()
        .owns::<Pod>()
        .watches(move |pod: &Pod| adopters.adopters(&pod.metadata))
}

struct Replication {
    selectors: Selectors,
}

impl Reconciler for Replication {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(set) = ctx.get::<ReplicaSet>(key) else {
            self.selectors.forget(key);
            return Ok(Outcome::Done);
        };
        let Some(spec) = &set.spec else { return Ok(Outcome::Done) };
        self.selectors.set(key, &spec.selector);

        let pods = ctx.list::<Pod>(key.namespace.as_deref());
        let pods = claims::claim(ctx, &*set, &spec.selector, pods, pod::is_active).await?;
        let acted = act(ctx, &set, &pods).await;
        let again = write_status(ctx, key, acted.as_ref().err()).await?;
        match acted {
            Ok(()) => Ok(again.map_or(Outcome::Done, Outcome::RequeueAfter)),
            Err(failed) => Err(failed.error),
        }
    }
}

/// A write about a pod that failed, and what the status is to say about it.
struct Failed {
    failure: Failure,
    error: Error,
}

async fn act(ctx: &Context, set: &ReplicaSet, pods: &[Arc<Pod>]) -> Result<(), Failed> {
    let active: Vec<_> = pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect();
    let now = ctx.world().clock.now();
    match plan::step(set, &active, || siblings(ctx, set), now) {
        Step::Settled => Ok(()),
        Step::Create(count) => create(ctx, set, count).await,
        Step::Delete(surplus) => delete(ctx, set, &surplus).await,
    }
}

/// One after the other, up to the first refusal: what one pod is refused for, the next would be too.
async fn create(ctx: &Context, set: &ReplicaSet, count: usize) -> Result<(), Failed> {
    let new = plan::new_pod(set);
    for _ in 0..count {
        match ctx.create(&new).await {
            Ok(pod) => {
                let name = pod.metadata.name.unwrap_or_default();
                ctx.event(set, EventType::Normal, "SuccessfulCreate", &format!("Created pod: {name}")).await;
            }
            // No pod will ever be let into this namespace again.
            Err(error) if is_namespace_terminating(&error) => return Ok(()),
            Err(error) => {
                let note = format!("Error creating: {error}");
                ctx.event(set, EventType::Warning, "FailedCreate", &note).await;
                let failure = Failure { reason: "FailedCreate", message: error.to_string() };
                return Err(Failed { failure, error });
            }
        }
    }
    Ok(())
}

/// All of them; the first refusal is told.
async fn delete(ctx: &Context, set: &ReplicaSet, surplus: &[Arc<Pod>]) -> Result<(), Failed> {
    let mut first = None;
    for pod in surplus {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let uid = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams { preconditions: Some(uid), ..DeleteParams::default() };
        match ctx.delete::<Pod>(&Key::of(&**pod), params).await {
            Ok(Deletion::Absent) => {}
            Ok(Deletion::Gone | Deletion::Terminating(_)) => {
                ctx.event(set, EventType::Normal, "SuccessfulDelete", &format!("Deleted pod: {name}")).await;
            }
            Err(error) => {
                let note = format!("Error deleting: {error}");
                ctx.event(set, EventType::Warning, "FailedDelete", &note).await;
                let failure = Failure { reason: "FailedDelete", message: error.to_string() };
                first.get_or_insert(Failed { failure, error });
            }
        }
    }
    first.map_or(Ok(()), Err)
}

/// The pods of all ReplicaSets with the same controller, its own included.
fn siblings(ctx: &Context, set: &ReplicaSet) -> Vec<Arc<Pod>> {
    let pods_of = |set: &ReplicaSet| ctx.owned_by::<Pod>(set.metadata.uid.as_deref().unwrap_or_default());
    match owner::controller_of(&set.metadata) {
        None => pods_of(set),
        Some(controller) => {
            ctx.owned_by::<ReplicaSet>(&controller.uid).iter().flat_map(|set| pods_of(set)).collect()
        }
    }
}

/// Writes the status as it is after the pods were made or deleted, if that changes it; tells when to look again.
async fn write_status(ctx: &Context, key: &Key, failed: Option<&Failed>) -> Result<Option<Duration>, Error> {
    let Some(set) = ctx.get::<ReplicaSet>(key) else { return Ok(None) };
    let uid = set.metadata.uid.as_deref().unwrap_or_default();
    let pods: Vec<_> = ctx
        .owned_by::<Pod>(uid)
        .into_iter()
        .filter(|pod| owner::controller_of(&pod.metadata).is_some_and(|controller| controller.uid == uid))
        .collect();
    let now = ctx.world().clock.now();
    let (status, again) = status::status(&set, &pods, failed.map(|failed| &failed.failure), now);
    if set.status.as_ref() != Some(&status) {
        ctx.update_status(&ReplicaSet { status: Some(status), ..(*set).clone() }).await?;
    }
    Ok(again)
}

/// `spec.replicas`.
fn replicas(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// `spec.minReadySeconds`.
fn min_ready_seconds(set: &ReplicaSet) -> u64 {
    let seconds = set.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
    seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use serde_json::json;

    /// A ReplicaSet `web` that wants this many pods labelled `app=web`.
    pub(super) fn replica_set(replicas: i32) -> ReplicaSet {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "uid-web", "generation": 1},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}},
            },
        }))
        .expect("a ReplicaSet")
    }
}
