//! The volumes of a pod (`pkg/scheduler/framework/plugins/volumebinding` and `volumezone`): claims that are bound say
//! where their volumes can be reached; claims that wait for their first consumer are bound, or provisioned for, where
//! the pod goes.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Volume};
use kubewright_runtime::owner;

use super::limits::{Attached, attached};
use super::listers::Listers;
use super::node_state::NodeState;
use super::pod_info::PodInfo;
use crate::selection::is_one_of;
use crate::storage;

/// Who binds a claim that waits for its consumer says where it goes by this.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// What volumes from before node affinity say about their place (`topologyLabels` in `volumezone`).
const ZONE_LABELS: [&str; 4] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

/// The claims of a pod.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// The volumes of bound claims; `None` for one that is not there.
    bound: Vec<Option<Arc<PersistentVolume>>>,
    waiting: Vec<WaitingClaim>,
    /// What a node has to attach.
    pub(super) attached: Attached,
}

/// A claim that waits for its first consumer.
#[derive(Debug)]
struct WaitingClaim {
    claim: Arc<PersistentVolumeClaim>,
    /// Volumes that would do, the best first.
    candidates: Vec<Arc<PersistentVolume>>,
    can_be_provisioned: bool,
}

/// What has to be written before a pod can be bound.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Binding {
    /// This volume becomes that of the claim.
    Static { volume: Arc<PersistentVolume>, claim: Arc<PersistentVolumeClaim> },
    /// A volume for the claim is to be made for the node.
    Provision(Arc<PersistentVolumeClaim>),
}

/// Why a node will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutOfReach {
    NodeAffinity,
    NothingToBind,
    NoVolume,
    Zone,
}

impl Claims {
    /// The claims of `pod_info`.
    ///
    /// # Errors
    /// Why the pod fits nowhere, whatever the node (`PreFilter`).
    pub(super) fn of(pod_info: &PodInfo, listers: &dyn Listers) -> Result<Self, String> {
        let claims: Vec<_> = named_claims(pod_info)
            .map(|(name, is_ephemeral)| usable(pod_info, &name, is_ephemeral, listers))
            .collect::<Result<_, _>>()?;
        let mut all = Self { attached: attached(pod_info, listers), ..Self::default() };
        let mut is_unbound = false;
        for claim in claims {
            let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
            let class = storage::named_class(&claim).and_then(|name| listers.storage_class(name));
            let waits = class
                .as_ref()
                .is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"));
            if is_bound(&claim) {
                all.bound.push(listers.volume(volume));
            } else if waits && volume.is_empty() {
                let candidates = candidates(&claim, listers);
                let can_be_provisioned = class.is_some_and(|class| class.provisioner != NO_PROVISIONER);
                all.waiting.push(WaitingClaim { claim, candidates, can_be_provisioned });
            } else {
                is_unbound = true;
            }
        }
        all.waiting.sort_by_key(|waiting| storage::requested(&waiting.claim));
        if is_unbound { Err("pod has unbound immediate PersistentVolumeClaims".into()) } else { Ok(all) }
    }

    /// What has to be written for the pod to use its volumes on `node`.
    pub(super) fn on(&self, node: &NodeState) -> Result<Vec<Binding>, Vec<OutOfReach>> {
        let mut against = Vec::new();
        let is_reached = |volume: &Option<Arc<PersistentVolume>>| {
            volume.as_ref().is_none_or(|volume| reaches(volume, node))
        };
        if !self.bound.iter().all(is_reached) {
            against.push(OutOfReach::NodeAffinity);
        }
        let mut bindings = Vec::new();
        let mut used = BTreeSet::new();
        for waiting in &self.waiting {
            match waiting.on(node, &mut used) {
                Some(binding) => bindings.push(binding),
                None => {
                    against.push(OutOfReach::NothingToBind);
                    break;
                }
            }
        }
        if self.bound.iter().any(Option::is_none) {
            against.push(OutOfReach::NoVolume);
        }
        if against.is_empty() && self.bound.iter().flatten().any(|volume| !is_in_zone(volume, node)) {
            against.push(OutOfReach::Zone);
        }
        if against.is_empty() { Ok(bindings) } else { Err(against) }
    }
}

impl WaitingClaim {
    fn on(&self, node: &NodeState, used: &mut BTreeSet<String>) -> Option<Binding> {
        if let Some(selected) = storage::annotation(&self.claim.metadata, SELECTED_NODE) {
            return (*selected == *node.name).then(|| Binding::Provision(Arc::clone(&self.claim)));
        }
        let free = |volume: &&Arc<PersistentVolume>| {
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            !used.contains(name) && reaches(volume, node)
        };
        if let Some(volume) = self.candidates.iter().find(free) {
            used.extend(volume.metadata.name.clone());
            return Some(Binding::Static { volume: Arc::clone(volume), claim: Arc::clone(&self.claim) });
        }
        self.can_be_provisioned.then(|| Binding::Provision(Arc::clone(&self.claim)))
    }
}

/// The names of the claims of a pod.
pub(super) fn claim_names(pod_info: &PodInfo) -> impl Iterator<Item = String> {
    named_claims(pod_info).map(|(name, _)| name)
}

fn named_claims(pod_info: &PodInfo) -> impl Iterator<Item = (String, bool)> {
    let volumes = pod_info.pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    volumes.iter().filter_map(|volume| claim_name(pod_info, volume))
}

/// The claim's name, and whether it is made for this pod alone.
fn claim_name(pod_info: &PodInfo, volume: &Volume) -> Option<(String, bool)> {
    if let Some(claim) = &volume.persistent_volume_claim {
        return Some((claim.claim_name.clone(), false));
    }
    let pod = pod_info.pod.metadata.name.as_deref().unwrap_or_default();
    volume.ephemeral.as_ref().map(|_| (format!("{pod}-{}", volume.name), true))
}

/// The claim, if the pod may use it (`podHasPVCs`).
fn usable(
    pod_info: &PodInfo,
    name: &str,
    is_ephemeral: bool,
    listers: &dyn Listers,
) -> Result<Arc<PersistentVolumeClaim>, String> {
    let claim = listers.claim(pod_info.namespace(), name).ok_or_else(|| {
        if is_ephemeral {
            format!("waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}")
        } else {
            format!("persistentvolumeclaim {name:?} not found")
        }
    })?;
    let status = claim.status.as_ref();
    if status.and_then(|status| status.phase.as_deref()) == Some("Lost") {
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
        return Err(format!(
            "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
        ));
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
    }
    let owner = owner::controller_of(&claim.metadata).map(|owner| owner.uid.as_str());
    if is_ephemeral && owner != Some(&*pod_info.uid) {
        let Some((namespace, pod)) =
            pod_info.pod.metadata.namespace.as_deref().zip(pod_info.pod.metadata.name.as_deref())
        else {
            return Ok(claim);
        };
        return Err(format!(
            "PVC {namespace}/{name} was not created for pod {namespace}/{pod} (pod is not owner)"
        ));
    }
    Ok(claim)
}

/// Whether the claim has its volume for good.
fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    let has_volume =
        claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref()).is_some_and(|name| !name.is_empty());
    has_volume && storage::annotation(&claim.metadata, "pv.kubernetes.io/bind-completed").is_some()
}

/// Volumes that would do for the claim: the one that is reserved for it, or else the free ones, the smallest first.
fn candidates(claim: &PersistentVolumeClaim, listers: &dyn Listers) -> Vec<Arc<PersistentVolume>> {
    let Ok(selector) = storage::selector_of(claim) else { return Vec::new() };
    let mut all: Vec<_> = listers
        .volumes()
        .into_iter()
        .filter(|volume| {
            storage::suits(volume, claim)
                && storage::class_of_volume(volume) == storage::class_of_claim(claim)
        })
        .collect();
    if let Some(reserved) = all.iter().find(|volume| storage::is_bound_to(volume, claim)) {
        return vec![Arc::clone(reserved)];
    }
    all.retain(|volume| storage::is_free_for(volume, claim, selector.as_ref()));
    all.sort_by_cached_key(|volume| (storage::size(volume), volume.metadata.name.clone()));
    all
}

/// Whether the volume can be reached from the node.
fn reaches(volume: &PersistentVolume, node: &NodeState) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.is_none_or(|required| is_one_of(&required.node_selector_terms, node.info()))
}

/// Whether the labels of a volume agree with those of the node, as far as the node has any of those.
fn is_in_zone(volume: &PersistentVolume, node: &NodeState) -> bool {
    if !ZONE_LABELS.iter().any(|label| node.label(label).is_some()) {
        return true;
    }
    let labels = volume.metadata.labels.as_ref();
    ZONE_LABELS.iter().all(|name| {
        let zones = labels.and_then(|labels| labels.get(*name));
        zones
            .is_none_or(|zones| node.label(name).is_some_and(|own| zones.split("__").any(|zone| zone == own)))
    })
}
