//! The endpoint slice mirroring controller: Endpoints that somebody keeps by hand, for a Service without a selector, as
//! EndpointSlices (`pkg/controller/endpointslicemirroring`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{EndpointAddress, Endpoints, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_objects::field;
use kubewright_runtime::owner::controller_reference;
use kubewright_runtime::{Context, Controller, Error, Event, EventType, Key, Outcome, Predicate, Reconciler};

use crate::endpoint_slices::desired::{Desired, Group, Identity, Ports};
use crate::endpoint_slices::plan::{Plan, is_same, prefix};
use crate::endpoint_slices::{
    MANAGED_BY, SERVICE_NAME, act, changes_slices, endpoints as endpoints_of, service_of, slices_of,
};
use crate::endpoints::subsets::{pack, unpack};
use crate::services::{Family, TRIGGER_TIME};

const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// Endpoints with this label, `true`, are not mirrored.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Endpoints with this annotation are the lock of an election.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// How many addresses of a subset are mirrored at most (`--mirroring-max-endpoints-per-subset`).
const MAX: usize = 1000;

/// The controller.
#[must_use]
pub(crate) fn controller() -> Controller {
    Controller::new("endpoint-slice-mirroring-controller", Mirror)
        .for_kind::<Endpoints>()
        .predicate(Predicate::of(|event: &Event<'_, Endpoints>| match event {
            Event::Update { old, new } => is_mirrored(old) || is_mirrored(new),
            Event::Create(one) | Event::Delete(one) | Event::Generic(one) => is_mirrored(one),
        }))
        .watches(|service: &Service| vec![Key::of(service)])
        .predicate(Predicate::of(|event: &Event<'_, Service>| match event {
            Event::Update { old, new } => has_selector(old) != has_selector(new),
            Event::Create(one) | Event::Delete(one) | Event::Generic(one) => !has_selector(one),
        }))
        .watches(|slice: &EndpointSlice| service_of(slice, MANAGER).into_iter().collect())
        .predicate(changes_slices())
}

fn is_mirrored(endpoints: &Endpoints) -> bool {
    let has = |map: &Option<BTreeMap<String, String>>, key: &str| {
        map.as_ref().and_then(|map| map.get(key)).cloned()
    };
    has(&endpoints.metadata.labels, SKIP).as_deref() != Some("true")
        && has(&endpoints.metadata.annotations, LEADER).is_none()
}

fn has_selector(service: &Service) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| !selector.is_empty())
}

struct Mirror;

impl Reconciler for Mirror {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let existing = slices_of(ctx, key, MANAGER);
        let service = ctx.get::<Service>(key).filter(|service| !has_selector(service));
        let endpoints = ctx.get::<Endpoints>(key).filter(|endpoints| is_mirrored(endpoints));
        let (Some(endpoints), Some(_)) = (endpoints, service) else {
            let plan = Plan { delete: existing, ..Plan::default() };
            return act(ctx, plan, false, None).await.map(|()| Outcome::Done);
        };
        let (desired, left_out) = desired(&endpoints);
        for (reason, note) in left_out.events() {
            ctx.event(&*endpoints, EventType::Warning, reason, &note);
        }
        let creates = endpoints.metadata.deletion_timestamp.is_none();
        act(ctx, plan(&endpoints, desired, existing), creates, None).await.map(|()| Outcome::Done)
    }
}

/// How many addresses are not mirrored.
#[derive(Debug, Default, PartialEq, Eq)]
struct LeftOut {
    invalid: usize,
    too_many: usize,
}

impl LeftOut {
    fn events(&self) -> Vec<(&'static str, String)> {
        let Self { invalid, too_many } = *self;
        let mut events = Vec::new();
        if invalid > 0 {
            let note = format!("Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices");
            events.push(("InvalidIPAddress", note));
        }
        if too_many > 0 {
            let skipped = invalid + too_many;
            events.push((
                "TooManyAddressesToMirror",
                format!(
                    "A max of {MAX} addresses can be mirrored to EndpointSlices per Endpoints subset. {skipped} addresses were skipped"
                ),
            ));
        }
        events
    }
}

fn desired(endpoints: &Endpoints) -> (Desired, LeftOut) {
    let mut desired: Desired =
        [Family::V4, Family::V6].into_iter().map(|family| (family, BTreeMap::new())).collect();
    let mut left_out = LeftOut::default();
    for subset in pack(unpack(endpoints.subsets.as_deref().unwrap_or_default())) {
        let ports = subset.ports.iter().flatten().map(|port| EndpointPort {
            app_protocol: port.app_protocol.clone(),
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(port.port),
            protocol: port.protocol.clone(),
        });
        let ports: Vec<_> = ports.collect();
        let ready = subset.addresses.iter().flatten().map(|address| (address, true));
        let others = subset.not_ready_addresses.iter().flatten().map(|address| (address, false));
        let mut taken = 0;
        for (address, ready) in ready.chain(others) {
            let Ok(ip) = address.ip.parse::<IpAddr>() else {
                left_out.invalid += 1;
                continue;
            };
            if taken == MAX {
                left_out.too_many += 1;
                continue;
            }
            taken += 1;
            let groups = desired.entry(Family::of(ip)).or_default();
            let new = || Group { ports: ports.clone(), ..Group::default() };
            let endpoint = mirrored(address, ip, ready);
            let group = groups.entry(Ports::of(&ports)).or_insert_with(new);
            group.endpoints.insert(Identity::of(&endpoint), endpoint);
        }
    }
    (desired, left_out)
}

fn mirrored(address: &EndpointAddress, ip: IpAddr, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(EndpointConditions { ready: Some(ready), ..EndpointConditions::default() }),
        hostname: address.hostname.clone().filter(|name| !name.is_empty()),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    }
}

/// One slice for each family and set of ports.
fn plan(endpoints: &Endpoints, desired: Desired, existing: Vec<Arc<EndpointSlice>>) -> Plan {
    let mut plan = Plan::default();
    let mut there: BTreeMap<(String, Ports), Vec<Arc<EndpointSlice>>> = BTreeMap::new();
    for slice in existing {
        let key = (slice.address_type.clone(), Ports::of(slice.ports.as_deref().unwrap_or_default()));
        there.entry(key).or_default().push(slice);
    }
    for (family, groups) in desired {
        for (ports, group) in groups {
            let mut there = there.remove(&(family.name().to_owned(), ports)).unwrap_or_default().into_iter();
            let first = there.next();
            plan.delete.extend(there);
            let wanted = slice(endpoints, family, group);
            match first {
                Some(first) if is_as_wanted(&first, &wanted) => {}
                Some(first) => plan.update.push(named_as(wanted, &first)),
                None => plan.create.push(wanted),
            }
        }
    }
    plan.delete.extend(there.into_values().flatten());
    recycle(&mut plan);
    plan
}

fn named_as(mut slice: EndpointSlice, old: &EndpointSlice) -> EndpointSlice {
    slice.metadata.name = old.metadata.name.clone();
    slice.metadata.generate_name = None;
    slice
}

/// A slice that would be deleted is written over instead of making another of its family. It was to have a generated name, and
/// still says so.
fn recycle(plan: &mut Plan) {
    for mut slice in std::mem::take(&mut plan.create) {
        match plan.delete.iter().position(|old| old.address_type == slice.address_type) {
            Some(at) => {
                slice.metadata.name = plan.delete.remove(at).metadata.name.clone();
                plan.update.push(slice);
            }
            None => plan.create.push(slice),
        }
    }
}

fn slice(endpoints: &Endpoints, family: Family, group: Group) -> EndpointSlice {
    let name = endpoints.metadata.name.clone().unwrap_or_default();
    let mut labels = endpoints.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.into(), name.clone());
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    let mut annotations = endpoints.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(TRIGGER_TIME);
    annotations.remove(LAST_APPLIED);
    EndpointSlice {
        address_type: family.name().to_owned(),
        endpoints: field::<Vec<Endpoint>, _>(group.endpoints.into_values().collect()),
        metadata: ObjectMeta {
            generate_name: Some(prefix(&name)),
            namespace: endpoints.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            owner_references: Some(vec![controller_reference(endpoints)]),
            ..ObjectMeta::default()
        },
        ports: Some(group.ports),
    }
}

fn is_as_wanted(there: &EndpointSlice, wanted: &EndpointSlice) -> bool {
    let by_identity = |slice: &EndpointSlice| {
        let endpoints = endpoints_of(slice).iter();
        let endpoints = endpoints.map(|endpoint| (Identity::of(endpoint), endpoint.clone()));
        endpoints.collect::<BTreeMap<_, _>>()
    };
    let (found, expected) = (by_identity(there), by_identity(wanted));
    let (old, new) = (&there.metadata, &wanted.metadata);
    let annotations = old.annotations.as_ref().filter(|annotations| !annotations.is_empty());
    found.len() == endpoints_of(there).len()
        && found.keys().eq(expected.keys())
        && found.values().zip(expected.values()).all(|(found, expected)| is_same(found, expected))
        && old.labels == new.labels
        && annotations == new.annotations.as_ref()
        && old.owner_references == new.owner_references
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn endpoints(subsets: &Value) -> Endpoints {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "web", "namespace": "default", "uid": "uid-web", "labels": {"x": "y"},
                "annotations": {LAST_APPLIED: "{}", "note": "n"}},
            "subsets": subsets}))
        .expect("Endpoints")
    }

    fn two_families() -> Endpoints {
        endpoints(&json!([{"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
            "notReadyAddresses": [{"ip": "10.0.0.2", "hostname": "two"}], "ports": [{"port": 80, "name": "http"}]}]))
    }

    fn planned(endpoints: &Endpoints, existing: Vec<Arc<EndpointSlice>>) -> Plan {
        plan(endpoints, desired(endpoints).0, existing)
    }

    fn stored(plan: Plan) -> Vec<Arc<EndpointSlice>> {
        let name = |(at, mut slice): (usize, EndpointSlice)| {
            slice.metadata.name = Some(format!("web-{at}"));
            Arc::new(slice)
        };
        plan.create.into_iter().enumerate().map(name).collect()
    }

    #[test]
    fn each_family_gets_a_slice_with_labels_and_annotations() {
        let made = planned(&two_families(), Vec::new()).create;
        assert_eq!(
            made.iter().map(|slice| slice.address_type.as_str()).collect::<Vec<_>>(),
            ["IPv4", "IPv6"]
        );
        assert_eq!(
            json!(made[0].endpoints),
            json!([{"addresses": ["10.0.0.1"], "conditions": {"ready": true}},
                {"addresses": ["10.0.0.2"], "conditions": {"ready": false}, "hostname": "two"}])
        );
        assert_eq!(
            json!(made[0].metadata.labels),
            json!({"x": "y", SERVICE_NAME: "web", MANAGED_BY: MANAGER})
        );
        assert_eq!(json!(made[0].metadata.annotations), json!({"note": "n"}));
        assert_eq!(made[0].metadata.owner_references.as_ref().expect("an owner")[0].kind, "Endpoints");
    }

    #[test]
    fn what_is_mirrored_already_is_not_written_again() {
        let there = stored(planned(&two_families(), Vec::new()));
        let again = planned(&two_families(), there);
        assert!(again.create.is_empty() && again.update.is_empty() && again.delete.is_empty(), "{again:?}");
    }

    #[test]
    fn other_ports_are_written_over_the_old_slice_and_a_family_without_addresses_loses_its_own() {
        let there = stored(planned(&two_families(), Vec::new()));
        let changed = endpoints(&json!([{"addresses": [{"ip": "10.0.0.4"}], "ports": [{"port": 81}]}]));
        let plan = planned(&changed, there);
        assert_eq!((plan.create.len(), plan.update.len(), plan.delete.len()), (0, 1, 1));
        assert_eq!(plan.update[0].metadata.name.as_deref(), Some("web-0"));
        assert_eq!(plan.update[0].metadata.generate_name.as_deref(), Some("web-"));
        assert_eq!(plan.delete[0].address_type, "IPv6");
    }

    #[test]
    fn invalid_and_surplus_addresses_are_left_out_and_told() {
        let many: Vec<_> =
            (0..1001).map(|at| json!({"ip": format!("10.0.{}.{}", at / 250, at % 250)})).collect();
        let mut all = many;
        all.push(json!({"ip": "nonsense"}));
        let (desired, left_out) = desired(&endpoints(&json!([{"addresses": all, "ports": [{"port": 80}]}])));
        assert_eq!(desired[&Family::V4].values().map(|group| group.endpoints.len()).sum::<usize>(), 1000);
        assert_eq!(left_out, LeftOut { invalid: 1, too_many: 1 });
        assert_eq!(
            left_out.events()[1].1,
            "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 2 addresses were skipped"
        );
    }

    #[test]
    fn locks_and_those_that_ask_for_it_are_not_mirrored() {
        let mut lock = two_families();
        lock.metadata.annotations.get_or_insert_default().insert(LEADER.into(), String::new());
        assert!(!is_mirrored(&lock));
        let mut skipped = two_families();
        skipped.metadata.labels.get_or_insert_default().insert(SKIP.into(), "true".into());
        assert!(!is_mirrored(&skipped));
        assert!(is_mirrored(&two_families()));
    }
}
