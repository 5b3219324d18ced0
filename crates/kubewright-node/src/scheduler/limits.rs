//! What volumes forbid beside their place: a claim of one pod alone (`plugins/volumerestrictions`), and how many volumes
//! of a CSI driver a node takes (`plugins/nodevolumelimits/csi.go`).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::storage::v1::CSINode;

use super::cluster_state::ClusterState;
use super::listers::Listers;
use super::node_state::NodeState;
use super::pod_info::PodInfo;
use super::volumes::claim_names;
use crate::storage;

const ONE_POD: &str = "ReadWriteOncePod";

/// The claims of a pod that no other pod may use, and how many others do.
#[derive(Clone, Debug, Default)]
pub(super) struct Exclusive {
    claims: BTreeSet<String>,
    pub(super) others: i64,
}

impl Exclusive {
    pub(super) fn of(pod_info: &PodInfo, cluster: &ClusterState, listers: &dyn Listers) -> Self {
        let is_exclusive = |name: &String| {
            let claim = listers.claim(pod_info.namespace(), name);
            let modes = claim.and_then(|claim| claim.spec.as_ref()?.access_modes.clone());
            modes.is_some_and(|modes| modes.iter().any(|mode| mode == ONE_POD))
        };
        let mut all = Self { claims: claim_names(pod_info).filter(is_exclusive).collect(), others: 0 };
        if !all.claims.is_empty() {
            let pods = cluster.nodes().values().flat_map(|node| node.pods.values());
            all.others = pods.map(|other| all.uses_of(pod_info, other)).sum();
        }
        all
    }

    /// Supposes that `other` comes to a node, or with -1 that it leaves.
    pub(super) fn adjust(&mut self, pod_info: &PodInfo, other: &PodInfo, sign: i64) {
        self.others += sign * self.uses_of(pod_info, other);
    }

    fn uses_of(&self, pod_info: &PodInfo, other: &PodInfo) -> i64 {
        if self.claims.is_empty() || other.uid == pod_info.uid || other.namespace() != pod_info.namespace() {
            return 0;
        }
        let uses = claim_names(other).filter(|name| self.claims.contains(name)).count();
        i64::try_from(uses).unwrap_or(i64::MAX)
    }
}

/// The volumes of a pod by their CSI driver.
pub(super) type Attached = BTreeMap<String, BTreeSet<String>>;

/// The volumes that a node has to attach for a pod. One that is not made yet counts by its claim.
pub(super) fn attached(pod_info: &PodInfo, listers: &dyn Listers) -> Attached {
    let mut all = Attached::new();
    for name in claim_names(pod_info) {
        let Some(claim) = listers.claim(pod_info.namespace(), &name) else { continue };
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
        let source = listers.volume(volume).and_then(|volume| volume.spec.as_ref()?.csi.clone());
        let (driver, handle) = match source {
            Some(csi) => (csi.driver, csi.volume_handle),
            None if volume.is_empty() => {
                let class = storage::named_class(&claim).and_then(|class| listers.storage_class(class));
                let Some(class) = class else { continue };
                (class.provisioner.clone(), format!("{}/{name}", pod_info.namespace()))
            }
            None => continue,
        };
        all.entry(driver).or_default().insert(handle);
    }
    all
}

/// Whether the node takes these volumes beside those that it has.
pub(super) fn has_slots(wanted: &Attached, node: &NodeState, listers: &dyn Listers) -> bool {
    let Some(limits) = listers.csi_node(&node.name) else { return true };
    let limits: BTreeMap<&str, usize> =
        wanted.keys().filter_map(|driver| Some((driver.as_str(), limit(&limits, driver)?))).collect();
    if limits.is_empty() {
        return true;
    }
    let mut there = Attached::new();
    for pod in node.pods.values() {
        for (driver, handles) in attached(pod, listers) {
            there.entry(driver).or_default().extend(handles);
        }
    }
    limits.iter().all(|(driver, most)| {
        let none = BTreeSet::new();
        let there = there.get(*driver).unwrap_or(&none);
        let new = wanted[*driver].difference(there).count();
        new == 0 || there.len() + new <= *most
    })
}

/// How many volumes of a driver a node takes, as far as it says.
fn limit(node: &CSINode, driver: &str) -> Option<usize> {
    let found = node.spec.drivers.iter().find(|known| known.name == driver)?;
    usize::try_from(found.allocatable.as_ref()?.count?).ok()
}
