//! The endpoints controller: the addresses of a Service's pods, as Endpoints
//! (`pkg/controller/endpoint/endpoints_controller.go`).

pub(crate) mod subsets;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service};
use kube::api::DeleteParams;
use kubewright_runtime::{Context, Controller, Error, Event, EventType, Key, Outcome, Predicate, Reconciler};

use self::subsets::{SubsetMember, pack, truncate, unpack};
use crate::services::{self, Family, Followed, HEADLESS, Look, TRIGGER_TIME};
use crate::{is_namespace_terminating, pod};

const NAME: &str = "endpoint-controller";
/// Whose Endpoints they are.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// That some were left out.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// The controller.
#[must_use]
pub(crate) fn controller() -> Controller {
    let followed = Followed::default();
    let services = followed.selectors();
    Controller::new(NAME, Addresses { followed })
        .for_kind::<Service>()
        .watches(move |pod: &Pod| services.selecting(&pod.metadata))
        .predicate(services::changes_endpoints())
        .watches(|endpoints: &Endpoints| vec![Key::of(endpoints)])
        .predicate(Predicate::of(|event: &Event<'_, Endpoints>| matches!(event, Event::Delete(_))))
}

struct Addresses {
    followed: Followed,
}

impl Reconciler for Addresses {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let current = ctx.get::<Endpoints>(key);
        let Some(Look { service, pods, trigger }) = self.followed.look(ctx, key) else {
            if current.is_some() && ctx.get::<Service>(key).is_none() {
                ctx.delete::<Endpoints>(key, DeleteParams::default()).await?;
            }
            return Ok(Outcome::Done);
        };
        let Some(wanted) = plan(&service, &pods, current.as_deref(), trigger) else {
            return Ok(Outcome::Done);
        };
        act(ctx, key, current.is_none(), &wanted).await
    }
}

async fn act(ctx: &Context, key: &Key, missing: bool, wanted: &Endpoints) -> Result<Outcome, Error> {
    let written = if missing { ctx.create(wanted).await } else { ctx.update(wanted).await };
    let error = match written {
        Ok(_) => return Ok(Outcome::Done),
        Err(error) if missing && is_namespace_terminating(&error) => return Ok(Outcome::Done),
        Err(error) => error,
    };
    let (reason, note) = if missing {
        ("FailedToCreateEndpoint", format!("Failed to create endpoint for service {key}: {error}"))
    } else {
        ("FailedToUpdateEndpoint", format!("Failed to update endpoint {key}: {error}"))
    };
    ctx.event(wanted, EventType::Warning, reason, &note);
    Err(error)
}

/// The Endpoints as they should be, when they are not.
fn plan(
    service: &Service,
    pods: &[Arc<Pod>],
    current: Option<&Endpoints>,
    trigger: Option<Timestamp>,
) -> Option<Endpoints> {
    let wanted = pack(pods.iter().flat_map(|pod| members(service, pod)));
    let labels = service.metadata.labels.clone().unwrap_or_default();
    if current.is_some_and(|current| is_as_wanted(current, &wanted, &labels)) {
        return None;
    }
    let mut endpoints = current.cloned().unwrap_or_default();
    endpoints.metadata.name = service.metadata.name.clone();
    endpoints.metadata.namespace = service.metadata.namespace.clone();
    let mut wanted = wanted;
    let annotations = endpoints.metadata.annotations.get_or_insert_default();
    set(annotations, TRIGGER_TIME, trigger.map(|time| time.to_string()));
    set(annotations, OVER_CAPACITY, truncate(&mut wanted).then(|| "truncated".to_owned()));
    let headless = service.spec.as_ref().is_none_or(|spec| !services::has_address(spec));
    let labels = endpoints.metadata.labels.insert(labels);
    set(labels, HEADLESS, headless.then(String::new));
    labels.insert(MANAGED_BY.into(), NAME.into());
    endpoints.subsets = (!wanted.is_empty()).then_some(wanted);
    Some(endpoints)
}

fn set(map: &mut BTreeMap<String, String>, key: &str, value: Option<String>) {
    match value {
        Some(value) => map.insert(key.to_owned(), value),
        None => map.remove(key),
    };
}

/// Whether nothing has to be written: the addresses are these in whatever grouping, and the labels those of the Service.
fn is_as_wanted(current: &Endpoints, wanted: &[EndpointSubset], labels: &BTreeMap<String, String>) -> bool {
    let subsets = current.subsets.as_deref().unwrap_or_default();
    let own = current.metadata.labels.clone().unwrap_or_default();
    let is_ours = own.get(MANAGED_BY).is_some_and(|name| name == NAME);
    let mirrored = own.iter().filter(|(key, _)| *key != HEADLESS && *key != MANAGED_BY);
    let over = current.metadata.annotations.as_ref().is_some_and(|notes| notes.contains_key(OVER_CAPACITY));
    is_ours && !over && mirrored.eq(labels.iter()) && (subsets == wanted || pack(unpack(subsets)) == wanted)
}

/// What one pod adds: its address at each port of the Service that it has; of a headless Service without ports, alone.
fn members(service: &Service, pod: &Pod) -> Vec<SubsetMember> {
    let spec = services::spec(service);
    let publishes_all = spec.publish_not_ready_addresses == Some(true);
    if !services::is_member(pod, publishes_all) {
        return Vec::new();
    }
    let family = services::families(&spec).first().copied().unwrap_or(Family::V4);
    let Some(ip) = services::addresses(pod, family).next() else { return Vec::new() };
    let address = EndpointAddress {
        hostname: services::hostname(pod, service),
        ip,
        node_name: Some(pod::node_name(pod).to_owned()),
        target_ref: Some(services::reference(pod)),
    };
    let member =
        |port| SubsetMember { address: address.clone(), port, ready: publishes_all || pod::is_ready(pod) };
    let ports = spec.ports.as_deref().unwrap_or_default();
    if ports.is_empty() {
        let headless = spec.cluster_ip.as_deref() == Some("None");
        return headless.then(|| member(None)).into_iter().collect();
    }
    let at = |port: &k8s_openapi::api::core::v1::ServicePort| {
        let number = services::port(pod, port)?;
        Some(member(Some(EndpointPort {
            app_protocol: port.app_protocol.clone(),
            name: port.name.clone(),
            port: number,
            protocol: port.protocol.clone(),
        })))
    };
    ports.iter().filter_map(at).collect()
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use serde_json::{Value, json};

    use super::*;

    fn service(spec: &Value) -> Service {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "web", "namespace": "default", "labels": {"team": "a"}}, "spec": spec}))
        .expect("a Service")
    }

    fn web() -> Service {
        service(&json!({"clusterIP": "10.0.0.9", "ipFamilies": ["IPv4"], "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}))
    }

    fn pods(ready: &[bool]) -> Vec<Arc<Pod>> {
        let of = |(at, ready): (usize, &bool)| {
            let mut pod = crate::pod::tests::pod(&format!("p{at}"), "Running", ready.then_some(NOW));
            let status = pod.status.as_mut().expect("a status");
            let ip = format!("10.1.0.{at}");
            status.pod_ip = Some(ip.clone());
            status.pod_ips = Some(vec![k8s_openapi::api::core::v1::PodIP { ip }]);
            Arc::new(pod)
        };
        ready.iter().enumerate().map(of).collect()
    }

    #[test]
    fn ready_pods_and_others_stand_apart_under_the_labels_of_the_service() {
        let made = plan(&web(), &pods(&[true, false]), None, Some(NOW)).expect("Endpoints");
        let made = json!(made);
        let reference = |name: &str| json!({"kind": "Pod", "namespace": "default", "name": name, "uid": format!("uid-{name}")});
        assert_eq!(
            made["subsets"],
            json!([{"addresses": [{"ip": "10.1.0.0", "nodeName": "node-0", "targetRef": reference("p0")}],
                "notReadyAddresses": [{"ip": "10.1.0.1", "nodeName": "node-0", "targetRef": reference("p1")}],
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}])
        );
        assert_eq!(made["metadata"]["labels"], json!({"team": "a", MANAGED_BY: NAME}));
        assert_eq!(made["metadata"]["annotations"], json!({TRIGGER_TIME: "2026-01-01T00:00:00Z"}));
    }

    #[test]
    fn what_is_as_it_should_be_is_not_written_again() {
        let pods = pods(&[true, false]);
        let made = plan(&web(), &pods, None, Some(NOW)).expect("Endpoints");
        assert_eq!(plan(&web(), &pods, Some(&made), None), None);
        assert!(plan(&web(), &pods[..1], Some(&made), None).is_some());
    }

    #[test]
    fn labels_follow_the_service_and_only_the_service() {
        let mut made = plan(&web(), &[], None, None).expect("Endpoints");
        made.metadata.labels.get_or_insert_default().insert("mine".into(), "x".into());
        let again = plan(&web(), &[], Some(&made), None).expect("other labels");
        assert_eq!(json!(again.metadata.labels), json!({"team": "a", MANAGED_BY: NAME}));
        assert_eq!(again.subsets, None);
    }

    #[test]
    fn a_service_that_publishes_all_calls_all_ready() {
        let mut service = web();
        service.spec.as_mut().expect("a specification").publish_not_ready_addresses = Some(true);
        let made = plan(&service, &pods(&[false]), None, None).expect("Endpoints");
        assert_eq!(made.subsets.expect("subsets")[0].addresses.as_ref().map(Vec::len), Some(1));
    }

    #[test]
    fn a_headless_service_without_ports_has_addresses_all_the_same() {
        let headless = service(&json!({"clusterIP": "None", "selector": {"app": "web"}}));
        let made = plan(&headless, &pods(&[true]), None, None).expect("Endpoints");
        let subset = &made.subsets.as_ref().expect("subsets")[0];
        assert_eq!((subset.addresses.as_ref().map(Vec::len), subset.ports.as_ref()), (Some(1), None));
        assert_eq!(made.metadata.labels.expect("labels")[HEADLESS], "");
        let headful = service(&json!({"clusterIP": "10.0.0.9", "selector": {"app": "web"}}));
        assert_eq!(plan(&headful, &pods(&[true]), None, None).expect("Endpoints").subsets, None);
    }
}
