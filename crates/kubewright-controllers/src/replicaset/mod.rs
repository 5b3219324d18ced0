//! The controllers of ReplicaSets and ReplicationControllers: as many pods as `spec.replicas` says
//! (`pkg/controller/replicaset`, `pkg/controller/replication`).

mod plan;
mod ranking;
mod replicated;
mod status;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler, owner};

use self::plan::Step;
use self::replicated::Replicated;
use self::status::ReplicaFailure;
use crate::claims::{self, Selectors};
use crate::{pod, pod_control};

/// The controller of ReplicaSets.
#[must_use]
pub(crate) fn controller() -> Controller {
    of::<ReplicaSet>()
}

/// The controller of ReplicationControllers.
#[must_use]
pub(crate) fn replication_controller() -> Controller {
    of::<ReplicationController>()
}

/// The controller of a kind; it runs under the name of its events' source.
fn of<R: Replicated>() -> Controller {
    let selectors = Selectors::default();
    let adopters = selectors.clone();
    Controller::new(R::CONTROLLER, Replication { selectors, kind: PhantomData::<fn() -> R> })
        .for_kind::<R>()
        .owns::<Pod>()
        .watches(move |pod: &Pod| adopters.adopters(&pod.metadata))
}

struct Replication<R> {
    selectors: Selectors,
    kind: PhantomData<fn() -> R>,
}

impl<R: Replicated> Reconciler for Replication<R> {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(set) = ctx.get::<R>(key) else {
            self.selectors.forget(key);
            return Ok(Outcome::Done);
        };
        let Some(selector) = set.selector() else { return Ok(Outcome::Done) };
        self.selectors.set(key, &selector);

        let pods = ctx.list::<Pod>(key.namespace.as_deref());
        let pods = claims::claim(ctx, &*set, &selector, pods, pod::is_active).await?;
        let acted = act(ctx, &*set, &pods).await;
        let again = write_status::<R>(ctx, key, &selector, acted.as_ref().err()).await?;
        match acted {
            Ok(Acted::All) => Ok(again.map_or(Outcome::Done, Outcome::RequeueAfter)),
            // The pods that it made itself do not wake it.
            Ok(Acted::Burst) => Ok(Outcome::RequeueAfter(Duration::ZERO)),
            Err(failed) => Err(failed.error),
        }
    }
}

/// How far a pass came.
enum Acted {
    /// There are as many pods as are wanted.
    All,
    /// Some more are to be made or deleted.
    Burst,
}

/// A write about a pod that failed, and what the status is to say about it.
struct Failed {
    failure: ReplicaFailure,
    error: Error,
}

async fn act<R: Replicated>(ctx: &Context, set: &R, pods: &[Arc<Pod>]) -> Result<Acted, Failed> {
    let active: Vec<_> = pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect();
    let now = ctx.world().clock.now();
    let acted = |count: usize| if count < plan::BURST { Acted::All } else { Acted::Burst };
    match plan::step(set, &active, || siblings(ctx, set), now) {
        Step::Settled => Ok(Acted::All),
        Step::Create(count) => {
            let template = set.template().cloned().unwrap_or_default();
            let new = vec![pod_control::from_template(set, template); count];
            pod_control::create(ctx, set, new).await.map(|()| acted(count)).map_err(|error| Failed {
                failure: ReplicaFailure { reason: "FailedCreate", message: error.to_string() },
                error,
            })
        }
        Step::Delete(surplus) => {
            let deleted = pod_control::delete(ctx, set, &surplus).await;
            deleted.map(|()| acted(surplus.len())).map_err(|error| Failed {
                failure: ReplicaFailure {
                    reason: "FailedDelete",
                    message: format!("unable to delete pods: {error}"),
                },
                error,
            })
        }
    }
}

/// The pods of all objects of the kind with the same controller, its own included.
fn siblings<R: Replicated>(ctx: &Context, set: &R) -> Vec<Arc<Pod>> {
    let pods_of = |set: &R| ctx.owned_by::<Pod>(set.meta().uid.as_deref().unwrap_or_default());
    match owner::controller_of(set.meta()) {
        None => pods_of(set),
        Some(controller) => ctx.owned_by::<R>(&controller.uid).iter().flat_map(|set| pods_of(set)).collect(),
    }
}

/// Writes the status as it is after the pods were made or deleted, if that changes it; tells when to look again.
async fn write_status<R: Replicated>(
    ctx: &Context,
    key: &Key,
    selector: &LabelSelector,
    failed: Option<&Failed>,
) -> Result<Option<Duration>, Error> {
    let Some(set) = ctx.get::<R>(key) else { return Ok(None) };
    let pods = ctx.owned_by::<Pod>(set.meta().uid.as_deref().unwrap_or_default());
    let pods = claims::kept(&*set, selector, pods);
    let now = ctx.world().clock.now();
    let (status, again) = status::status(&*set, &pods, failed.map(|failed| &failed.failure), now);
    if set.report().as_ref() != Some(&status) {
        ctx.update_status(&set.reporting(status)).await?;
    }
    Ok(again)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use serde_json::json;

    /// A ReplicaSet `web` that wants this many pods labelled `app=web`.
    pub(super) fn replica_set(replicas: i32) -> ReplicaSet {
        kubewright_objects::from_value(json!({
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
