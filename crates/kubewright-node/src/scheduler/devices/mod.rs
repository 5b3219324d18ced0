//! Devices of pods (`pkg/scheduler/framework/plugins/dynamicresources`): a pod waits until its claims are there, then goes where there
//! are devices for them, or where they are allocated already.
//!
//! Not there: devices that have to be made ready before a pod is bound, extended resources that devices stand for, taints by
//! `DeviceTaintRule` and the eviction that follows, scores by preference, and taking back an allocation that nobody uses and that is on
//! the wrong node.

mod allocated;
mod allocator;
mod capacity;
mod pools;
mod selectors;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeSelector, Pod, PodResourceClaim};
use kubewright_objects::devices::{ResourceClaim, ResourceSlice};
use kubewright_runtime::owner;
use serde_json::Value;

use self::allocated::Allocated;
use self::allocator::{Allocator, Failed, Wanted};
use self::pools::Pools;
use self::selectors::Selectors;
use super::listers::Listers;
use super::node_state::NodeState;
use super::pod_info::PodInfo;
use crate::selection::is_one_of;

/// How many users a claim may have.
const USERS: usize = 256;

/// Why a pod goes nowhere, whatever the node.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoDevices {
    /// Its claims are not there yet: it is not looked at, and nothing is said (`PreEnqueue`).
    NotYet,
    /// This is said.
    Because(String),
}

/// The claims of a pod, and all that decides whether a node has devices for them.
#[derive(Debug, Default)]
pub(super) struct Devices {
    claims: Vec<Arc<ResourceClaim>>,
    /// Where those can be used that are allocated.
    places: Vec<Option<NodeSelector>>,
    slices: Vec<Arc<ResourceSlice>>,
    /// The classes that are named, as JSON.
    classes: BTreeMap<String, Value>,
    allocated: Allocated,
    selectors: Selectors,
}

/// What is to be written of a claim before its pod is bound.
#[derive(Clone, Debug)]
pub(super) struct Reservation {
    pub(super) claim: Arc<ResourceClaim>,
    /// The devices that it gets; none where it has some.
    pub(super) allocation: Option<Value>,
}

/// The claims of a pod's spec.
fn pod_claims(pod: &Pod) -> &[PodResourceClaim] {
    pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default()
}

impl Devices {
    /// Those of a pod.
    ///
    /// # Errors
    /// Why the pod goes nowhere.
    pub(super) fn of(pod_info: &PodInfo, listers: &dyn Listers) -> Result<Self, NoDevices> {
        let mut devices = Self::default();
        for wanted in pod_claims(&pod_info.pod) {
            let claim = usable(pod_info, wanted, listers)?;
            if let Some(claim) = claim.filter(|claim| !devices.claims.iter().any(|known| same(known, claim)))
            {
                devices.claims.push(claim);
            }
        }
        if devices.claims.is_empty() {
            return Ok(devices);
        }
        for claim in &devices.claims {
            let users = claim.status["reservedFor"].as_array().map_or(0, Vec::len);
            if is_allocated(claim) && users >= USERS && !is_reserved(claim, &pod_info.pod) {
                return Err(NoDevices::Because("resourceclaim in use".to_owned()));
            }
            let selector = &claim.status["allocation"]["nodeSelector"];
            devices.places.push(kubewright_objects::from_value(selector).ok());
        }
        devices.read_classes(listers)?;
        if devices.claims.iter().any(|claim| !is_allocated(claim)) {
            devices.slices = listers.resource_slices();
            devices.allocated = Allocated::of(&listers.resource_claims());
        }
        Ok(devices)
    }

    fn read_classes(&mut self, listers: &dyn Listers) -> Result<(), NoDevices> {
        for claim in self.claims.iter().filter(|claim| !is_allocated(claim)) {
            for (request, class) in named_classes(&claim.spec) {
                let Some(found) = listers.device_class(class) else {
                    let why = format!("request {request}: device class {class} does not exist");
                    return Err(NoDevices::Because(why));
                };
                let spec = serde_json::json!({"spec": found.spec});
                self.classes.insert(class.to_owned(), spec);
            }
        }
        Ok(())
    }

    /// What is to be written for the pod to use its devices on a node.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) fn on(&self, node: &NodeState, pod: &Pod) -> Result<Vec<Reservation>, String> {
        if self.claims.is_empty() {
            return Ok(Vec::new());
        }
        let mut allocations = self.allocate(node)?.into_iter();
        let is_here = |selector: &Option<NodeSelector>| {
            selector.as_ref().is_none_or(|selector| is_one_of(&selector.node_selector_terms, node.info()))
        };
        if !self.places.iter().all(is_here) {
            return Err("resourceclaim not available on the node".to_owned());
        }
        let mut all = Vec::new();
        for claim in &self.claims {
            let allocation = if is_allocated(claim) { None } else { allocations.next() };
            if allocation.is_some() || !is_reserved(claim, pod) {
                all.push(Reservation { claim: Arc::clone(claim), allocation });
            }
        }
        Ok(all)
    }

    fn allocate(&self, node: &NodeState) -> Result<Vec<Value>, String> {
        let open = self.claims.iter().filter(|claim| !is_allocated(claim));
        let wanted: Vec<Wanted<'_>> = open
            .map(|claim| {
                let (namespace, name) = (&claim.metadata.namespace, &claim.metadata.name);
                let text = |part: &Option<String>| part.clone().unwrap_or_default();
                Wanted {
                    name: format!("{}/{}", text(namespace), text(name)),
                    devices: &claim.spec["devices"],
                }
            })
            .collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let pools = Pools::of(&self.slices, node.info(), &self.allocated);
        let allocator = Allocator::new(&wanted, &self.classes, pools, &self.allocated, &self.selectors);
        allocator.allocate(&node.name).map_err(|failed| match failed {
            Failed::Nothing => "cannot allocate all claims".to_owned(),
            Failed::Because(why) => why,
        })
    }
}

/// The classes that a claim names, each with the request that does.
fn named_classes(spec: &Value) -> Vec<(String, &str)> {
    fn text<'a>(value: &'a Value, field: &str) -> &'a str {
        value.get(field).and_then(Value::as_str).unwrap_or_default()
    }
    let mut named = Vec::new();
    for request in spec.pointer("/devices/requests").and_then(Value::as_array).into_iter().flatten() {
        let name = text(request, "name");
        if let Some(exactly) = request.get("exactly").filter(|exactly| exactly.is_object()) {
            named.push((name.to_owned(), text(exactly, "deviceClassName")));
        }
        for one in request.get("firstAvailable").and_then(Value::as_array).into_iter().flatten() {
            named.push((format!("{name}/{}", text(one, "name")), text(one, "deviceClassName")));
        }
    }
    named
}

fn same(one: &ResourceClaim, other: &ResourceClaim) -> bool {
    one.metadata.uid == other.metadata.uid && one.metadata.name == other.metadata.name
}

/// Whether a claim has devices.
pub(super) fn is_allocated(claim: &ResourceClaim) -> bool {
    claim.status.get("allocation").is_some_and(|allocation| !allocation.is_null())
}

fn is_reserved(claim: &ResourceClaim, pod: &Pod) -> bool {
    let users = claim.status["reservedFor"].as_array();
    users.into_iter().flatten().any(|user| user["uid"].as_str() == pod.metadata.uid.as_deref())
}

/// The claim that a pod means; nothing where it needs none.
fn usable(
    pod_info: &PodInfo,
    wanted: &PodResourceClaim,
    listers: &dyn Listers,
) -> Result<Option<Arc<ResourceClaim>>, NoDevices> {
    let pod = &pod_info.pod;
    let (name, is_made) = match (&wanted.resource_claim_name, &wanted.resource_claim_template_name) {
        (Some(name), _) => (name.clone(), false),
        (None, Some(_)) => {
            let told = pod.status.as_ref().and_then(|status| status.resource_claim_statuses.as_deref());
            let told = told.unwrap_or_default().iter().find(|told| told.name == wanted.name);
            match told.ok_or(NoDevices::NotYet)?.resource_claim_name.clone() {
                Some(name) => (name, true),
                None => return Ok(None),
            }
        }
        (None, None) => return Err(NoDevices::NotYet),
    };
    let claim = listers.resource_claim(pod_info.namespace(), &name).ok_or(NoDevices::NotYet)?;
    let is_wrong = is_made && !owner::is_controlled_by(&*claim, &**pod);
    if is_wrong || claim.metadata.deletion_timestamp.is_some() {
        return Err(NoDevices::NotYet);
    }
    Ok(Some(claim))
}
