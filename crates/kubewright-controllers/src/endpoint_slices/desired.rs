//! The endpoints that a Service should have.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort};

use crate::pod;
use crate::services::{self, Family};

const ZONE: &str = "topology.kubernetes.io/zone";

/// Who an endpoint is, whatever its state: two that agree here are the same one (`util/endpointset.go`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    target: Option<(Option<String>, Option<String>)>,
    hostname: Option<String>,
    addresses: Vec<String>,
}

impl Identity {
    /// That of `endpoint`.
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        let mut addresses = endpoint.addresses.clone();
        addresses.sort();
        let target = endpoint.target_ref.as_ref();
        Self {
            target: target.map(|target| (target.namespace.clone(), target.name.clone())),
            hostname: endpoint.hostname.clone(),
            addresses,
        }
    }
}

/// Ports in an order that does not depend on how they are listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ports(Vec<Port>);

/// Name, protocol, number and the protocol above.
type Port = (Option<String>, Option<String>, Option<i32>, Option<String>);

impl Ports {
    /// Those of a slice, or of what is to be in one.
    pub(crate) fn of(ports: &[EndpointPort]) -> Self {
        let key = |port: &EndpointPort| {
            (port.name.clone(), port.protocol.clone(), port.port, port.app_protocol.clone())
        };
        let mut keys: Vec<_> = ports.iter().map(key).collect();
        keys.sort();
        Self(keys)
    }
}

/// Endpoints that are reached at the same ports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// As they are listed.
    pub(crate) ports: Vec<EndpointPort>,
    /// By who they are.
    pub(crate) endpoints: BTreeMap<Identity, Endpoint>,
}

/// All endpoints, by family and ports. A family that is to have slices is there, also without endpoints.
pub(crate) type Desired = BTreeMap<Family, BTreeMap<Ports, Group>>;

/// The endpoints of `pods`; and of a pod that is left out because its node is not there, why.
pub(super) fn of(
    service: &Service,
    pods: &[Arc<Pod>],
    node: impl Fn(&str) -> Option<Arc<Node>>,
) -> (Desired, Option<String>) {
    let spec = services::spec(service);
    let families = services::families(&spec);
    let mut desired: Desired = families.iter().map(|family| (*family, BTreeMap::new())).collect();
    let mut lost = None;
    for pod in pods.iter().filter(|pod| services::is_member(pod, true)) {
        let node = node(pod::node_name(pod));
        let ports = ports(service, pod);
        for (family, groups) in &mut desired {
            let group = groups
                .entry(Ports::of(&ports))
                .or_insert_with(|| Group { ports: ports.clone(), ..Group::default() });
            if node.is_none() && spec.publish_not_ready_addresses != Some(true) {
                lost.get_or_insert_with(|| why_lost(service, pod));
                continue;
            }
            let endpoint = endpoint(service, pod, node.as_deref(), *family);
            if !endpoint.addresses.is_empty() {
                group.endpoints.insert(Identity::of(&endpoint), endpoint);
            }
        }
    }
    (desired, lost)
}

fn why_lost(service: &Service, pod: &Pod) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!(
        "skipping Pod {} for Service {}/{}: Node {} Not Found",
        text(&pod.metadata.name),
        text(&service.metadata.namespace),
        text(&service.metadata.name),
        pod::node_name(pod)
    )
}

fn endpoint(service: &Service, pod: &Pod, node: Option<&Node>, family: Family) -> Endpoint {
    let publishes_all =
        service.spec.as_ref().is_some_and(|spec| spec.publish_not_ready_addresses == Some(true));
    let serving = pod::is_ready(pod);
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let zone = node.and_then(|node| node.metadata.labels.as_ref()?.get(ZONE)).filter(|zone| !zone.is_empty());
    Endpoint {
        addresses: services::addresses(pod, family).collect(),
        conditions: Some(EndpointConditions {
            ready: Some(publishes_all || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: services::hostname(pod, service),
        node_name: Some(pod::node_name(pod).to_owned()).filter(|name| !name.is_empty()),
        target_ref: Some(services::reference(pod)),
        zone: zone.cloned(),
        ..Endpoint::default()
    }
}

/// The ports of the Service that the pod has.
fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    ports
        .filter_map(|port| {
            Some(EndpointPort {
                app_protocol: port.app_protocol.clone(),
                name: Some(port.name.clone().unwrap_or_default()),
                port: Some(services::port(pod, port)?),
                protocol: port.protocol.clone(),
            })
        })
        .collect()
}
