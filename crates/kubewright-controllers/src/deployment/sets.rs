//! The ReplicaSets of a Deployment: the one of its current template, and the others.

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_objects::optional;

use super::rolling::Counts;
use super::template;

/// The ReplicaSets of one Deployment.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// The one of the current template; the oldest, should there be several.
    pub(super) new: Option<Arc<ReplicaSet>>,
    /// All others, oldest first.
    pub(super) old: Vec<Arc<ReplicaSet>>,
}

impl Sets {
    /// Tells `sets` (all that the Deployment controls) apart.
    pub(super) fn of(deployment: &Deployment, mut sets: Vec<Arc<ReplicaSet>>) -> Self {
        sets.sort_by(|a, b| age(a).cmp(&age(b)));
        let wanted = optional::<DeploymentSpec>(&deployment.spec).map(|spec| &spec.template);
        let current = sets.iter().position(|set| {
            let has = optional::<ReplicaSetSpec>(&set.spec).and_then(|spec| spec.template.as_ref());
            matches!((has, wanted), (Some(has), Some(wanted)) if template::same(has, wanted))
        });
        let new = current.map(|index| sets.remove(index));
        Self { new, old: sets }
    }

    /// All, the new one last.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.old.iter().chain(&self.new)
    }

    /// Those that ask for pods.
    pub(super) fn active(&self) -> Vec<&Arc<ReplicaSet>> {
        self.all().filter(|set| replicas(set) > 0).collect()
    }

    /// The sum of a count over all.
    pub(super) fn sum(&self, count: impl Fn(&ReplicaSet) -> i32) -> i32 {
        self.all().map(|set| count(set)).sum()
    }

    /// The youngest of all.
    pub(super) fn latest(&self) -> Option<&Arc<ReplicaSet>> {
        self.new.as_ref().or(self.old.last())
    }
}

/// Oldest first; of the same age by name.
pub(super) fn age(set: &ReplicaSet) -> (Option<&Time>, Option<&str>) {
    (set.metadata.creation_timestamp.as_ref(), set.metadata.name.as_deref())
}

/// The largest first; of the same size the youngest.
pub(super) fn largest_then_youngest(set: &ReplicaSet) -> impl Ord + use<'_> {
    (Reverse(replicas(set)), Reverse(age(set)))
}

/// The largest first; of the same size the oldest.
pub(super) fn largest_then_oldest(set: &ReplicaSet) -> impl Ord + use<'_> {
    (Reverse(replicas(set)), age(set))
}

/// The set's name.
pub(super) fn name(set: &ReplicaSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// `spec.replicas`.
pub(super) fn replicas(set: &ReplicaSet) -> i32 {
    optional::<ReplicaSetSpec>(&set.spec).and_then(|spec| spec.replicas).unwrap_or(1)
}

/// A count of the status.
pub(super) fn reported(set: &ReplicaSet, count: impl Fn(&ReplicaSetStatus) -> Option<i32>) -> i32 {
    set.status.as_ref().and_then(count).unwrap_or_default()
}

/// `status.availableReplicas`.
pub(super) fn available(set: &ReplicaSet) -> i32 {
    reported(set, |status| status.available_replicas)
}

/// What a rollout reckons with.
pub(super) fn counts(set: &ReplicaSet) -> Counts {
    let replicas = replicas(set);
    let has = reported(set, |status| Some(status.replicas));
    Counts { replicas, available: available(set).min(replicas), pods: has.max(replicas) }
}

/// Whether the ReplicaSet controller has seen the set's current spec.
pub(super) fn is_observed(set: &ReplicaSet) -> bool {
    let observed = set.status.as_ref().and_then(|status| status.observed_generation);
    observed.unwrap_or_default() >= set.metadata.generation.unwrap_or_default()
}
