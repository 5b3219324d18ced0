//! Pods that keep the finalizer of a Job that will not count them any more.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::{Context, Controller, Error, Event, Key, Outcome, Predicate, Reconciler, owner};

use super::pods::is_tracked;
use super::{act, finished, is_managed_by_another};

/// The controller of pods that have the finalizer and no Job; those of a Job that has ended or is gone are the Job
/// controller's ([`release`]).
#[must_use]
pub(crate) fn controller() -> Controller {
    Controller::new("job-orphan-pods", Orphans)
        .for_kind::<Pod>()
        .predicate(Predicate::of(|event: &Event<'_, Pod>| is_orphan(event.object())))
}

struct Orphans;

impl Reconciler for Orphans {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        if let Some(pod) = ctx.get::<Pod>(key).filter(|pod| is_orphan(pod)) {
            act::untrack(ctx, &pod).await?;
        }
        Ok(Outcome::Done)
    }
}

fn is_orphan(pod: &Pod) -> bool {
    is_tracked(pod) && owner::controller_of(&pod.metadata).is_none()
}

/// Releases the pods whose controller is, by its name, the Job `key`, unless that is still to count them: `job` is what is
/// called so now.
///
/// # Errors
/// What the API server refuses; the next pass looks again.
pub(super) async fn release(ctx: &Context, key: &Key, job: Option<&Job>) -> Result<(), Error> {
    let counting = job.filter(|job| is_managed_by_another(job) || finished(job).is_none());
    for pod in ctx.list::<Pod>(key.namespace.as_deref()) {
        let by_name = owner::controller_of(&pod.metadata).is_some_and(|controller| {
            controller.kind == "Job" && controller.api_version == "batch/v1" && controller.name == key.name
        });
        let counted = counting.is_some_and(|job| owner::is_controlled_by(&*pod, job));
        if by_name && !counted && is_tracked(&pod) {
            act::untrack(ctx, &pod).await?;
        }
    }
    Ok(())
}
