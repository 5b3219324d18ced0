//! What is to be done about the pods of a Job (`syncJob` and `manageJob` in `pkg/controller/job/job_controller.go`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use super::backoff::{Failures, wait_of_index};
use super::end::{self, End};
use super::pods::{index, rank};
use super::template;
use super::view::{Indexed, View};
use crate::pod;

/// The most pods that one pass creates or deletes, so that one large Job does not keep the others waiting.
const BURST: usize = 500;
/// Replaced pods are not waited for more precisely than this.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// What one pass does.
pub(super) struct Plan {
    /// How the Job ends, when it does.
    pub(super) end: Option<End>,
    pub(super) step: Step,
    /// When something is due that no event tells of.
    pub(super) again: Option<Duration>,
}

/// What to do about the number of pods.
pub(super) enum Step {
    /// Nothing.
    Rest,
    /// Delete these; they count as they end.
    Stop(Vec<Arc<Pod>>),
    /// Delete these, and do not count them.
    Drop(Vec<Arc<Pod>>),
    /// Create these.
    Create(Vec<Pod>),
}

/// `failures` is the row of failures with the new ones.
pub(super) fn plan(view: &View<'_>, failures: Failures) -> Plan {
    if let Some(end) = end::reached(view) {
        return Plan { end: Some(end), step: Step::Stop(view.active.clone()), again: None };
    }
    let (step, wait) = if view.job.metadata.deletion_timestamp.is_some() {
        (Step::Rest, None)
    } else {
        manage(view, failures)
    };
    let again = [wait, end::deadline(view)].into_iter().flatten().min();
    Plan { end: None, step, again }
}

/// Compares the active pods with those that should be. One pass either deletes or creates.
fn manage(view: &View<'_>, failures: Failures) -> (Step, Option<Duration>) {
    if view.is_suspended() {
        let all = surplus(view, view.active.len());
        return (if all.is_empty() { Step::Rest } else { Step::Drop(all) }, None);
    }
    let active = view.active.len();
    let wanted = wanted(view);
    let mut surplus = surplus(view, active.saturating_sub(wanted));
    if !surplus.is_empty() {
        surplus.truncate(BURST);
        return (Step::Drop(surplus), None);
    }
    let terminating =
        if view.only_failed_are_replaced { usize::try_from(view.terminating).unwrap_or_default() } else { 0 };
    match wanted.saturating_sub(terminating + active) {
        0 => (Step::Rest, None),
        lacking => create(view, failures, lacking),
    }
}

/// How many pods should be active.
fn wanted(view: &View<'_>) -> usize {
    let parallelism = view.spec.parallelism.unwrap_or(1);
    let wanted = match view.spec.completions {
        // The first success says that there is nothing left to start.
        None if view.succeeded > 0 => return view.active.len(),
        None => parallelism,
        Some(completions) => (completions - view.succeeded).min(parallelism),
    };
    usize::try_from(wanted).unwrap_or_default()
}

fn create(view: &View<'_>, failures: Failures, lacking: usize) -> (Step, Option<Duration>) {
    let limited = view.indexed.as_ref().and_then(|indexed| indexed.limited.as_ref());
    let wait = if limited.is_some() { Duration::ZERO } else { failures.wait(view.now) };
    if !wait.is_zero() {
        return (Step::Rest, Some(wait.max(SHORTEST_WAIT)));
    }
    let count = lacking.min(BURST);
    let Some(indexed) = &view.indexed else {
        return (Step::Create(vec![template::pod(view.job); count]), None);
    };
    let pending = pending(view, indexed, count);
    let replaced = |at: &u32| limited.and_then(|limited| limited.to_replace.get(at));
    let wait_of = |at: &u32| replaced(at).map_or(Duration::ZERO, |pod| wait_of_index(pod, view.now));
    let (now, later): (Vec<u32>, Vec<u32>) = pending.into_iter().partition(|at| wait_of(at).is_zero());
    if now.is_empty() {
        let wait = later.iter().map(wait_of).min();
        return (Step::Rest, wait.map(|wait| wait.max(SHORTEST_WAIT)));
    }
    let new = |at: &u32| match limited {
        Some(_) => template::replacement(view.job, *at, replaced(at).map(|pod| &**pod)),
        None => template::indexed(view.job, *at),
    };
    (Step::Create(now.iter().map(new).collect()), None)
}

/// The lowest indexes that neither ended nor have a pod (`firstPendingIndexes`).
fn pending(view: &View<'_>, indexed: &Indexed, count: usize) -> Vec<u32> {
    let held = view
        .pods
        .iter()
        .filter(|pod| pod::is_active(pod) || (view.only_failed_are_replaced && pod::is_terminating(pod)));
    let mut settled = indexed.succeeded.union(&held.filter_map(|pod| index(pod)).collect());
    if let Some(limited) = &indexed.limited {
        settled = settled.union(&limited.failed);
    }
    settled.missing(count, indexed.completions)
}

/// The active pods that have to go: of an Indexed Job those of no index and all but one of each, and then as many that
/// it is `at_least` this many, the least advanced first (`activePodsForRemoval`).
fn surplus(view: &View<'_>, at_least: usize) -> Vec<Arc<Pod>> {
    let mut going: Vec<Arc<Pod>> = Vec::new();
    let mut left: Vec<Arc<Pod>> = Vec::new();
    match &view.indexed {
        None => left.clone_from(&view.active),
        Some(_) => {
            let mut of_index: BTreeMap<u32, Vec<Arc<Pod>>> = BTreeMap::new();
            for pod in &view.active {
                match index(pod).filter(|_| view.is_valid(pod)) {
                    Some(index) => of_index.entry(index).or_default().push(Arc::clone(pod)),
                    None => going.push(Arc::clone(pod)),
                }
            }
            for mut pods in of_index.into_values() {
                pods.sort_by_key(|pod| rank(pod));
                left.extend(pods.pop());
                going.append(&mut pods);
            }
        }
    }
    if let Some(more) = at_least.checked_sub(going.len()) {
        left.sort_by_key(|pod| rank(pod));
        going.extend(left.into_iter().take(more));
    }
    going
}
