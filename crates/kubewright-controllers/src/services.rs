//! What a Service stands for: the pods that it selects, at which addresses and ports. Shared by the controllers of
//! Endpoints and of EndpointSlices (`staging/src/k8s.io/endpointslice`: `utils.go`, `util/controller_utils.go`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod, Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright_runtime::{Context, Event, Key, Predicate};
use parking_lot::Mutex;

use crate::claims::{self, Selectors};
use crate::pod;

/// On Endpoints and EndpointSlices: when that changed which led to their last write.
pub(crate) const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// On Endpoints and EndpointSlices of a Service that has no address of its own.
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";

/// A kind of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    /// As Services and EndpointSlices spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// That of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

/// The specification; an empty one when there is none.
pub(crate) fn spec(service: &Service) -> ServiceSpec {
    service.spec.clone().unwrap_or_default()
}

/// The pods that controllers have to follow for the Service. `None` when its endpoints are somebody else's business: it
/// has no selector, or is a name for something outside.
fn selector(service: &Service) -> Option<LabelSelector> {
    let spec = service.spec.as_ref()?;
    let labels = spec.selector.as_ref().filter(|labels| !labels.is_empty())?;
    let external = spec.type_.as_deref() == Some("ExternalName");
    (!external).then(|| LabelSelector { match_labels: Some(labels.clone()), match_expressions: None })
}

/// Whether the Service has an address of its own.
pub(crate) fn has_address(spec: &ServiceSpec) -> bool {
    !matches!(spec.cluster_ip.as_deref(), None | Some("" | "None"))
}

/// The families of its endpoints, its first choice first. A Service that names none has that of its cluster IP, or may
/// have both.
pub(crate) fn families(spec: &ServiceSpec) -> Vec<Family> {
    let named = spec.ip_families.iter().flatten();
    let named: Vec<_> = named.map(|name| if name == "IPv6" { Family::V6 } else { Family::V4 }).collect();
    if !named.is_empty() {
        return named;
    }
    let own = spec.cluster_ip.as_deref().and_then(|ip| ip.parse().ok());
    own.map_or_else(|| vec![Family::V4, Family::V6], |ip| vec![Family::of(ip)])
}

/// Whether a pod is an endpoint: it has an address and has not ended, and is not on its way out unless those count too.
pub(crate) fn is_member(pod: &Pod, with_terminating: bool) -> bool {
    let status = pod.status.as_ref();
    let has_address = status.is_some_and(|status| {
        status.pod_ip.as_deref().is_some_and(|ip| !ip.is_empty())
            || status.pod_ips.as_ref().is_some_and(|ips| !ips.is_empty())
    });
    has_address && !pod::is_finished(pod) && (with_terminating || pod.metadata.deletion_timestamp.is_none())
}

/// The pod's addresses of one family, in the usual spelling.
pub(crate) fn addresses(pod: &Pod, family: Family) -> impl Iterator<Item = String> {
    let ips = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten());
    let ips = ips.filter_map(|ip| ip.ip.parse::<IpAddr>().ok());
    ips.filter(move |ip| Family::of(*ip) == family).map(|ip| ip.to_string())
}

/// The name of a pod behind the Service's own, when the pod asked for one.
pub(crate) fn hostname(pod: &Pod, service: &Service) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let hostname = spec.hostname.as_ref().filter(|name| !name.is_empty())?;
    let is_below =
        spec.subdomain == service.metadata.name && pod.metadata.namespace == service.metadata.namespace;
    is_below.then(|| hostname.clone())
}

/// The port of the pod behind a port of the Service. A name is looked up in its containers, and in its init containers
/// that keep running.
pub(crate) fn port(pod: &Pod, wanted: &ServicePort) -> Option<i32> {
    let name = match wanted.target_port.as_ref() {
        None => return Some(wanted.port),
        Some(IntOrString::Int(number)) => return Some(*number),
        Some(IntOrString::String(name)) => name,
    };
    let spec = pod.spec.as_ref()?;
    let sidecars = spec.init_containers.iter().flatten().filter(|container| is_sidecar(container));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let protocol = |protocol: Option<&String>| protocol.map_or("TCP", String::as_str).to_owned();
    let mut found = ports.filter(|port| {
        port.name.as_ref() == Some(name)
            && protocol(port.protocol.as_ref()) == protocol(wanted.protocol.as_ref())
    });
    found.next().map(|port| port.container_port)
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// The reference to a pod that its endpoint carries.
pub(crate) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".into()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// Lets those events of pods through that can change endpoints.
pub(crate) fn changes_endpoints() -> Predicate {
    Predicate::of(|event: &Event<'_, Pod>| match event {
        Event::Update { old, new } => !same_endpoint(old, new),
        Event::Create(_) | Event::Delete(_) | Event::Generic(_) => true,
    })
}

fn same_endpoint(old: &Pod, new: &Pod) -> bool {
    let spec = |pod: &Pod| {
        pod.spec.as_ref().map(|spec| (spec.hostname.clone(), spec.subdomain.clone(), spec.node_name.clone()))
    };
    let ips = |pod: &Pod| pod.status.as_ref().map(|status| (status.pod_ip.clone(), status.pod_ips.clone()));
    old.metadata.labels == new.metadata.labels
        && old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        && pod::is_ready(old) == pod::is_ready(new)
        && pod::is_finished(old) == pod::is_finished(new)
        && ips(old) == ips(new)
        && spec(old) == spec(new)
}

/// What two controllers know of the Services whose endpoints they write: which pods each selects, and what has changed.
#[derive(Default)]
pub(crate) struct Followed {
    selectors: Selectors,
    triggers: Triggers,
}

/// A Service whose endpoints are to be written.
pub(crate) struct Look {
    pub(crate) service: Arc<Service>,
    /// Those that it selects.
    pub(crate) pods: Vec<Arc<Pod>>,
    /// What its endpoints change for, if anything is new.
    pub(crate) trigger: Option<Timestamp>,
}

impl Followed {
    /// The Services that select a pod, as far as they were looked at.
    pub(crate) fn selectors(&self) -> Selectors {
        self.selectors.clone()
    }

    /// Looks at a Service. `None` when it is gone, or its endpoints are somebody else's business.
    pub(crate) fn look(&self, ctx: &Context, key: &Key) -> Option<Look> {
        let service = ctx.get::<Service>(key);
        let selector = service.as_ref().and_then(|service| selector(service));
        let (Some(service), Some(selector)) = (service, selector) else {
            self.selectors.forget(key);
            self.triggers.forget(key);
            return None;
        };
        self.selectors.set(key, &selector);
        let pods = claims::matching(&selector, ctx.list::<Pod>(key.namespace.as_deref()));
        let trigger = self.triggers.first_change(key, &service, &pods);
        Some(Look { service, pods, trigger })
    }
}

/// Remembers of each Service what was last seen, in order to tell what its endpoints change for
/// (`util/trigger_time_tracker.go`).
#[derive(Default)]
struct Triggers(Mutex<BTreeMap<Key, EndpointsState>>);

#[derive(Default)]
struct EndpointsState {
    service: Option<Timestamp>,
    pods: BTreeMap<String, Timestamp>,
}

impl Triggers {
    /// When the first of the things happened that are new since the last call for this Service: a pod became ready or
    /// ceased to be, or the Service was made. `None` when there is nothing new.
    fn first_change(&self, key: &Key, service: &Service, pods: &[Arc<Pod>]) -> Option<Timestamp> {
        let created = service.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let readiness = |pod: &Arc<Pod>| Some((pod.metadata.name.clone()?, pod::ready_since(pod)?));
        let now = EndpointsState { service: created, pods: pods.iter().filter_map(readiness).collect() };
        let mut known = self.0.lock();
        let Some(before) = known.get(key) else {
            known.insert(key.clone(), now);
            return created;
        };
        let newer =
            now.pods.iter().filter(|(name, time)| before.pods.get(*name).is_none_or(|old| old < time));
        let first =
            newer.map(|(_, time)| *time).chain(now.service.filter(|_| now.service > before.service)).min();
        known.insert(key.clone(), now);
        first
    }

    /// Forgets a Service that is gone.
    fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::json;

    use super::*;
    use crate::pod::tests::pod;

    fn service(spec: &serde_json::Value) -> Service {
        let mut service: Service = kubewright_objects::from_value(json!({
            "metadata": {"name": "web", "namespace": "default", "creationTimestamp": NOW.to_string()}}))
        .expect("a Service");
        service.spec = kubewright_objects::from_value(spec).expect("a specification");
        service
    }

    #[test]
    fn a_service_without_a_selector_or_with_an_external_name_is_left_alone() {
        assert!(selector(&service(&json!({"selector": {"app": "web"}}))).is_some());
        assert!(selector(&service(&json!({"selector": {}}))).is_none());
        assert!(selector(&service(&json!({}))).is_none());
        assert!(selector(&service(&json!({"type": "ExternalName", "selector": {"app": "web"}}))).is_none());
    }

    #[test]
    fn families_are_those_named_then_those_of_the_address_then_both() {
        let of = |value| families(&spec(&service(&value)));
        assert_eq!(of(json!({"ipFamilies": ["IPv6", "IPv4"]})), [Family::V6, Family::V4]);
        assert_eq!(of(json!({"ipFamilies": ["IPv6"], "clusterIP": "10.0.0.1"})), [Family::V6]);
        assert_eq!(of(json!({"clusterIP": "10.0.0.1"})), [Family::V4]);
        assert_eq!(of(json!({"clusterIP": "None"})), [Family::V4, Family::V6]);
    }

    #[test]
    fn a_named_port_is_that_of_the_first_container_with_this_name_and_protocol() {
        let pod: Pod = kubewright_objects::from_value(json!({"spec": {
            "containers": [{"name": "c", "ports": [
                {"name": "dns", "containerPort": 53, "protocol": "UDP"},
                {"name": "dns", "containerPort": 54, "protocol": "TCP"}]}],
            "initContainers": [
                {"name": "once", "ports": [{"name": "admin", "containerPort": 1}]},
                {"name": "side", "restartPolicy": "Always", "ports": [{"name": "admin", "containerPort": 9}]}]}}))
        .expect("a pod");
        let at = |wanted| port(&pod, &kubewright_objects::from_value(wanted).expect("a port"));
        assert_eq!(at(json!({"port": 1, "targetPort": "dns", "protocol": "TCP"})), Some(54));
        assert_eq!(at(json!({"port": 1, "targetPort": "admin"})), Some(9));
        assert_eq!(at(json!({"port": 1, "targetPort": "none"})), None);
        assert_eq!(at(json!({"port": 1, "targetPort": 7})), Some(7));
    }

    #[test]
    fn a_pod_is_an_endpoint_while_it_has_an_address_and_lives() {
        let mut one = pod("p", "Running", Some(NOW));
        assert!(!is_member(&one, true));
        one.status.as_mut().expect("a status").pod_ip = Some("10.1.0.1".into());
        assert!(is_member(&one, false));
        one.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
        assert!(is_member(&one, true) && !is_member(&one, false));
        one.status.as_mut().expect("a status").phase = Some("Succeeded".into());
        assert!(!is_member(&one, true));
    }

    #[test]
    fn what_triggers_a_write_is_told_once() {
        let (triggers, key) = (Triggers::default(), Key::namespaced("default", "web"));
        let service = service(&json!({}));
        let later = NOW + Duration::from_secs(5);
        let pods = [Arc::new(pod("p", "Running", Some(later)))];
        assert_eq!(triggers.first_change(&key, &service, &[]), Some(NOW));
        assert_eq!(triggers.first_change(&key, &service, &[]), None);
        assert_eq!(triggers.first_change(&key, &service, &pods), Some(later));
        assert_eq!(triggers.first_change(&key, &service, &pods), None);
        triggers.forget(&key);
        assert_eq!(triggers.first_change(&key, &service, &pods), Some(NOW));
    }
}
