//! The writes of a pass.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kubewright_runtime::{Context, Deletion, Error, EventType, Key};
use serde_json::json;

use super::conditions::JobResult;
use super::end::End;
use super::plan::Step;
use super::pods::{TRACKING, is_tracked};
use super::view::uid;
use crate::is_namespace_terminating;

/// Does the step.
///
/// # Errors
/// The first refusal; what it was about is done by a later pass.
pub(super) async fn act(ctx: &Context, job: &Job, step: Step) -> Result<(), Error> {
    match step {
        Step::Rest => Ok(()),
        Step::Create(new) => create(ctx, job, &new).await,
        Step::Stop(pods) => {
            let mut first = None;
            for pod in &pods {
                first = first.or(delete(ctx, job, pod).await.err());
            }
            first.map_or(Ok(()), Err)
        }
        Step::Drop(pods) => {
            let mut first = None;
            for pod in &pods {
                let dropped = match untrack(ctx, pod).await {
                    Ok(()) => delete(ctx, job, pod).await,
                    Err(error) => Err(error),
                };
                first = first.or(dropped.err());
            }
            first.map_or(Ok(()), Err)
        }
    }
}

/// One after the other, up to the first refusal: what one pod is refused for, the next would be too.
async fn create(ctx: &Context, job: &Job, new: &[Pod]) -> Result<(), Error> {
    for pod in new {
        match ctx.create(pod).await {
            Ok(pod) => {
                let name = pod.metadata.name.unwrap_or_default();
                ctx.event(job, EventType::Normal, "SuccessfulCreate", &format!("Created pod: {name}"));
            }
            // No pod will ever be let into this namespace again.
            Err(error) if is_namespace_terminating(&error) => return Ok(()),
            Err(error @ Error::OwnerGone(_)) => return Err(error),
            Err(error) => {
                ctx.event(job, EventType::Warning, "FailedCreate", &format!("Error creating: {error}"));
                return Err(error);
            }
        }
    }
    Ok(())
}

async fn delete(ctx: &Context, job: &Job, pod: &Pod) -> Result<(), Error> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let uid = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
    let params = DeleteParams { preconditions: Some(uid), ..DeleteParams::default() };
    match ctx.delete::<Pod>(&Key::of(pod), params).await {
        Ok(Deletion::Absent) => Ok(()),
        Ok(Deletion::Gone | Deletion::Terminating(_)) => {
            ctx.event(job, EventType::Normal, "SuccessfulDelete", &format!("Deleted pod: {name}"));
            Ok(())
        }
        Err(error) => {
            ctx.event(job, EventType::Warning, "FailedDelete", &format!("Error deleting: {error}"));
            Err(error)
        }
    }
}

/// Takes the finalizer of the pods away; the uids of those that have none any more, and the first refusal.
pub(super) async fn release(ctx: &Context, pods: &[Arc<Pod>]) -> (BTreeSet<String>, Option<Error>) {
    let (mut released, mut first) = (BTreeSet::new(), None);
    for pod in pods {
        match untrack(ctx, pod).await {
            Ok(()) => {
                released.insert(uid(pod).to_owned());
            }
            Err(error) => first = first.or(Some(error)),
        }
    }
    (released, first)
}

/// Takes the finalizer of a pod away, whatever else became of the pod meanwhile. A pod that is gone has none.
///
/// # Errors
/// What the API server refuses.
pub(super) async fn untrack(ctx: &Context, pod: &Pod) -> Result<(), Error> {
    if !is_tracked(pod) {
        return Ok(());
    }
    let metadata = json!({"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING]});
    match ctx.patch_strategically::<Pod>(&Key::of(pod), json!({"metadata": metadata})).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Tells that the Job has ended.
pub(super) fn record_end_event(ctx: &Context, job: &Job, end: &End) {
    if end.kind == JobResult::Failure {
        return ctx.event(job, EventType::Warning, &end.reason, &end.message);
    }
    let wanted = job.spec.as_ref().and_then(|spec| spec.completions);
    let succeeded = job.status.as_ref().and_then(|status| status.succeeded).unwrap_or_default();
    if wanted.is_some_and(|wanted| succeeded > wanted) {
        let note = "Too many succeeded pods running after completion count reached";
        ctx.event(job, EventType::Warning, "TooManySucceededPods", note);
    }
    ctx.event(job, EventType::Normal, "Completed", "Job completed");
}
