//! How the endpoints of a Service are spread over slices, with as few writes as can be
//! (`staging/src/k8s.io/endpointslice/reconciler.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_objects::field;
use kubewright_runtime::owner::controller_reference;

use super::desired::{Desired, Group, Identity, Ports};
use super::hints::Distribution;
use super::{MANAGED_BY, SERVICE_NAME, endpoints, endpoints_mut};
use crate::services::{self, Family, HEADLESS};

/// How many endpoints a slice has at most (`--max-endpoints-per-slice`).
const MAX: usize = 100;
/// The longest name that an object may have before its generated suffix.
const LONGEST_NAME: usize = 253;

/// What has to be written.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) create: Vec<EndpointSlice>,
    pub(crate) update: Vec<EndpointSlice>,
    pub(crate) delete: Vec<Arc<EndpointSlice>>,
}

/// What turns `existing`, all slices of the Service that `manager` keeps, into slices of what is desired.
pub(crate) fn plan(
    service: &Service,
    mut desired: Desired,
    existing: Vec<Arc<EndpointSlice>>,
    manager: &str,
) -> Plan {
    let mut plan = Plan::default();
    let mut by_family: BTreeMap<Family, Vec<Arc<EndpointSlice>>> = BTreeMap::new();
    for slice in existing {
        let family = desired.keys().find(|family| family.name() == slice.address_type).copied();
        match family {
            Some(family) => by_family.entry(family).or_default().push(slice),
            None => plan.delete.push(slice),
        }
    }
    let families: Vec<_> = desired.keys().copied().collect();
    for family in families {
        let groups = desired.remove(&family).unwrap_or_default();
        let maker = Maker { service, family, manager };
        let of_family = maker.plan(groups, &by_family.remove(&family).unwrap_or_default());
        plan.create.extend(of_family.create);
        plan.update.extend(of_family.update);
        plan.delete.extend(of_family.delete);
    }
    plan
}

/// What all slices of one family share.
struct Maker<'a> {
    service: &'a Service,
    family: Family,
    manager: &'a str,
}

impl Maker<'_> {
    fn plan(&self, groups: BTreeMap<Ports, Group>, existing: &[Arc<EndpointSlice>]) -> Plan {
        let mut plan = Plan::default();
        let mut owned: BTreeMap<Ports, Vec<Arc<EndpointSlice>>> = BTreeMap::new();
        let (ours, strangers): (Vec<_>, Vec<_>) =
            existing.iter().cloned().partition(|slice| self.owns(slice));
        plan.delete.extend(strangers);
        for slice in ours {
            owned.entry(Ports::of(slice.ports.as_deref().unwrap_or_default())).or_default().push(slice);
        }
        let mut untouched = Vec::new();
        for (ports, group) in groups {
            untouched.extend(self.spread(group, owned.remove(&ports).unwrap_or_default(), &mut plan));
        }
        plan.delete.extend(owned.into_values().flatten());
        self.keep_one(existing.len(), &mut plan);
        let distribution = self.service.spec.as_ref().and_then(|spec| spec.traffic_distribution.as_deref());
        let distribution = Distribution::of(distribution);
        plan.update.extend(
            untouched.iter().filter(|slice| distribution.differs(slice)).map(|slice| (**slice).clone()),
        );
        plan.create.iter_mut().chain(&mut plan.update).for_each(|slice| distribution.apply(slice));
        self.recycle(&mut plan);
        plan
    }

    fn owns(&self, slice: &EndpointSlice) -> bool {
        slice.metadata.owner_references.iter().flatten().any(|owner| {
            Some(&owner.uid) == self.service.metadata.uid.as_ref()
                && owner.kind == "Service"
                && owner.api_version == "v1"
        })
    }

    /// Spreads one group over the slices with its ports: what is there stays where it is, slices that change anyway
    /// are filled up first, then one that has room for the rest, then new ones. Gives those that stay as they are.
    fn spread(
        &self,
        mut group: Group,
        existing: Vec<Arc<EndpointSlice>>,
        plan: &mut Plan,
    ) -> Vec<Arc<EndpointSlice>> {
        let (mut changed, mut untouched) = (Vec::new(), Vec::new());
        for slice in existing {
            let labels = self.labels();
            let kept: Vec<_> = endpoints(&slice)
                .iter()
                .filter_map(|endpoint| keep(&mut group.endpoints, endpoint))
                .collect();
            let is_same = kept.len() == endpoints(&slice).len() && kept.iter().all(|(_, same)| *same);
            if is_same && without_reserved(slice.metadata.labels.as_ref()) == without_reserved(Some(&labels))
            {
                untouched.push(slice);
            } else if kept.is_empty() && !is_same {
                plan.delete.push(slice);
            } else {
                let mut slice = (*slice).clone();
                slice.metadata.labels = Some(labels);
                if !is_same {
                    slice.endpoints =
                        field::<Vec<Endpoint>, _>(kept.into_iter().map(|(endpoint, _)| endpoint).collect());
                }
                changed.push(slice);
            }
        }
        changed.sort_by_key(|slice| std::cmp::Reverse(endpoints(slice).len()));
        for slice in &mut changed {
            fill(slice, &mut group.endpoints);
        }
        while !group.endpoints.is_empty() {
            match roomiest(&untouched, group.endpoints.len()) {
                Some(at) => {
                    let mut slice = (*untouched.remove(at)).clone();
                    fill(&mut slice, &mut group.endpoints);
                    changed.push(slice);
                }
                None => {
                    let mut slice = self.empty(group.ports.clone());
                    fill(&mut slice, &mut group.endpoints);
                    plan.create.push(slice);
                }
            }
        }
        plan.update.extend(changed);
        untouched
    }

    /// A Service has one slice at least, if an empty one.
    fn keep_one(&self, existing: usize, plan: &mut Plan) {
        if plan.delete.len() < existing || !plan.create.is_empty() {
            return;
        }
        let placeholder = self.empty(Vec::new());
        if let [only] = plan.delete.as_slice()
            && is_placeholder(only, &placeholder)
        {
            plan.delete.clear();
        } else {
            plan.create.push(placeholder);
        }
    }

    /// A slice that would be deleted is written over instead of making another.
    fn recycle(&self, plan: &mut Plan) {
        let (mut old, strangers): (Vec<_>, Vec<_>) =
            std::mem::take(&mut plan.delete).into_iter().partition(|slice| self.owns(slice));
        while !old.is_empty()
            && let Some(mut slice) = plan.create.pop()
        {
            slice.metadata.name = old.remove(0).metadata.name.clone();
            plan.update.push(slice);
        }
        plan.delete = strangers;
        plan.delete.extend(old);
    }

    fn empty(&self, ports: Vec<EndpointPort>) -> EndpointSlice {
        EndpointSlice {
            address_type: self.family.name().to_owned(),
            endpoints: field::<Vec<Endpoint>, _>(Vec::new()),
            metadata: ObjectMeta {
                generate_name: self.service.metadata.name.as_deref().map(prefix),
                namespace: self.service.metadata.namespace.clone(),
                labels: Some(self.labels()),
                owner_references: Some(vec![controller_reference(self.service)]),
                ..ObjectMeta::default()
            },
            ports: Some(ports),
        }
    }

    /// Those of the Service, but for the reserved ones.
    fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = without_reserved(self.service.metadata.labels.as_ref());
        if !self.service.spec.as_ref().is_some_and(services::has_address) {
            labels.insert(HEADLESS.into(), String::new());
        }
        labels.insert(SERVICE_NAME.into(), self.service.metadata.name.clone().unwrap_or_default());
        labels.insert(MANAGED_BY.into(), self.manager.into());
        labels
    }
}

/// What names of slices begin with.
pub(crate) fn prefix(name: &str) -> String {
    if name.len() < LONGEST_NAME { format!("{name}-") } else { name.to_owned() }
}

fn without_reserved(labels: Option<&BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let mut labels = labels.cloned().unwrap_or_default();
    for reserved in [SERVICE_NAME, MANAGED_BY, HEADLESS] {
        labels.remove(reserved);
    }
    labels
}

/// Takes the endpoint that is there out of the desired ones: as it should be, and whether it is so already.
fn keep(desired: &mut BTreeMap<Identity, Endpoint>, there: &Endpoint) -> Option<(Endpoint, bool)> {
    let wanted = desired.remove(&Identity::of(there))?;
    let same = is_same(&wanted, there);
    Some((if same { there.clone() } else { wanted }, same))
}

/// Whether two endpoints that are the same one are in the same state (`EndpointsEqualBeyondHash`).
pub(crate) fn is_same(one: &Endpoint, other: &Endpoint) -> bool {
    let target = |endpoint: &Endpoint| {
        let mut target = endpoint.target_ref.clone();
        if let Some(target) = &mut target {
            target.resource_version = None;
        }
        target
    };
    one.node_name == other.node_name
        && one.zone == other.zone
        && one.conditions == other.conditions
        && target(one) == target(other)
}

fn fill(slice: &mut EndpointSlice, more: &mut BTreeMap<Identity, Endpoint>) {
    let mut endpoints = endpoints_mut(slice).map(std::mem::take).unwrap_or_default();
    while endpoints.len() < MAX
        && let Some((_, endpoint)) = more.pop_first()
    {
        endpoints.push(endpoint);
    }
    slice.endpoints = field(endpoints);
}

/// Where of these slices so many more fit best: the one that is fullest then.
fn roomiest(slices: &[Arc<EndpointSlice>], more: usize) -> Option<usize> {
    let room = |slice: &Arc<EndpointSlice>| MAX.checked_sub(more + endpoints(slice).len());
    let fitting = slices.iter().enumerate().filter_map(|(at, slice)| Some((room(slice)?, at)));
    fitting.filter(|_| more < MAX).min().map(|(_, at)| at)
}

/// Whether an empty slice would only be replaced by its like; whose it is does not count (`placeholderSliceCompare`).
fn is_placeholder(slice: &EndpointSlice, placeholder: &EndpointSlice) -> bool {
    endpoints(slice).is_empty()
        && slice.ports.as_ref().is_none_or(Vec::is_empty)
        && slice.metadata.labels == placeholder.metadata.labels
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
