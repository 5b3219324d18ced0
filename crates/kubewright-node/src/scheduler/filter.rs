//! Whether a pod can go to a node: kube-scheduler's filters in their order (`apis/config/v1/default_plugins.go`).

use std::borrow::Cow;

use super::affinity::{Clash, Neighbours};
use super::cluster_state::ClusterState;
use super::devices::Devices;
use super::limits::{Attached, Exclusive, has_slots};
use super::listers::Listers;
use super::node_state::NodeState;
use super::pod_info::{Labels, PodInfo};
use super::spread::{Skewed, Spread};
use super::volumes::{Claims, OutOfReach};
use crate::selection::{RequiredNodeAffinity, is_tolerated};

/// What stood against a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Plugin {
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    DynamicResources,
    PodTopologySpread,
    InterPodAffinity,
}

/// Why a pod cannot go to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) by: Plugin,
    pub(super) reasons: Vec<Cow<'static, str>>,
    /// Whether it could if other pods were not there (`Unschedulable`, not `UnschedulableAndUnresolvable`).
    pub(super) is_resolvable: bool,
}

impl Refusal {
    fn for_good(by: Plugin, reason: &'static str) -> Self {
        Self { by, reasons: vec![reason.into()], is_resolvable: false }
    }

    fn for_now(by: Plugin, reason: &'static str) -> Self {
        Self { by, reasons: vec![reason.into()], is_resolvable: true }
    }
}

/// What is worked out once for a pod and asked of many nodes (the `PreFilter` states).
pub(super) struct Question<'a> {
    pub(super) pod_info: &'a PodInfo,
    pub(super) wanted: RequiredNodeAffinity<'a>,
    pub(super) claims: &'a Claims,
    devices: &'a Devices,
    attached: &'a Attached,
    listers: &'a dyn Listers,
    cluster_matters: Crowd,
}

/// What depends on which pods are where.
#[derive(Clone)]
struct Crowd {
    neighbours: Neighbours,
    spread: Spread,
    minima: Vec<i64>,
    exclusive: Exclusive,
}

impl<'a> Question<'a> {
    /// The question whether `pod_info` fits.
    pub(super) fn about(
        pod_info: &'a PodInfo,
        cluster: &ClusterState,
        claims: &'a Claims,
        devices: &'a Devices,
        listers: &'a dyn Listers,
    ) -> Self {
        let spread = Spread::of(pod_info, cluster);
        let labels = |namespace: &str| listers.namespace_labels(namespace);
        let crowd = Crowd {
            neighbours: Neighbours::of(pod_info, cluster, &labels),
            minima: spread.minima(),
            spread,
            exclusive: Exclusive::of(pod_info, cluster, listers),
        };
        let attached = &claims.attached;
        Self {
            pod_info,
            wanted: pod_info.required_node_affinity(),
            claims,
            devices,
            attached,
            listers,
            cluster_matters: crowd,
        }
    }

    /// The same question, to be asked about a cluster with some pods more or less.
    pub(super) fn supposing(&self) -> Self {
        Self { cluster_matters: self.cluster_matters.clone(), ..*self }
    }

    /// Supposes that `other` comes to `node`, or with -1 that it leaves. The node itself is the caller's to change.
    pub(super) fn suppose(&mut self, other: &PodInfo, node: &NodeState, sign: i64) {
        let listers = self.listers;
        let labels = |namespace: &str| -> Labels { listers.namespace_labels(namespace) };
        let crowd = &mut self.cluster_matters;
        crowd.neighbours.adjust(self.pod_info, other, node, sign, &labels);
        crowd.spread.adjust(self.pod_info, other, node, sign);
        crowd.minima = crowd.spread.minima();
        crowd.exclusive.adjust(self.pod_info, other, sign);
    }

    /// Whether the pod can go to `node`, with those that were promised the node and are at least as important on it and
    /// without them (`RunFilterPluginsWithNominatedPods`).
    pub(super) fn asked_of(&self, node: &NodeState, cluster: &ClusterState) -> Result<(), Refusal> {
        let mut promised = cluster
            .nominated_to(&node.name)
            .filter(|other| other.priority >= self.pod_info.priority && other.uid != self.pod_info.uid)
            .peekable();
        if promised.peek().is_some() {
            let (mut question, mut crowded) = (self.supposing(), node.clone());
            for other in promised {
                question.suppose(other, &crowded, 1);
                crowded.add(std::sync::Arc::clone(other));
            }
            question.fits(&crowded)?;
        }
        self.fits(node)
    }

    /// What the first filter that is against it says.
    fn fits(&self, node: &NodeState) -> Result<(), Refusal> {
        let pod_info = self.pod_info;
        let is_tolerated = |taint| is_tolerated(taint, pod_info.tolerations());
        if node.cordon.as_ref().is_some_and(|taint| !is_tolerated(taint)) {
            return Err(Refusal::for_good(Plugin::NodeUnschedulable, "node(s) were unschedulable"));
        }
        if !node.barring.iter().all(is_tolerated) {
            return Err(Refusal::for_good(Plugin::TaintToleration, "node(s) had untolerated taint(s)"));
        }
        if !self.wanted.matches(node.info()) {
            let reason = "node(s) didn't match Pod's node affinity/selector";
            return Err(Refusal::for_good(Plugin::NodeAffinity, reason));
        }
        if !pod_info.ports.is_empty() && !node.has_ports_for(pod_info) {
            let reason = "node(s) didn't have free ports for the requested pod ports";
            return Err(Refusal::for_now(Plugin::NodePorts, reason));
        }
        has_room(pod_info, node)?;
        let crowd = &self.cluster_matters;
        if crowd.exclusive.others > 0 {
            let reason = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
            return Err(Refusal::for_now(Plugin::VolumeRestrictions, reason));
        }
        if !self.attached.is_empty() && !has_slots(self.attached, node, self.listers) {
            return Err(Refusal::for_now(Plugin::NodeVolumeLimits, "node(s) exceed max volume count"));
        }
        self.claims.on(node).map_err(out_of_reach)?;
        crowd.spread.allow(pod_info, node, &crowd.minima).map_err(|skewed| match skewed {
            Skewed::NoDomain => Refusal::for_good(
                Plugin::PodTopologySpread,
                "node(s) didn't match pod topology spread constraints (missing required label)",
            ),
            Skewed::TooMany => Refusal::for_now(
                Plugin::PodTopologySpread,
                "node(s) didn't match pod topology spread constraints",
            ),
        })?;
        crowd.neighbours.allow(pod_info, node).map_err(|clash| {
            let by = Plugin::InterPodAffinity;
            match clash {
                Clash::Affinity => Refusal::for_good(by, "node(s) didn't match pod affinity rules"),
                Clash::AntiAffinity => Refusal::for_now(by, "node(s) didn't match pod anti-affinity rules"),
                Clash::ExistingAntiAffinity => {
                    Refusal::for_now(by, "node(s) didn't satisfy existing pods anti-affinity rules")
                }
            }
        })?;
        self.devices.on(node, &pod_info.pod).map(|_| ()).map_err(|reason| Refusal {
            by: Plugin::DynamicResources,
            reasons: vec![reason.into()],
            is_resolvable: false,
        })
    }
}

/// Whether the node has what the pod requests (`fitsRequest` in `noderesources/fit.go`).
fn has_room(pod_info: &PodInfo, node: &NodeState) -> Result<(), Refusal> {
    let mut reasons: Vec<Cow<'static, str>> = Vec::new();
    let mut is_resolvable = true;
    let count = i64::try_from(node.pods.len()).unwrap_or(i64::MAX);
    if count >= node.most_pods {
        reasons.push("Too many pods".into());
    }
    let (wanted, room, used) = (&pod_info.requests, &node.allocatable, &node.requested);
    let known = [
        (wanted.cpu, room.cpu, used.cpu, "Insufficient cpu"),
        (wanted.memory, room.memory, used.memory, "Insufficient memory"),
        (
            wanted.ephemeral_storage,
            room.ephemeral_storage,
            used.ephemeral_storage,
            "Insufficient ephemeral-storage",
        ),
    ];
    for (wanted, room, used, reason) in known {
        if wanted > 0 && wanted > room - used {
            reasons.push(reason.into());
            is_resolvable &= wanted <= room;
        }
    }
    for (name, wanted) in wanted.others() {
        if wanted > room.other(name) - used.other(name) {
            reasons.push(format!("Insufficient {name}").into());
            is_resolvable &= wanted <= room.other(name);
        }
    }
    if reasons.is_empty() {
        return Ok(());
    }
    Err(Refusal { by: Plugin::NodeResourcesFit, reasons, is_resolvable })
}

fn out_of_reach(against: Vec<OutOfReach>) -> Refusal {
    let said = |one: OutOfReach| match one {
        OutOfReach::NodeAffinity => "node(s) didn't match PersistentVolume's node affinity".into(),
        OutOfReach::NothingToBind => "node(s) didn't find available persistent volumes to bind".into(),
        OutOfReach::NoVolume => {
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)".into()
        }
        OutOfReach::Zone => "node(s) had no available volume zone".into(),
    };
    Refusal {
        by: Plugin::VolumeBinding,
        reasons: against.into_iter().map(said).collect(),
        is_resolvable: false,
    }
}
