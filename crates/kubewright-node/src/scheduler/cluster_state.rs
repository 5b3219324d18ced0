//! The nodes with the pods on them, kept up to date one change at a time, and the counts that affinities and spreading
//! ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;

use super::node_state::NodeState;
use super::pod_info::{Class, PodInfo, Terms};

/// How many pods of a class are on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// All of them.
    pub(super) all: i64,
    /// Those that are not going away.
    pub(super) staying: i64,
}

/// How many pods with these terms are on each node.
#[derive(Clone, Debug)]
pub(super) struct Carriers {
    pub(super) terms: Arc<Terms>,
    pub(super) by_node: BTreeMap<Arc<str>, i64>,
}

/// What is on each node, and who waits for one with a promise.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterState {
    nodes: BTreeMap<Arc<str>, NodeState>,
    classes: BTreeMap<Arc<Class>, BTreeMap<Arc<str>, Count>>,
    carriers: BTreeMap<String, Carriers>,
    /// The pods that have a node, by uid; the node need not be there.
    placed: BTreeMap<Arc<str>, (Arc<str>, Arc<PodInfo>)>,
    /// The pods on nodes that are not there.
    elsewhere: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// The pods that were promised a node (`status.nominatedNodeName`), by node and uid.
    nominated: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Arc<PodInfo>>>,
    priorities: BTreeMap<i32, usize>,
}

impl ClusterState {
    pub(super) fn nodes(&self) -> &BTreeMap<Arc<str>, NodeState> {
        &self.nodes
    }

    pub(super) fn node(&self, name: &str) -> Option<&NodeState> {
        self.nodes.get(name)
    }

    /// The classes of pods of one namespace, with their counts by node.
    pub(super) fn classes_in<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<Class>, &'a BTreeMap<Arc<str>, Count>)> {
        let first = Class { namespace: namespace.to_owned(), ..Class::default() };
        self.classes.range(first..).take_while(move |(class, _)| class.namespace == namespace)
    }

    /// The classes of pods of all namespaces.
    pub(super) fn classes(&self) -> &BTreeMap<Arc<Class>, BTreeMap<Arc<str>, Count>> {
        &self.classes
    }

    /// The affinities of pods that are on nodes.
    pub(super) fn carriers(&self) -> impl Iterator<Item = &Carriers> {
        self.carriers.values()
    }

    /// The lowest priority of a pod on a node.
    pub(super) fn lowest_priority(&self) -> Option<i32> {
        self.priorities.first_key_value().map(|(priority, _)| *priority)
    }

    /// Where a pod is.
    pub(super) fn place_of(&self, uid: &str) -> Option<&Arc<str>> {
        self.placed.get(uid).map(|(node, _)| node)
    }

    /// The pods that were promised this node.
    pub(super) fn nominated_to(&self, node: &str) -> impl Iterator<Item = &Arc<PodInfo>> {
        self.nominated.get(node).into_iter().flat_map(BTreeMap::values)
    }

    /// A node is there, or is now as `node` says.
    pub(super) fn set_node(&mut self, node: &Node) {
        let name: Arc<str> = node.metadata.name.as_deref().unwrap_or_default().into();
        if let Some(state) = self.nodes.get_mut(&name) {
            *state = state.renewed(node);
            return;
        }
        let mut state = NodeState::of(node);
        for uid in self.elsewhere.remove(&name).unwrap_or_default() {
            if let Some((_, pod_info)) = self.placed.get(&uid) {
                state.add(Arc::clone(pod_info));
            }
        }
        for pod_info in state.pods.values() {
            count(&mut self.classes, &mut self.carriers, pod_info, &name, 1);
        }
        self.nodes.insert(name, state);
    }

    /// A node is gone; the pods that were on it are nowhere.
    pub(super) fn remove_node(&mut self, name: &str) {
        let Some(state) = self.nodes.remove(name) else { return };
        for pod_info in state.pods.values() {
            count(&mut self.classes, &mut self.carriers, pod_info, &state.name, -1);
            self.elsewhere.entry(Arc::clone(&state.name)).or_default().insert(Arc::clone(&pod_info.uid));
        }
    }

    /// A pod is on a node, or is there now as `pod_info` says.
    pub(super) fn place(&mut self, node: &str, pod_info: Arc<PodInfo>) {
        self.unplace(&pod_info.uid);
        *self.priorities.entry(pod_info.priority).or_default() += 1;
        let name = match self.nodes.get_mut(node) {
            Some(state) => {
                state.add(Arc::clone(&pod_info));
                count(&mut self.classes, &mut self.carriers, &pod_info, &state.name, 1);
                Arc::clone(&state.name)
            }
            None => {
                let name: Arc<str> = node.into();
                self.elsewhere.entry(Arc::clone(&name)).or_default().insert(Arc::clone(&pod_info.uid));
                name
            }
        };
        self.placed.insert(Arc::clone(&pod_info.uid), (name, pod_info));
    }

    /// A pod is on no node any more; gives the node that it was on.
    pub(super) fn unplace(&mut self, uid: &str) -> Option<Arc<str>> {
        let (node, pod_info) = self.placed.remove(uid)?;
        if let Some(others) = self.priorities.get_mut(&pod_info.priority) {
            *others -= 1;
            if *others == 0 {
                self.priorities.remove(&pod_info.priority);
            }
        }
        if let Some(state) = self.nodes.get_mut(&node) {
            state.remove(uid);
            count(&mut self.classes, &mut self.carriers, &pod_info, &node, -1);
        } else if let Some(others) = self.elsewhere.get_mut(&node) {
            others.remove(uid);
            if others.is_empty() {
                self.elsewhere.remove(&node);
            }
        }
        Some(node)
    }

    /// A waiting pod was promised a node.
    pub(super) fn nominate(&mut self, node: &str, pod_info: Arc<PodInfo>) {
        self.nominated.entry(node.into()).or_default().insert(Arc::clone(&pod_info.uid), pod_info);
    }

    /// A pod has no promise any more.
    pub(super) fn denominate(&mut self, uid: &str) {
        self.nominated.retain(|_, pods_info| {
            pods_info.remove(uid);
            !pods_info.is_empty()
        });
    }
}

/// Counts a pod that came to a node, or with -1 one that left.
fn count(
    classes: &mut BTreeMap<Arc<Class>, BTreeMap<Arc<str>, Count>>,
    carriers: &mut BTreeMap<String, Carriers>,
    pod_info: &PodInfo,
    node: &Arc<str>,
    sign: i64,
) {
    let by_node = match classes.get_mut(&pod_info.class) {
        Some(by_node) => by_node,
        None => classes.entry(Arc::clone(&pod_info.class)).or_default(),
    };
    let counted = by_node.entry(Arc::clone(node)).or_default();
    counted.all += sign;
    counted.staying += if pod_info.is_terminating { 0 } else { sign };
    if counted.all == 0 {
        by_node.remove(node);
    }
    if by_node.is_empty() {
        classes.remove(&pod_info.class);
    }
    let Some(terms) = &pod_info.terms else { return };
    let carried = carriers
        .entry(terms.key.clone())
        .or_insert_with(|| Carriers { terms: Arc::clone(terms), by_node: BTreeMap::new() });
    let counted = carried.by_node.entry(Arc::clone(node)).or_default();
    *counted += sign;
    if *counted == 0 {
        carried.by_node.remove(node);
    }
    if carried.by_node.is_empty() {
        carriers.remove(&terms.key);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn node(name: u8, cpu: u8) -> Arc<Node> {
        let node = json!({"metadata": {"name": format!("n{name}")},
            "status": {"allocatable": {"cpu": cpu.to_string(), "pods": "10"}}});
        Arc::new(kubewright_objects::from_value(node).expect("a node"))
    }

    fn pod_info(uid: u8, cpu: u8) -> Arc<PodInfo> {
        let near = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {}}]}});
        let pod = json!({
            "metadata": {"name": "p", "namespace": "shop", "uid": format!("u{uid}"), "labels": {"app": (cpu % 2).to_string()}},
            "spec": {"priority": cpu % 3, "affinity": if cpu.is_multiple_of(2) { near } else { json!({}) },
                "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu.to_string()}},
                    "ports": [{"containerPort": 1, "hostPort": 1}]}]},
        });
        Arc::new(PodInfo::of(Arc::new(kubewright_objects::from_value(pod).expect("a pod"))))
    }

    #[derive(Clone, Debug)]
    enum Change {
        Node(u8, u8),
        NodeGone(u8),
        Pod(u8, u8, u8),
        PodGone(u8),
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (0..4_u8, 1..9_u8).prop_map(|(name, cpu)| Change::Node(name, cpu)),
            (0..4_u8).prop_map(Change::NodeGone),
            (0..4_u8, 0..8_u8, 0..4_u8).prop_map(|(node, uid, cpu)| Change::Pod(node, uid, cpu)),
            (0..8_u8).prop_map(Change::PodGone),
        ]
    }

    proptest! {
        #[test]
        fn changes_one_by_one_lead_to_what_a_fresh_look_shows(
            changes in proptest::collection::vec(change(), 0..60),
        ) {
            let mut state = ClusterState::default();
            let (mut nodes, mut pods) = (BTreeMap::new(), BTreeMap::new());
            for change in changes {
                match change {
                    Change::Node(name, cpu) => {
                        state.set_node(&node(name, cpu));
                        nodes.insert(name, cpu);
                    }
                    Change::NodeGone(name) => {
                        state.remove_node(&format!("n{name}"));
                        nodes.remove(&name);
                    }
                    Change::Pod(on, uid, cpu) => {
                        state.place(&format!("n{on}"), pod_info(uid, cpu));
                        pods.insert(uid, (on, cpu));
                    }
                    Change::PodGone(uid) => {
                        state.unplace(&format!("u{uid}"));
                        pods.remove(&uid);
                    }
                }
            }
            let mut fresh = ClusterState::default();
            for (name, cpu) in nodes {
                fresh.set_node(&node(name, cpu));
            }
            for (uid, (on, cpu)) in pods {
                fresh.place(&format!("n{on}"), pod_info(uid, cpu));
            }
            prop_assert_eq!(&state.classes, &fresh.classes);
            prop_assert_eq!(&state.elsewhere, &fresh.elsewhere);
            prop_assert_eq!(&state.priorities, &fresh.priorities);
            prop_assert!(state.carriers.keys().eq(fresh.carriers.keys()));
            for (ours, theirs) in state.nodes.values().zip(fresh.nodes.values()) {
                prop_assert_eq!(&ours.name, &theirs.name);
                prop_assert_eq!(ours.requested.cpu, theirs.requested.cpu);
                prop_assert_eq!(ours.scored, theirs.scored);
                prop_assert!(ours.pods.keys().eq(theirs.pods.keys()));
            }
        }
    }
}
