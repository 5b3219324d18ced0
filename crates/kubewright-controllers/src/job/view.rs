//! What a Job and its pods look like (the first half of `syncJob` in `pkg/controller/job/job_controller.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;

use super::indexes::Indexes;
use super::pods::{
    failures, finished_at, has_failed, ignored_failures, index, is_tracked, only_failed_are_replaced,
};
use super::policies::{Ruling, ruling};
use crate::pod;

/// A Job with all of its pods at one moment.
pub(super) struct View<'a> {
    pub(super) job: &'a Job,
    pub(super) spec: &'a JobSpec,
    pub(super) now: Timestamp,
    /// All of its pods; those of an Indexed Job by their index.
    pub(super) pods: Vec<Arc<Pod>>,
    /// Those that neither ended nor are being deleted.
    pub(super) active: Vec<Arc<Pod>>,
    /// How many are being deleted and have not ended.
    pub(super) terminating: i32,
    /// Those that ended well and that the status knows nothing of yet.
    pub(super) newly_succeeded: Vec<Arc<Pod>>,
    /// Those that failed and that the status knows nothing of yet.
    pub(super) newly_failed: Vec<Arc<Pod>>,
    /// Of which pods the status knows that are still to be counted.
    pub(super) uncounted: Uncounted,
    /// How many completions there are, with those still to be counted.
    pub(super) succeeded: i32,
    /// How many failures there are, with those still to be counted.
    pub(super) failed: i32,
    /// What an Indexed Job has besides.
    pub(super) indexed: Option<Indexed>,
    /// Whether a pod is replaced only once it has ended.
    pub(super) only_failed_are_replaced: bool,
}

/// The uids of `status.uncountedTerminatedPods`.
#[derive(Default)]
pub(super) struct Uncounted {
    pub(super) succeeded: BTreeSet<String>,
    pub(super) failed: BTreeSet<String>,
}

/// The indexes of an Indexed Job.
pub(super) struct Indexed {
    pub(super) completions: u32,
    /// Those of the status.
    pub(super) before: Indexes,
    /// And those of pods that succeeded since.
    pub(super) succeeded: Indexes,
    /// When each index has a limit of its own.
    pub(super) limited: Option<Limited>,
}

/// The failures of a Job with `backoffLimitPerIndex`.
pub(super) struct Limited {
    /// The indexes that failed for good.
    pub(super) failed: Indexes,
    /// The last failed pod of each index that waits for another. It keeps its finalizer until then: the new one's
    /// annotations go on from its own.
    pub(super) to_replace: BTreeMap<u32, Arc<Pod>>,
}

/// `status`, or that of a new Job.
pub(super) fn status(job: &Job) -> JobStatus {
    job.status.clone().unwrap_or_default()
}

/// The pod's uid.
pub(super) fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

impl<'a> View<'a> {
    /// `pods` are those that the Job controls. `None` for a Job without a spec.
    pub(super) fn new(job: &'a Job, mut pods: Vec<Arc<Pod>>, now: Timestamp) -> Option<Self> {
        let spec = job.spec.as_ref()?;
        let completions = completions_of_indexed(spec);
        if completions.is_some() {
            pods.sort_by_key(|pod| index(pod));
        }
        let status = status(job);
        let uids = |list: Option<Vec<String>>| list.unwrap_or_default().into_iter().collect();
        let event = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let only_failed_are_replaced = only_failed_are_replaced(job);
        let active: Vec<_> = pods.iter().filter(|pod| pod::is_active(pod)).cloned().collect();
        let mut view = Self {
            job,
            spec,
            now,
            terminating: count(pods.iter().filter(|pod| pod::is_terminating(pod))),
            active,
            pods,
            newly_succeeded: Vec::new(),
            newly_failed: Vec::new(),
            uncounted: Uncounted { succeeded: uids(event.succeeded), failed: uids(event.failed) },
            succeeded: 0,
            failed: 0,
            indexed: None,
            only_failed_are_replaced,
        };
        view.newly_succeeded = view.new_ones(completions, |view, pod| {
            pod::phase(pod) == "Succeeded" && !view.uncounted.succeeded.contains(uid(pod))
        });
        view.newly_failed = view.new_ones(completions, |view, pod| {
            view.has_failed(pod) && !view.uncounted.failed.contains(uid(pod))
        });
        let counted = view.newly_failed.iter().filter(|pod| ruling(job, pod).counts());
        view.failed =
            status.failed.unwrap_or_default() + count(counted) + count(view.uncounted.failed.iter());
        view.indexed = completions.map(|completions| view.indexes(&status, completions));
        view.succeeded = match &view.indexed {
            Some(indexed) => i32::try_from(indexed.succeeded.count()).unwrap_or(i32::MAX),
            None => {
                let new = count(view.newly_succeeded.iter()) + count(view.uncounted.succeeded.iter());
                status.succeeded.unwrap_or_default() + new
            }
        };
        Some(view)
    }

    pub(super) fn has_failed(&self, pod: &Pod) -> bool {
        has_failed(pod, self.only_failed_are_replaced)
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    /// Whether the pod is for one of the completions; every pod of a Job without indexes is.
    pub(super) fn is_valid(&self, pod: &Pod) -> bool {
        is_valid(pod, self.indexed.as_ref().map(|indexed| indexed.completions))
    }

    fn new_ones(&self, completions: Option<u32>, is: impl Fn(&Self, &Pod) -> bool) -> Vec<Arc<Pod>> {
        let new = |pod: &&Arc<Pod>| is_tracked(pod) && is_valid(pod, completions) && is(self, pod);
        self.pods.iter().filter(new).cloned().collect()
    }

    fn indexes(&self, status: &JobStatus, completions: u32) -> Indexed {
        let before = Indexes::parse(status.completed_indexes.as_deref().unwrap_or_default(), completions);
        let of = |pods: &mut dyn Iterator<Item = &Arc<Pod>>| {
            pods.filter_map(|pod| index(pod)).collect::<Indexes>()
        };
        let valid = |pod: &&Arc<Pod>| is_tracked(pod) && is_valid(pod, Some(completions));
        let new = of(&mut self.pods.iter().filter(valid).filter(|pod| pod::phase(pod) == "Succeeded"));
        let succeeded = before.union(&new);
        let limited = self.spec.backoff_limit_per_index.map(|limit| {
            let before = Indexes::parse(status.failed_indexes.as_deref().unwrap_or_default(), completions);
            let new = of(&mut self.pods.iter().filter(valid).filter(|pod| self.fails_index(pod, limit)));
            let failed = before.union(&new);
            let settled = succeeded.union(&failed).union(&of(&mut self.active.iter()));
            let waiting = self.pods.iter().filter(valid).filter(|pod| self.has_failed(pod));
            let to_replace = last_of_each_index(
                waiting.filter(|pod| index(pod).is_some_and(|index| !settled.contains(index))),
            );
            Limited { failed, to_replace }
        });
        Indexed { completions, before, succeeded, limited }
    }

    /// Whether this pod is one failure too many for its index.
    fn fails_index(&self, pod: &Pod, limit: i32) -> bool {
        self.has_failed(pod)
            && match ruling(self.job, pod) {
                Ruling::FailIndex => true,
                Ruling::Ignore => false,
                Ruling::Count | Ruling::FailJob(_) => failures(pod) >= limit,
            }
    }
}

/// `spec.completions` of an Indexed Job.
fn completions_of_indexed(spec: &JobSpec) -> Option<u32> {
    let indexed = spec.completion_mode.as_deref() == Some("Indexed");
    indexed.then(|| spec.completions.and_then(|count| u32::try_from(count).ok()).unwrap_or_default())
}

fn is_valid(pod: &Pod, completions: Option<u32>) -> bool {
    completions.is_none_or(|completions| index(pod).is_some_and(|index| index < completions))
}

/// Of each index the pod with the most failures before it; of equal ones the last that ended
/// (`getPodsWithDelayedDeletionPerIndex`).
fn last_of_each_index<'p>(pods: impl Iterator<Item = &'p Arc<Pod>>) -> BTreeMap<u32, Arc<Pod>> {
    let mut last: BTreeMap<u32, Arc<Pod>> = BTreeMap::new();
    let count = |pod: &Pod| failures(pod).saturating_add(ignored_failures(pod));
    for pod in pods {
        let Some(index) = index(pod) else { continue };
        let later = last
            .get(&index)
            .is_none_or(|other| count(other) <= count(pod) && finished_at(other) <= finished_at(pod));
        if later {
            last.insert(index, Arc::clone(pod));
        }
    }
    last
}

pub(super) fn count<T>(all: impl Iterator<Item = T>) -> i32 {
    i32::try_from(all.count()).unwrap_or(i32::MAX)
}
