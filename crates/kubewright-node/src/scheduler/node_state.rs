//! A node with the pods on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Taint};

use super::pod_info::{HostPort, Labels, PodInfo, collide};
use super::resources::{Resources, Scored};
use crate::facts::taints;
use crate::selection::NodeInfo;

/// The taint that stands for `spec.unschedulable`.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A node and what is taken of it.
#[derive(Clone, Debug)]
pub(super) struct NodeState {
    pub(super) name: Arc<str>,
    pub(super) allocatable: Resources,
    /// How many pods it takes.
    pub(super) most_pods: i64,
    pub(super) requested: Resources,
    pub(super) scored: Scored,
    pub(super) pods: BTreeMap<Arc<str>, Arc<PodInfo>>,
    /// What `spec.unschedulable` stands for.
    pub(super) cordon: Option<Taint>,
    /// Taints that keep pods off.
    pub(super) barring: Vec<Taint>,
    /// Taints that pods are rather kept off by.
    pub(super) discouraging: Vec<Taint>,
    ports: BTreeMap<HostPort, usize>,
    labels: Labels,
}

impl NodeState {
    /// A node without pods.
    pub(super) fn of(node: &Node) -> Self {
        let spec = node.spec.as_ref();
        let taints = taints(node);
        let bars = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
        let (allocatable, most_pods) = Resources::allocatable(node);
        let cordon = Taint { key: UNSCHEDULABLE.into(), effect: "NoSchedule".into(), ..Taint::default() };
        Self {
            name: node.metadata.name.as_deref().unwrap_or_default().into(),
            allocatable,
            most_pods,
            requested: Resources::default(),
            scored: Scored::default(),
            pods: BTreeMap::new(),
            cordon: (spec.and_then(|spec| spec.unschedulable) == Some(true)).then_some(cordon),
            barring: taints.iter().filter(bars).cloned().collect(),
            discouraging: taints.iter().filter(|taint| taint.effect == "PreferNoSchedule").cloned().collect(),
            ports: BTreeMap::new(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
        }
    }

    /// The same pods on the node as it is now.
    pub(super) fn renewed(&self, node: &Node) -> Self {
        let mut renewed = Self::of(node);
        for pod_info in self.pods.values() {
            renewed.add(Arc::clone(pod_info));
        }
        renewed
    }

    /// What selectors see of the node.
    pub(super) fn info(&self) -> NodeInfo<'_> {
        NodeInfo { name: &self.name, labels: &self.labels }
    }

    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str)
    }

    pub(super) fn add(&mut self, pod_info: Arc<PodInfo>) {
        self.requested.add(&pod_info.requests, 1);
        self.scored.add(pod_info.scored, 1);
        for port in &pod_info.ports {
            *self.ports.entry(port.clone()).or_default() += 1;
        }
        self.pods.insert(Arc::clone(&pod_info.uid), pod_info);
    }

    pub(super) fn remove(&mut self, uid: &str) -> Option<Arc<PodInfo>> {
        let pod_info = self.pods.remove(uid)?;
        self.requested.add(&pod_info.requests, -1);
        self.scored.add(pod_info.scored, -1);
        for port in &pod_info.ports {
            if let Some(users) = self.ports.get_mut(port) {
                *users -= 1;
                if *users == 0 {
                    self.ports.remove(port);
                }
            }
        }
        Some(pod_info)
    }

    /// Whether nobody has the ports that the pod wants.
    pub(super) fn has_ports_for(&self, pod_info: &PodInfo) -> bool {
        !pod_info.ports.iter().any(|port| self.ports.keys().any(|taken| collide(port, taken)))
    }
}
