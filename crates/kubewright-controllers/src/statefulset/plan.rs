//! What a StatefulSet has to do about its pods and claims (`updateStatefulSet` in
//! `pkg/controller/statefulset/stateful_set_control.go`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kubewright_objects::optional;

use super::revisions::Revisions;
use super::storage::Storage;
use super::{member, ordinals, retention};
use crate::pod::{self, Availability};
use crate::share::{self, Rounding};

/// What is seen of a set.
pub(super) struct Observed<'a> {
    pub(super) set: &'a StatefulSet,
    pub(super) revisions: &'a Revisions,
    /// The set's pods, those that ended or go included.
    pub(super) pods: &'a [Arc<Pod>],
    /// The claims of its namespace, by name.
    pub(super) claims: &'a BTreeMap<String, Arc<PersistentVolumeClaim>>,
    pub(super) now: Timestamp,
}

/// Something to do about one pod.
#[derive(Debug, PartialEq)]
pub(super) enum Task {
    /// Create the pod, its missing claims first.
    Create(Box<Pod>, Storage),
    /// The pod waits for its claims: create them, and see to their owners.
    Supply(Arc<Pod>, Storage),
    /// The pod, or a claim of it, is not what it should be: write them as they are here.
    Repair(Box<Pod>, Storage),
    /// See to the owners of the claims of a pod that is one too many.
    Bequeath(Arc<Pod>, Storage),
    /// Delete the pod.
    Delete(Arc<Pod>),
}

/// Tasks of one stage, in order; the next stage begins when all of them are done.
pub(super) type Stage = Vec<Task>;

/// What is to be done now, in stages; nothing when the set has to wait for something, or has all that it wants.
///
/// Under `OrderedReady` no pod is created or deleted while one before it (or, going down, after it) is not available, so
/// at most one is at a time; under `Parallel` no pod waits for another, except for an update. A set that is being
/// deleted does nothing more.
pub(super) fn plan(observed: &Observed<'_>) -> Vec<Stage> {
    if observed.set.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let members = Members::of(observed);
    let mut stages: Vec<Stage> = Vec::new();
    for step in [Observed::keep, Observed::bequeath, Observed::scale_down] {
        let (stage, flow) = step(observed, &members);
        stages.push(stage);
        if flow == Flow::Stop {
            stages.retain(|stage| !stage.is_empty());
            return stages;
        }
    }
    let update = observed.update(&members, &deleted_by(&stages));
    stages.push(update);
    stages.retain(|stage| !stage.is_empty());
    stages
}

/// Whether anything else may happen in this pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    GoOn,
    Stop,
}

/// A pod that the set should have.
enum Replica {
    There(Arc<Pod>),
    /// Nobody has created it yet; this is what it would be.
    Missing(Box<Pod>),
}

impl Replica {
    fn pod(&self) -> &Pod {
        match self {
            Self::There(pod) => pod,
            Self::Missing(pod) => pod,
        }
    }
}

/// The pods of a set, told apart.
struct Members {
    /// Those that it should have, by ordinal.
    replicas: Vec<Replica>,
    /// Those that are too many, the last ordinal first.
    condemned: Vec<Arc<Pod>>,
    /// The name of the first that is not available.
    first_unavailable: Option<String>,
}

impl Members {
    fn of(observed: &Observed<'_>) -> Self {
        let wanted = ordinals::wanted(observed.set);
        let (mut there, mut condemned) = (BTreeMap::new(), Vec::new());
        for pod in observed.pods {
            match ordinals::of(pod.metadata.name.as_deref()) {
                Some(ordinal) if wanted.contains(&ordinal) => _ = there.insert(ordinal, Arc::clone(pod)),
                Some(ordinal) => condemned.push((ordinal, Arc::clone(pod))),
                None => {}
            }
        }
        condemned.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        let condemned: Vec<_> = condemned.into_iter().map(|(_, pod)| pod).collect();
        let replica = |ordinal| match there.remove(&ordinal) {
            Some(pod) => Replica::There(pod),
            None => Replica::Missing(Box::new(observed.new_pod(ordinal))),
        };
        let replicas: Vec<_> = wanted.map(replica).collect();
        let in_order = replicas.iter().map(Replica::pod).chain(condemned.iter().rev().map(|pod| &**pod));
        let mut unavailable = in_order.filter(|pod| observed.is_unavailable(pod));
        let first_unavailable = unavailable.next().and_then(|pod| pod.metadata.name.clone());
        Self { replicas, condemned, first_unavailable }
    }
}

/// The names of the pods that `stages` delete.
fn deleted_by(stages: &[Stage]) -> BTreeSet<&str> {
    let deleted = stages.iter().flatten().filter_map(|task| match task {
        Task::Delete(pod) => pod.metadata.name.as_deref(),
        _ => None,
    });
    deleted.collect()
}

impl Observed<'_> {
    fn is_ordered(&self) -> bool {
        let policy = optional::<StatefulSetSpec>(&self.set.spec)
            .and_then(|spec| spec.pod_management_policy.as_deref());
        policy != Some("Parallel")
    }

    /// During an update with a partition, and before the first one is over, pods of low ordinals come back as they were.
    fn new_pod(&self, ordinal: i32) -> Pod {
        let start = ordinals::wanted(self.set).start;
        let status = self.set.status.as_ref();
        let current = match partition(self.set) {
            Some(partition) => partition,
            None if is_rolling(self.set) => {
                status.and_then(|status| status.current_replicas).unwrap_or_default()
            }
            None => 0,
        };
        let is_current = ordinal < start.saturating_add(current);
        let revision = if is_current { &self.revisions.current } else { &self.revisions.update };
        member::new(self.set, revision, ordinal)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pod::availability(pod, min_ready(self.set), self.now) == Availability::Available
    }

    fn is_unavailable(&self, pod: &Pod) -> bool {
        !self.is_available(pod) || is_going(pod)
    }

    /// Creates what is missing, replaces what has ended, and repairs.
    fn keep(&self, members: &Members) -> (Stage, Flow) {
        let mut stage = Vec::new();
        for replica in &members.replicas {
            if self.keep_one(replica, &mut stage) == Flow::Stop && self.is_ordered() {
                return (stage, Flow::Stop);
            }
        }
        (stage, Flow::GoOn)
    }

    fn keep_one(&self, replica: &Replica, stage: &mut Stage) -> Flow {
        let pod = match replica {
            Replica::There(pod) => pod,
            Replica::Missing(pod) => {
                let storage = Storage::of(self.set, pod, self.claims);
                if !member::claims(self.set, pod).values().any(|claim| self.is_stale(pod, claim)) {
                    stage.push(Task::Create(pod.clone(), storage));
                }
                return Flow::Stop;
            }
        };
        if pod::is_finished(pod) {
            if !is_going(pod) {
                stage.push(Task::Delete(Arc::clone(pod)));
            }
            return Flow::Stop;
        }
        let storage = Storage::of(self.set, pod, self.claims);
        let is_pending = pod::phase(pod) == "Pending";
        if is_pending && !storage.is_complete() {
            stage.push(Task::Supply(Arc::clone(pod), storage.clone()));
        }
        if self.is_ordered() && (is_going(pod) || !is_running_and_ready(pod) || !self.is_available(pod)) {
            return Flow::Stop;
        }
        stage.extend(self.repair(pod, if is_pending { Storage::default() } else { storage }));
        Flow::GoOn
    }

    /// Missing claims are created only for a pod that does not even name them.
    fn repair(&self, pod: &Arc<Pod>, storage: Storage) -> Option<Task> {
        let (identified, mounted) = (member::is_identified(self.set, pod), member::is_mounted(self.set, pod));
        if identified && mounted && storage.owners.is_empty() {
            return None;
        }
        let mut repaired = (**pod).clone();
        if !identified {
            member::identify(self.set, &mut repaired);
        }
        if mounted {
            return Some(Task::Repair(Box::new(repaired), storage.without_claims()));
        }
        member::mount(self.set, &mut repaired);
        Some(Task::Repair(Box::new(repaired), storage))
    }

    fn is_stale(&self, pod: &Pod, wanted: &PersistentVolumeClaim) -> bool {
        let claim = wanted.metadata.name.as_ref().and_then(|name| self.claims.get(name));
        claim.is_some_and(|claim| retention::is_stale(self.set, pod, claim))
    }

    /// The claims of surplus pods change hands before the pods go.
    fn bequeath(&self, members: &Members) -> (Stage, Flow) {
        let task = |pod: &Arc<Pod>| {
            let storage = Storage::of(self.set, pod, self.claims).without_claims();
            (!storage.owners.is_empty()).then(|| Task::Bequeath(Arc::clone(pod), storage))
        };
        (members.condemned.iter().filter_map(task).collect(), Flow::GoOn)
    }

    fn scale_down(&self, members: &Members) -> (Stage, Flow) {
        let mut stage = Vec::new();
        for pod in &members.condemned {
            if is_going(pod) {
                if self.is_ordered() {
                    return (stage, Flow::Stop);
                }
                continue;
            }
            let is_healthy = is_running_and_ready(pod) && self.is_available(pod);
            if self.is_ordered() && !is_healthy && pod.metadata.name != members.first_unavailable {
                return (stage, Flow::Stop);
            }
            stage.push(Task::Delete(Arc::clone(pod)));
            if self.is_ordered() {
                return (stage, Flow::Stop);
            }
        }
        (stage, Flow::GoOn)
    }

    /// Pods that are not updated yet go. How many may be away says `maxUnavailable`; up to v1.36 the API server drops it, and they go
    /// one by one.
    fn update(&self, members: &Members, deleted: &BTreeSet<&str>) -> Stage {
        if !is_rolling(self.set) {
            return Vec::new();
        }
        match max_unavailable(self.set, members.replicas.len()) {
            Some(most) => self.update_some(members, deleted, most),
            None => self.update_last(members, deleted).into_iter().collect(),
        }
    }

    /// As many as may be away go, the last first (`updateStatefulSetAfterInvariantEstablished`). Under `Parallel` those that are away
    /// anyway go besides, and first.
    fn update_some(&self, members: &Members, deleted: &BTreeSet<&str>, most: usize) -> Stage {
        let first = usize::try_from(partition(self.set).unwrap_or_default()).unwrap_or_default();
        let is_deleted = |pod: &Pod| pod.metadata.name.as_deref().is_some_and(|name| deleted.contains(name));
        let is_away = |replica: &Replica| match replica {
            Replica::There(pod) => self.is_unavailable(pod) || is_deleted(pod),
            Replica::Missing(_) => true,
        };
        let away = members.replicas.iter().filter(|replica| is_away(replica)).count();
        let outdated = members.replicas.iter().skip(first).rev().filter_map(|replica| match replica {
            Replica::There(pod) if member::revision(pod) != self.revisions.update.name => Some(pod),
            _ => None,
        });
        let (gone, there): (Vec<_>, Vec<_>) = outdated
            .filter(|pod| !is_going(pod) && !is_deleted(pod))
            .partition(|pod| self.is_unavailable(pod));
        let room = most.saturating_sub(away);
        if self.is_ordered() {
            let mut all: Vec<_> = gone.into_iter().chain(there).collect();
            all.sort_by_key(|pod| std::cmp::Reverse(ordinals::of(pod.metadata.name.as_deref())));
            return all.into_iter().take(room).map(|pod| Task::Delete(Arc::clone(pod))).collect();
        }
        gone.into_iter()
            .chain(there.into_iter().take(room))
            .map(|pod| Task::Delete(Arc::clone(pod)))
            .collect()
    }

    /// The last pod that is not updated yet goes, once all after it are available again.
    fn update_last(&self, members: &Members, deleted: &BTreeSet<&str>) -> Option<Task> {
        let first = usize::try_from(partition(self.set).unwrap_or_default()).unwrap_or_default();
        for replica in members.replicas.iter().skip(first).rev() {
            let Replica::There(pod) = replica else { return None };
            let is_deleted = pod.metadata.name.as_deref().is_some_and(|name| deleted.contains(name));
            if member::revision(pod) != self.revisions.update.name && !is_going(pod) && !is_deleted {
                return Some(Task::Delete(Arc::clone(pod)));
            }
            if self.is_unavailable(pod) || is_deleted {
                return None;
            }
        }
        None
    }
}

fn strategy(set: &StatefulSet) -> Option<&StatefulSetUpdateStrategy> {
    optional::<StatefulSetSpec>(&set.spec)?.update_strategy.as_ref()
}

/// Whether the set updates its pods by itself.
pub(super) fn is_rolling(set: &StatefulSet) -> bool {
    strategy(set).and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete")
}

/// `spec.updateStrategy.rollingUpdate.partition`: so many pods stay as they are. `None` when nothing is said of rolling.
fn partition(set: &StatefulSet) -> Option<i32> {
    let rolling = strategy(set)?.rolling_update.as_ref()?;
    Some(rolling.partition.unwrap_or_default())
}

/// `spec.updateStrategy.rollingUpdate.maxUnavailable`: so many pods of these may be away at once, at least one. `None` where it is not
/// said.
fn max_unavailable(set: &StatefulSet, replicas: usize) -> Option<usize> {
    let said = strategy(set)?.rolling_update.as_ref()?.max_unavailable.as_ref()?;
    let replicas = i32::try_from(replicas).unwrap_or(i32::MAX);
    Some(usize::try_from(share::resolve(said, replicas, Rounding::Down)).unwrap_or_default().max(1))
}

/// `spec.minReadySeconds`.
pub(super) fn min_ready(set: &StatefulSet) -> Duration {
    pod::seconds(
        optional::<StatefulSetSpec>(&set.spec).and_then(|spec| spec.min_ready_seconds).unwrap_or_default(),
    )
}

/// Whether the pod is being deleted.
fn is_going(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the pod runs and is ready.
pub(super) fn is_running_and_ready(pod: &Pod) -> bool {
    pod::phase(pod) == "Running" && pod::is_ready(pod)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
