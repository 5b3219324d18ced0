//! Counting each pod exactly once (`trackJobStatusAndRemoveFinalizers` in `pkg/controller/job/job_controller.go`).
//!
//! A pod that has ended is first written down by its uid in `status.uncountedTerminatedPods`, then loses the finalizer by
//! which it was held, and only then moves from that list to the counters, in one write. Whichever write is the last one
//! before a crash, the next pass sees from the list and the finalizers how far the one before it got.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;

use super::conditions::JobResult;
use super::end::End;
use super::pods::{index, is_tracked};
use super::policies::ruling;
use super::view::{View, uid};
use crate::pod;

/// The most uids that the list in the status holds: some 20 KB.
const MOST_UNCOUNTED: usize = 500;

/// What a pass has counted.
pub(super) struct Accounts {
    /// The status with the list as it has to be written before the finalizers go.
    pub(super) status: JobStatus,
    /// The pods whose finalizers go then.
    pub(super) release: Vec<Arc<Pod>>,
    /// The uids of all pods that have their finalizer.
    pub(super) tracked: BTreeSet<String>,
    /// Whether there are more pods than one pass counts.
    pub(super) more: bool,
}

/// Counts the pods of `view` that ended or, when the Job does so by `end`, end with it.
pub(super) fn accounts(view: &View<'_>, end: Option<&End>, mut status: JobStatus) -> Accounts {
    let tracked: BTreeSet<_> =
        view.pods.iter().filter(|pod| is_tracked(pod)).map(|pod| uid(pod).to_owned()).collect();
    settle(&mut status, &tracked);
    let mut list = status.uncounted_terminated_pods.take().unwrap_or_default();
    let (mut release, mut more, mut new_indexes) = (Vec::new(), false, 0);
    for pod in view.pods.iter().filter(|pod| is_tracked(pod) && may_go(view, end, pod)) {
        release.push(Arc::clone(pod));
        match counted_as(view, end, pod) {
            // The list of completed indexes says it already.
            Some(JobResult::Success) if view.indexed.is_some() => new_indexes += 1,
            Some(JobResult::Success) => list.succeeded.get_or_insert_default().push(uid(pod).to_owned()),
            Some(JobResult::Failure) => list.failed.get_or_insert_default().push(uid(pod).to_owned()),
            None => {}
        }
        if new_indexes + length(&list.succeeded) + length(&list.failed) >= MOST_UNCOUNTED {
            more = true;
            break;
        }
    }
    status.uncounted_terminated_pods = Some(list);
    if let Some(indexed) = &view.indexed {
        let text = indexed.succeeded.to_string();
        status.succeeded = positive(view.succeeded);
        status.completed_indexes = (!text.is_empty()).then_some(text);
        status.failed_indexes = indexed.limited.as_ref().map(|limited| limited.failed.to_string());
    }
    Accounts { status, release, tracked, more }
}

/// Moves what has lost its finalizer from the list to the counters; whether there was something.
pub(super) fn settle(status: &mut JobStatus, tracked: &BTreeSet<String>) -> bool {
    let list = status.uncounted_terminated_pods.get_or_insert_default();
    let UncountedTerminatedPods { failed, succeeded } = list;
    let mut moved = false;
    for (uids, counter) in [(succeeded, &mut status.succeeded), (failed, &mut status.failed)] {
        let before = length(uids);
        let mut left = uids.take().unwrap_or_default();
        left.retain(|uid| tracked.contains(uid));
        let gone = i32::try_from(before - left.len()).unwrap_or(i32::MAX);
        *uids = (!left.is_empty()).then_some(left);
        *counter = positive(counter.unwrap_or_default().saturating_add(gone));
        moved |= gone > 0;
    }
    moved
}

/// Whether every pod that was written down is counted.
pub(super) fn is_settled(status: &JobStatus) -> bool {
    let list = status.uncounted_terminated_pods.as_ref();
    list.is_none_or(|list| length(&list.succeeded) + length(&list.failed) == 0)
}

/// A count as Go writes it: 0 is left out.
pub(super) fn positive(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

fn length(uids: &Option<Vec<String>>) -> usize {
    uids.as_ref().map_or(0, Vec::len)
}

/// Whether the pod need not be held any longer (`canRemoveFinalizer`).
fn may_go(view: &View<'_>, end: Option<&End>, pod: &Pod) -> bool {
    if view.job.metadata.deletion_timestamp.is_some() || end.is_some() || pod::phase(pod) == "Succeeded" {
        return true;
    }
    let limited = view.indexed.as_ref().and_then(|indexed| indexed.limited.as_ref());
    let replaced = index(pod).and_then(|index| limited?.to_replace.get(&index));
    view.has_failed(pod) && replaced.is_none_or(|replaced| uid(replaced) != uid(pod))
}

/// What the pod counts as; `None` when it does not count, or does so already.
fn counted_as(view: &View<'_>, end: Option<&End>, pod: &Pod) -> Option<JobResult> {
    if view.uncounted.failed.contains(uid(pod)) || !view.is_valid(pod) {
        return None;
    }
    if pod::phase(pod) == "Succeeded" {
        let again = match &view.indexed {
            Some(indexed) => index(pod).is_some_and(|index| indexed.before.contains(index)),
            None => view.uncounted.succeeded.contains(uid(pod)),
        };
        return (!again).then_some(JobResult::Success);
    }
    // With a Job that fails all of its pods do.
    let fails = view.has_failed(pod) || end.is_some_and(|end| end.kind == JobResult::Failure);
    (fails && ruling(view.job, pod).counts()).then_some(JobResult::Failure)
}
