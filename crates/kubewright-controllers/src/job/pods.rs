//! What a Job asks about its pods.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kubewright_runtime::finalizer;

use crate::pod;

/// The finalizer of a pod that its Job has not counted yet.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Annotation and label: which of the completions a pod is for.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How many pods of its index failed before this one.
pub(super) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// How many more did whose failure the policy ignores.
pub(super) const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// Whether the pod is not counted yet.
pub(super) fn is_tracked(pod: &Pod) -> bool {
    finalizer::has(pod, TRACKING)
}

/// The completion that it is for.
pub(super) fn index(pod: &Pod) -> Option<u32> {
    pod.metadata.annotations.as_ref()?.get(INDEX)?.parse().ok()
}

/// How many pods of its index failed before it; 0 where nobody says so.
pub(super) fn failures(pod: &Pod) -> i32 {
    count(pod, FAILURES)
}

/// How many pods of its index failed before it and were ignored.
pub(super) fn ignored_failures(pod: &Pod) -> i32 {
    count(pod, IGNORED_FAILURES)
}

fn count(pod: &Pod, annotation: &str) -> i32 {
    let text = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation));
    text.and_then(|text| text.parse().ok()).filter(|count| *count >= 0).unwrap_or_default()
}

/// Whether a pod is replaced only once it has ended, not as soon as it is deleted (`onlyReplaceFailedPods`).
pub(super) fn only_failed_are_replaced(job: &Job) -> bool {
    let spec = job.spec.as_ref();
    spec.is_some_and(|spec| {
        spec.pod_replacement_policy.as_deref() == Some("Failed") || spec.pod_failure_policy.is_some()
    })
}

/// Whether the pod has failed. A deleted one has, too, unless only failed ones are replaced: it may never get to say so.
pub(super) fn has_failed(pod: &Pod, only_failed_are_replaced: bool) -> bool {
    match pod::phase(pod) {
        "Failed" => true,
        "Succeeded" => false,
        _ => !only_failed_are_replaced && pod.metadata.deletion_timestamp.is_some(),
    }
}

/// When the pod ended: when its last container did, or else when it stopped being ready, when its deletion began, or when
/// it was made (`getFinishedTime` in `pkg/controller/job/backoff_utils.go`).
pub(super) fn finished_at(pod: &Pod) -> Option<Timestamp> {
    of_containers(pod)
        .or_else(|| {
            let ready = pod::condition(pod, "Ready").filter(|ready| ready.status == "False")?;
            ready.last_transition_time.as_ref().map(|time| time.0)
        })
        .or_else(|| {
            let deadline = pod.metadata.deletion_timestamp.as_ref()?.0;
            let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
            deadline.checked_sub(SignedDuration::from_secs(grace)).ok()
        })
        .or_else(|| pod.metadata.creation_timestamp.as_ref().map(|time| time.0))
}

/// When the last container ended, sidecars among them; `None` while one runs.
fn of_containers(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let sidecars: Vec<_> = pod
        .spec
        .iter()
        .flat_map(|spec| spec.init_containers.iter().flatten())
        .filter(|container| container.restart_policy.as_deref() == Some("Always"))
        .map(|container| container.name.as_str())
        .collect();
    let init = status.init_container_statuses.iter().flatten();
    let sidecars = init.filter(|status| sidecars.contains(&status.name.as_str()));
    let ended = |status: &ContainerStatus| {
        let terminated = status.state.as_ref()?.terminated.as_ref()?;
        terminated.finished_at.as_ref().map(|time| time.0)
    };
    let all: Option<Vec<_>> = status.container_statuses.iter().flatten().chain(sidecars).map(ended).collect();
    all?.into_iter().max()
}

/// The place of an active pod in the order of deletion; the smallest goes first: bound to no node, then not running, not
/// ready, ready for a short time, often restarted, young (`ActivePods` in `pkg/controller/controller_utils.go`).
pub(super) fn rank(pod: &Pod) -> impl Ord + use<> {
    let ready = pod::is_ready(pod);
    let phase = match pod::phase(pod) {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    // Where one time is missing the pod counts as the youngest.
    let ready_since = pod::ready_since(pod).filter(|_| ready).map(Reverse);
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| Reverse(time.0));
    (!pod::node_name(pod).is_empty(), phase, ready, ready_since, Reverse(pod::restarts(pod)), created)
}
