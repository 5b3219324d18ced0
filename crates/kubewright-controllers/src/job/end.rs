//! Whether a Job has come to its end, and why.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::batch::v1::JobCondition;
use k8s_openapi::api::core::v1::ContainerStatus;

use super::conditions::{self, JobResult};
use super::policies::{self, Ruling, ruling};
use super::view::View;
use crate::pod;

/// How a Job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) kind: JobResult,
    pub(super) reason: String,
    pub(super) message: String,
}

impl End {
    fn new(kind: JobResult, reason: &str, message: impl Into<String>) -> Self {
        Self { kind, reason: reason.to_owned(), message: message.into() }
    }

    fn failure(reason: &str, message: impl Into<String>) -> Self {
        Self::new(JobResult::Failure, reason, message)
    }

    fn announced(kind: JobResult, condition: &JobCondition) -> Self {
        Self::new(
            kind,
            condition.reason.as_deref().unwrap_or_default(),
            condition.message.as_deref().unwrap_or_default(),
        )
    }
}

/// The end that stops the pods that are still active, in the order in which `syncJob` looks for one: what an earlier
/// pass announced, failures, success by policy.
pub(super) fn reached(view: &View<'_>) -> Option<End> {
    for kind in [JobResult::Success, JobResult::Failure] {
        if let Some(condition) = conditions::is_true(view.job, kind.interim()) {
            return Some(End::announced(kind, condition));
        }
    }
    by_pod_failure_policy(view)
        .or_else(|| by_backoff_limit(view))
        .or_else(|| by_deadline(view))
        .or_else(|| by_failed_indexes(view))
        .or_else(|| by_success_policy(view))
}

/// The end of a Job whose pods have all done what they should, once `active` of them are left after this pass.
pub(super) fn completed(view: &View<'_>, active: i32) -> Option<End> {
    let enough = match view.spec.completions {
        None => view.succeeded > 0,
        Some(completions) => view.succeeded >= completions,
    };
    let message = "Reached expected number of succeeded pods";
    (enough && active == 0).then(|| End::new(JobResult::Success, "CompletionsReached", message))
}

/// How long the Job may still be active.
pub(super) fn deadline(view: &View<'_>) -> Option<Duration> {
    let left = time_left(view)?;
    Some(Duration::try_from(left).unwrap_or_default())
}

fn time_left(view: &View<'_>) -> Option<SignedDuration> {
    let seconds = view.spec.active_deadline_seconds.filter(|_| !view.is_suspended())?;
    let allowed = SignedDuration::from_secs(seconds);
    let start = view.job.status.as_ref().and_then(|status| status.start_time.as_ref());
    let active = start.map_or(SignedDuration::ZERO, |start| view.now.duration_since(start.0));
    allowed.checked_sub(active)
}

fn by_pod_failure_policy(view: &View<'_>) -> Option<End> {
    view.spec.pod_failure_policy.as_ref()?;
    let message =
        view.pods.iter().filter(|pod| view.has_failed(pod)).find_map(|pod| match ruling(view.job, pod) {
            Ruling::FailJob(message) => Some(message),
            _ => None,
        });
    message.map(|message| End::failure("PodFailurePolicy", message))
}

fn by_backoff_limit(view: &View<'_>) -> Option<End> {
    let limit = view.spec.backoff_limit.unwrap_or(6);
    let exceeded = view.failed > limit
        || restarts(view).is_some_and(|restarts| if limit == 0 { restarts > 0 } else { restarts >= limit });
    exceeded.then(|| End::failure("BackoffLimitExceeded", "Job has reached the specified backoff limit"))
}

/// The restarts of all containers, where a failed one is restarted in its pod.
fn restarts(view: &View<'_>) -> Option<i32> {
    let template = view.spec.template.spec.as_ref()?;
    if template.restart_policy.as_deref() != Some("OnFailure") {
        return None;
    }
    let of = |statuses: &Option<Vec<ContainerStatus>>| -> i32 {
        statuses.iter().flatten().map(|status| status.restart_count).sum()
    };
    let going = view.pods.iter().filter(|pod| matches!(pod::phase(pod), "Running" | "Pending"));
    let statuses = going.filter_map(|pod| pod.status.as_ref());
    Some(statuses.map(|status| of(&status.init_container_statuses) + of(&status.container_statuses)).sum())
}

fn by_deadline(view: &View<'_>) -> Option<End> {
    let over = time_left(view).is_some_and(|left| left <= SignedDuration::ZERO);
    over.then(|| End::failure("DeadlineExceeded", "Job was active longer than specified deadline"))
}

fn by_failed_indexes(view: &View<'_>) -> Option<End> {
    let indexed = view.indexed.as_ref()?;
    let failed = indexed.limited.as_ref()?.failed.count();
    let over = |limit: i32| i64::from(failed) > i64::from(limit);
    if view.spec.max_failed_indexes.is_some_and(over) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(End::failure("MaxFailedIndexesExceeded", message));
    }
    let all = failed > 0 && failed + indexed.succeeded.count() >= indexed.completions;
    all.then(|| End::failure("FailedIndexes", "Job has failed indexes"))
}

fn by_success_policy(view: &View<'_>) -> Option<End> {
    let indexed = view.indexed.as_ref()?;
    let policy = view.spec.success_policy.as_ref()?;
    let message = policies::success(policy, &indexed.succeeded, indexed.completions)?;
    Some(End::new(JobResult::Success, "SuccessPolicy", message))
}
