//! Inter-pod affinity and anti-affinity (`pkg/scheduler/framework/plugins/interpodaffinity`).

use std::collections::BTreeMap;

use super::cluster_state::{ClusterState, Count};
use super::node_state::NodeState;
use super::pod_info::{Class, Labels, PodInfo, Term};

/// Counts by topology key and value. There are no zeros in it.
#[derive(Clone, Debug, Default)]
struct Topology(BTreeMap<String, BTreeMap<String, i64>>);

impl Topology {
    fn add(&mut self, key: &str, node: &NodeState, amount: i64) {
        let Some(value) = node.label(key) else { return };
        if amount == 0 {
            return;
        }
        let by_value = match self.0.get_mut(key) {
            Some(by_value) => by_value,
            None => self.0.entry(key.to_owned()).or_default(),
        };
        match by_value.get_mut(value) {
            Some(sum) => *sum += amount,
            None => {
                by_value.insert(value.to_owned(), amount);
            }
        }
        if by_value.get(value) == Some(&0) {
            by_value.remove(value);
            if by_value.is_empty() {
                self.0.remove(key);
            }
        }
    }

    fn of(&self, key: &str, node: &NodeState) -> i64 {
        let value = node.label(key).and_then(|value| self.0.get(key)?.get(value));
        value.copied().unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Why a node will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clash {
    /// The pod wants to be near others that are not there.
    Affinity,
    /// The pod wants to be far from others that are there.
    AntiAffinity,
    /// Others want to be far from the pod.
    ExistingAntiAffinity,
}

/// What the pods that are there mean for one that is to come (`preFilterState`).
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbours {
    existing_anti_affinity: Topology,
    affinity: Topology,
    anti_affinity: Topology,
    /// Whether the pod is of those that it wants to be near.
    matches_itself: bool,
}

impl Neighbours {
    /// What the pods of `cluster` mean for `pod_info`.
    pub(super) fn of(
        pod_info: &PodInfo,
        cluster: &ClusterState,
        namespace_labels: &dyn Fn(&str) -> Labels,
    ) -> Self {
        let mut all = Self::default();
        for carriers in cluster.carriers() {
            for term in &carriers.terms.anti_affinity {
                if term.matches(&pod_info.class, namespace_labels) {
                    each(cluster, &carriers.by_node, |node, carried| {
                        all.existing_anti_affinity.add(&term.topology_key, node, *carried);
                    });
                }
            }
        }
        let Some(terms) = &pod_info.terms else { return all };
        all.matches_itself = matches_all(&terms.affinity, &pod_info.class, namespace_labels);
        if terms.affinity.is_empty() && terms.anti_affinity.is_empty() {
            return all;
        }
        for (class, by_node) in cluster.classes() {
            if matches_all(&terms.affinity, class, namespace_labels) {
                for term in &terms.affinity {
                    each(cluster, by_node, |node, count| {
                        all.affinity.add(&term.topology_key, node, count.all);
                    });
                }
            }
            for term in &terms.anti_affinity {
                if term.matches(class, namespace_labels) {
                    each(cluster, by_node, |node, count| {
                        all.anti_affinity.add(&term.topology_key, node, count.all);
                    });
                }
            }
        }
        all
    }

    /// Takes into account that `other` comes to `node`, or with -1 that it leaves.
    pub(super) fn adjust(
        &mut self,
        pod_info: &PodInfo,
        other: &PodInfo,
        node: &NodeState,
        sign: i64,
        namespace_labels: &dyn Fn(&str) -> Labels,
    ) {
        for term in other.terms.iter().flat_map(|terms| &terms.anti_affinity) {
            if term.matches(&pod_info.class, namespace_labels) {
                self.existing_anti_affinity.add(&term.topology_key, node, sign);
            }
        }
        let Some(terms) = &pod_info.terms else { return };
        if matches_all(&terms.affinity, &other.class, namespace_labels) {
            for term in &terms.affinity {
                self.affinity.add(&term.topology_key, node, sign);
            }
        }
        for term in &terms.anti_affinity {
            if term.matches(&other.class, namespace_labels) {
                self.anti_affinity.add(&term.topology_key, node, sign);
            }
        }
    }

    /// Whether the pod may come to `node`.
    pub(super) fn allow(&self, pod_info: &PodInfo, node: &NodeState) -> Result<(), Clash> {
        if let Some(terms) = &pod_info.terms {
            self.near(&terms.affinity, node)?;
            let is_near = |term: &Term| self.anti_affinity.of(&term.topology_key, node) > 0;
            if terms.anti_affinity.iter().any(is_near) {
                return Err(Clash::AntiAffinity);
            }
        }
        let disliked = |key: &String| self.existing_anti_affinity.of(key, node) > 0;
        if self.existing_anti_affinity.0.keys().any(disliked) {
            return Err(Clash::ExistingAntiAffinity);
        }
        Ok(())
    }

    /// The first of a series of pods that want to be near each other may go anywhere where there is a "near".
    fn near(&self, terms: &[Term], node: &NodeState) -> Result<(), Clash> {
        if terms.iter().any(|term| node.label(&term.topology_key).is_none()) {
            return Err(Clash::Affinity);
        }
        let is_near = terms.iter().all(|term| self.affinity.of(&term.topology_key, node) > 0);
        let is_first = self.affinity.is_empty() && self.matches_itself;
        if is_near || is_first { Ok(()) } else { Err(Clash::Affinity) }
    }
}

/// What preferred terms, of the pod and of those that are there, say for each node (`scoring.go`).
#[derive(Debug, Default)]
pub(super) struct Preferences(Topology);

impl Preferences {
    /// What is preferred for `pod_info`.
    pub(super) fn of(
        pod_info: &PodInfo,
        cluster: &ClusterState,
        namespace_labels: &dyn Fn(&str) -> Labels,
    ) -> Self {
        let mut all = Topology::default();
        for carriers in cluster.carriers() {
            // Pods that had to be near like others of their kind to come, with a weight of 1.
            let required = carriers.terms.affinity.iter().map(|term| (1, term));
            let preferred = carriers.terms.preferred.iter().map(|(weight, term)| (*weight, term));
            for (weight, term) in required.chain(preferred) {
                if term.matches(&pod_info.class, namespace_labels) {
                    each(cluster, &carriers.by_node, |node, carried| {
                        all.add(&term.topology_key, node, weight * carried);
                    });
                }
            }
        }
        let preferred = pod_info.terms.iter().flat_map(|terms| &terms.preferred);
        for (weight, term) in preferred {
            for (_, by_node) in
                cluster.classes().iter().filter(|(class, _)| term.matches(class, namespace_labels))
            {
                each(cluster, by_node, |node, count| all.add(&term.topology_key, node, weight * count.all));
            }
        }
        Self(all)
    }

    /// Whether nothing is preferred to anything.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sum of what is said for a node.
    pub(super) fn of_node(&self, node: &NodeState) -> i64 {
        self.0.0.keys().map(|key| self.0.of(key, node)).sum()
    }
}

fn matches_all(terms: &[Term], class: &Class, namespace_labels: &dyn Fn(&str) -> Labels) -> bool {
    !terms.is_empty() && terms.iter().all(|term| term.matches(class, namespace_labels))
}

/// Calls `tell` for each node of a count.
fn each<C>(
    cluster: &ClusterState,
    by_node: &BTreeMap<std::sync::Arc<str>, C>,
    mut visit: impl FnMut(&NodeState, &C),
) {
    for (name, count) in by_node {
        if let Some(node) = cluster.node(name) {
            visit(node, count);
        }
    }
}

/// How many pods of the classes that `is_meant` stay on a node.
pub(super) fn staying_on(meant: &[&BTreeMap<std::sync::Arc<str>, Count>], node: &str) -> i64 {
    meant.iter().filter_map(|by_node| by_node.get(node)).map(|count| count.staying).sum()
}
