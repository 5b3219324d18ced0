//! What the status of a Job says besides its counters.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobStatus;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::accounts::{is_settled, positive};
use super::conditions::{self, JobResult};
use super::end::End;
use super::view::{View, count, status};
use crate::pod;

/// The status of a Job that has been looked at: it has started, unless it is suspended.
pub(super) fn begin(view: &View<'_>) -> JobStatus {
    let mut status = status(view.job);
    if status.start_time.is_none() && !view.is_suspended() {
        status.start_time = Some(Time(view.now));
    }
    status
}

/// Counts the pods that are there after a pass has created or deleted some.
pub(super) fn count_pods<'p>(status: &mut JobStatus, pods: impl Iterator<Item = &'p Pod> + Clone) {
    let active = pods.clone().filter(|pod| pod::is_active(pod));
    status.active = positive(count(active.clone()));
    status.ready = Some(count(active.filter(|pod| pod::is_ready(pod))));
    status.terminating = Some(count(pods.filter(|pod| pod::is_terminating(pod))));
}

/// Says whether the Job is suspended, and forgets its start if it is, unless it is to keep it; the reason and message of the event that tells of a change.
pub(super) fn suspend(
    status: &mut JobStatus,
    suspended: bool,
    keeps_start: bool,
    now: Timestamp,
) -> Option<(&'static str, &'static str)> {
    let (event, reason, message) = if suspended {
        ("Suspended", "JobSuspended", "Job suspended")
    } else {
        ("Resumed", "JobResumed", "Job resumed")
    };
    if !conditions::set(status, "Suspended", suspended, reason, message, now) {
        return None;
    }
    // The deadline is about the time in which a Job is active without a break.
    if !suspended || !keeps_start {
        status.start_time = (!suspended).then_some(Time(now));
    }
    Some((event, message))
}

/// Says how the Job is going to end.
pub(super) fn announce(status: &mut JobStatus, end: &End, now: Timestamp) {
    let interim = end.kind.interim();
    let known = status.conditions.iter().flatten().any(|has| has.type_ == interim && has.status == "True");
    if !known {
        conditions::set(status, interim, true, &end.reason, &end.message, now);
    }
}

/// Says that the Job has ended, when nothing of it is left to wait for; whether it says so.
pub(super) fn finish(status: &mut JobStatus, end: &End, now: Timestamp) -> bool {
    if !is_settled(status) || status.terminating.is_some_and(|terminating| terminating > 0) {
        return false;
    }
    conditions::set(status, end.kind.terminal(), true, &end.reason, &end.message, now);
    if end.kind == JobResult::Success {
        status.completion_time = Some(Time(now));
    }
    true
}
