//! What the scheduler remembers from one look at the cluster to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodResourceClaimStatus};
use kubewright_runtime::Key;

use super::NAME;
use super::cluster_state::ClusterState;
use super::decision::{Decider, Decision, Nomination};
use super::devices::Devices;
use super::filter::{Plugin, Question};
use super::listers::Listers;
use super::pod_info::PodInfo;
use super::queue::Queue;
use super::volumes::Claims;
use crate::facts::{is_finished, node_name};

/// Nodes, placed pods, waiting pods.
#[derive(Debug, Default)]
pub(super) struct State {
    cluster: ClusterState,
    queue: Queue,
    decider: Decider,
    /// The uid that a pod was last seen with.
    seen: BTreeMap<Key, Arc<str>>,
    /// What happened that may help those that were refused.
    helped: BTreeSet<Plugin>,
    helped_nodes: BTreeSet<Arc<str>>,
}

impl State {
    /// A node changed, came or went.
    pub(super) fn see_node(&mut self, key: &Key, node: Option<Arc<Node>>) {
        match node {
            Some(node) => {
                self.cluster.set_node(&node);
                self.helped_nodes.insert(key.name.as_str().into());
            }
            None => self.cluster.remove_node(&key.name),
        }
        self.helped.insert(Plugin::NodeName);
    }

    /// A pod changed, came or went.
    pub(super) fn see_pod(&mut self, key: &Key, pod: Option<Arc<Pod>>) {
        let uid: Option<Arc<str>> = pod.as_ref().and_then(|pod| pod.metadata.uid.as_deref()).map(Arc::from);
        if let Some(before) = self.seen.get(key).filter(|before| Some(*before) != uid.as_ref()).cloned() {
            self.seen.remove(key);
            self.forget(&before);
        }
        let (Some(pod), Some(uid)) = (pod, uid) else { return };
        self.seen.insert(key.clone(), Arc::clone(&uid));
        if is_finished(&pod) {
            self.forget(&uid);
        } else if !node_name(&pod).is_empty() {
            self.queue.settle(&uid);
            self.cluster.denominate(&uid);
            let node = node_name(&pod).to_owned();
            self.cluster.place(&node, Arc::new(PodInfo::placed(pod)));
            self.helped.extend([Plugin::InterPodAffinity, Plugin::PodTopologySpread]);
        } else if self.cluster.place_of(&uid).is_none() {
            self.see_unplaced(Arc::new(PodInfo::of(pod)));
        }
    }

    fn see_unplaced(&mut self, pod_info: Arc<PodInfo>) {
        self.cluster.denominate(&pod_info.uid);
        if !is_waiting(&pod_info.pod) {
            self.queue.remove(&pod_info.uid);
            return;
        }
        if !pod_info.nominated_node().is_empty() {
            let node = pod_info.nominated_node().to_owned();
            self.cluster.nominate(&node, Arc::clone(&pod_info));
        }
        let is_same = self.queue.get(&pod_info.uid).is_some_and(|before| {
            before.pod.spec == pod_info.pod.spec
                && before.class == pod_info.class
                && made_claims(&before.pod) == made_claims(&pod_info.pod)
        });
        if is_same { self.queue.renew(pod_info) } else { self.queue.add(pod_info) }
    }

    /// A pod neither waits nor takes anything any more.
    fn forget(&mut self, uid: &str) {
        self.queue.settle(uid);
        self.cluster.denominate(uid);
        if let Some(node) = self.cluster.unplace(uid) {
            self.helped_nodes.insert(node);
            self.helped.extend([
                Plugin::InterPodAffinity,
                Plugin::PodTopologySpread,
                Plugin::VolumeRestrictions,
                Plugin::NodeVolumeLimits,
            ]);
        }
    }

    /// Something else changed that may help.
    pub(super) fn see_help(&mut self, helped: BTreeSet<Plugin>) {
        self.helped.extend(helped);
    }

    /// Gives those their turn whom what was seen may help, and those that waited long enough; says when the next will
    /// have.
    pub(super) fn wake(&mut self, listers: &dyn Listers, now: Timestamp) -> Option<Duration> {
        let helped = std::mem::take(&mut self.helped);
        let nodes = std::mem::take(&mut self.helped_nodes);
        let cluster = &self.cluster;
        if !(helped.is_empty() && nodes.is_empty()) {
            self.queue.wake(|pod_info, by| {
                !by.is_disjoint(&helped) || fits_one_of(pod_info, &nodes, cluster, listers)
            });
        }
        self.queue.flush(now)
    }

    /// Whether there is any node.
    pub(super) fn has_nodes(&self) -> bool {
        !self.cluster.nodes().is_empty()
    }

    /// The pod whose turn it is, and what becomes of it.
    pub(super) fn decide(&mut self, listers: &dyn Listers) -> Option<(Arc<PodInfo>, Decision)> {
        let pod_info = self.queue.next()?;
        let decision = self.decider.decide(&pod_info, &self.cluster, listers);
        Some((pod_info, decision))
    }

    /// The pod counts as placed from now on.
    pub(super) fn assume(&mut self, pod_info: &Arc<PodInfo>, node: &str) {
        self.queue.remove(&pod_info.uid);
        self.cluster.denominate(&pod_info.uid);
        self.cluster.place(node, Arc::clone(pod_info));
    }

    /// It could not be placed after all: somebody else saw to it.
    pub(super) fn take_back(&mut self, pod_info: &Arc<PodInfo>) {
        self.cluster.unplace(&pod_info.uid);
    }

    /// What was decided about the pod could not be written: it has another turn a little later.
    pub(super) fn postpone(&mut self, pod_info: &Arc<PodInfo>, now: Timestamp) {
        self.cluster.unplace(&pod_info.uid);
        self.queue.postpone(Arc::clone(pod_info), now);
    }

    /// The pod waits for what stood against it to change; others keep off the node that it was promised.
    pub(super) fn refuse(
        &mut self,
        pod_info: &Arc<PodInfo>,
        by: BTreeSet<Plugin>,
        nomination: &Nomination,
        now: Timestamp,
    ) {
        self.queue.refuse(&pod_info.uid, by, now);
        if *nomination != Nomination::Keep {
            self.cluster.denominate(&pod_info.uid);
        }
        if let Nomination::Node(node) = nomination {
            self.cluster.nominate(node, Arc::clone(pod_info));
        }
    }

    /// Those less important than `pod_info` that were promised `node`.
    pub(super) fn outranked(&self, pod_info: &PodInfo, node: &str) -> Vec<Arc<PodInfo>> {
        let promised = self.cluster.nominated_to(node);
        promised.filter(|other| other.priority < pod_info.priority).cloned().collect()
    }
}

/// The claims that were made for a pod.
fn made_claims(pod: &Pod) -> Option<&Vec<PodResourceClaimStatus>> {
    pod.status.as_ref()?.resource_claim_statuses.as_ref()
}

/// Whether the pod is this scheduler's and waits for a node.
fn is_waiting(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    node_name(pod).is_empty()
        && pod.metadata.deletion_timestamp.is_none()
        && !is_finished(pod)
        && spec.scheduler_name.as_deref().is_none_or(|name| name == NAME)
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
}

/// Whether a refused pod fits on one of the nodes where something changed (the queueing hints).
fn fits_one_of(
    pod_info: &PodInfo,
    nodes: &BTreeSet<Arc<str>>,
    cluster: &ClusterState,
    listers: &dyn Listers,
) -> bool {
    if nodes.is_empty() {
        return false;
    }
    let Ok(claims) = Claims::of(pod_info, listers) else { return false };
    let Ok(devices) = Devices::of(pod_info, listers) else { return false };
    let question = Question::about(pod_info, cluster, &claims, &devices, listers);
    let mut changed = nodes.iter().filter_map(|name| cluster.node(name));
    changed.any(|node| question.asked_of(node, cluster).is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::listers::tests::FakeListers;
    use super::*;

    fn pod(spec: Value) -> Arc<Pod> {
        let mut spec = spec;
        spec["containers"] = json!([]);
        let pod = json!({"metadata": {"name": "p", "namespace": "shop", "uid": "u"}, "spec": spec});
        Arc::new(kubewright_objects::from_value(pod).expect("a pod"))
    }

    fn key() -> Key {
        Key::namespaced("shop", "p")
    }

    #[test]
    fn pods_of_others_gated_or_bound_ones_do_not_wait() {
        assert!(is_waiting(&pod(json!({}))));
        assert!(is_waiting(&pod(json!({"schedulerName": "default-scheduler"}))));
        assert!(!is_waiting(&pod(json!({"schedulerName": "nobody"}))));
        assert!(!is_waiting(&pod(json!({"schedulingGates": [{"name": "wait"}]}))));
        assert!(!is_waiting(&pod(json!({"nodeName": "n"}))));
    }

    #[test]
    fn a_pod_that_was_just_bound_keeps_its_place_until_the_cache_shows_it() {
        let mut state = State::default();
        state.see_pod(&key(), Some(pod(json!({}))));
        let (pod_info, _) = state.decide(&FakeListers::default()).expect("a turn");
        state.assume(&pod_info, "n");
        state.see_pod(&key(), Some(pod(json!({}))));
        assert!(state.decide(&FakeListers::default()).is_none(), "it does not wait again");
        assert_eq!(state.cluster.place_of("u").map(|node| &**node), Some("n"));
        state.see_pod(&key(), Some(pod(json!({"nodeName": "n"}))));
        state.see_pod(&key(), None);
        assert!(state.cluster.place_of("u").is_none());
    }

    #[test]
    fn its_own_status_gives_a_refused_pod_no_other_turn_and_a_change_of_its_spec_does() {
        let mut state = State::default();
        let now = kubewright_world::SIMULATION_START;
        state.see_pod(&key(), Some(pod(json!({}))));
        let (pod_info, _) = state.decide(&FakeListers::default()).expect("a turn");
        state.refuse(&pod_info, BTreeSet::from([Plugin::NodeResourcesFit]), &Nomination::Clear, now);
        let mut updated = (*pod(json!({}))).clone();
        updated.status = kubewright_objects::from_value(
            json!({"conditions": [{"type": "PodScheduled", "status": "False"}]}),
        )
        .ok();
        state.see_pod(&key(), Some(Arc::new(updated)));
        assert!(state.decide(&FakeListers::default()).is_none());
        state.see_pod(&key(), Some(pod(json!({"tolerations": [{"operator": "Exists"}]}))));
        assert!(state.decide(&FakeListers::default()).is_some());
    }

    #[test]
    fn room_on_a_node_helps_those_that_fit_there() {
        let mut state = State::default();
        let now = kubewright_world::SIMULATION_START;
        let node = |cpu: &str| -> Arc<Node> {
            let node =
                json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": cpu, "pods": "9"}}});
            Arc::new(kubewright_objects::from_value(node).expect("a node"))
        };
        let mut large = (*pod(json!({}))).clone();
        large.spec = kubewright_objects::from_value(json!({"containers": [
            {"name": "c", "resources": {"requests": {"cpu": "4"}}}]}))
        .ok();
        state.see_node(&Key::cluster_scoped("n"), Some(node("1")));
        state.see_pod(&key(), Some(Arc::new(large)));
        let given = FakeListers::default();
        let refuse = |state: &mut State| {
            let (pod_info, decision) = state.decide(&given).expect("a turn");
            let Decision::Refuse(refused) = decision else { panic!("placed") };
            state.refuse(&pod_info, refused.by, &refused.nomination, now);
        };
        refuse(&mut state);
        state.helped.clear();
        state.see_node(&Key::cluster_scoped("n"), Some(node("2")));
        state.helped.clear();
        state.wake(&given, now);
        assert!(state.decide(&given).is_none(), "2 cores are not enough");
        state.see_node(&Key::cluster_scoped("n"), Some(node("8")));
        state.wake(&given, now);
        assert!(matches!(state.decide(&given), Some((_, Decision::Place { .. }))));
    }
}
