//! A node with the pods on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Taint};

use super::resources::{Resources, Scored};
use super::subject::{HostPort, Labels, Subject, collide};
use crate::facts::taints;
use crate::selection::Place;

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
    pub(super) pods: BTreeMap<Arc<str>, Arc<Subject>>,
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
        for subject in self.pods.values() {
            renewed.add(Arc::clone(subject));
        }
        renewed
    }

    /// What selectors see of the node.
    pub(super) fn place(&self) -> Place<'_> {
        Place { name: &self.name, labels: &self.labels }
    }

    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str)
    }

    pub(super) fn add(&mut self, subject: Arc<Subject>) {
        self.requested.add(&subject.requests, 1);
        self.scored.add(subject.scored, 1);
        for port in &subject.ports {
            *self.ports.entry(port.clone()).or_default() += 1;
        }
        self.pods.insert(Arc::clone(&subject.uid), subject);
    }

    pub(super) fn remove(&mut self, uid: &str) -> Option<Arc<Subject>> {
        let subject = self.pods.remove(uid)?;
        self.requested.add(&subject.requests, -1);
        self.scored.add(subject.scored, -1);
        for port in &subject.ports {
            if let Some(users) = self.ports.get_mut(port) {
                *users -= 1;
                if *users == 0 {
                    self.ports.remove(port);
                }
            }
        }
        Some(subject)
    }

    /// Whether nobody has the ports that the pod wants.
    pub(super) fn has_ports_for(&self, subject: &Subject) -> bool {
        !subject.ports.iter().any(|port| self.ports.keys().any(|taken| collide(port, taken)))
    }
}
