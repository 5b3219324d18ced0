//! Services and Ingresses: who is behind them.

use serde_json::Value;

use crate::cause::Cause;
use crate::causes::Around;
use crate::object::{Id, Object, labels};
use crate::picture::Picture;
use crate::report::Finding;
use crate::text::{event_line, few, in_namespace};

pub(super) fn service(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object: service, .. } = *around;
    if service.is_deleting() || service.text("/spec/type") == "ExternalName" {
        return Vec::new();
    }
    let mut found = Vec::new();
    let place = in_namespace(service.namespace());
    if !service.has("/spec/selector") {
        if !has_endpoints(picture, service.namespace(), service.name())
            && picture.is_whole("discovery.k8s.io", "EndpointSlice", service.namespace())
        {
            let next = format!(
                "create an EndpointSlice with the label kubernetes.io/service-name={}, or give it a selector",
                service.name()
            );
            found.push(Finding::new(Cause::ServiceNoEndpoints, "it has no selector and no endpoints", next));
        }
    } else if picture.is_whole("", "Pod", service.namespace()) {
        let pods = pods(picture, service);
        let selector = service.at("/spec/selector");
        if pods.is_empty() {
            let message = format!("its selector matches no pods: {selector}");
            let next =
                format!("compare it with the labels of the pods: kubectl get pods --show-labels{place}");
            found.push(Finding::new(Cause::ServiceSelectsNothing, message, next));
        } else if !service.is("/spec/publishNotReadyAddresses") && !pods.iter().any(|pod| pod.is_ready()) {
            let message = format!("none of its {} pods is ready", pods.len());
            found.push(Finding::new(Cause::ServicePodsNotReady, message, "see the pods below"));
        } else {
            found.extend(port_missing(service, &pods));
        }
    }
    let is_pending = service.text("/spec/type") == "LoadBalancer"
        && service.list("/status/loadBalancer/ingress").next().is_none();
    if is_pending {
        let event = picture.events(service).into_iter().next().map(event_line);
        let next = "a cloud's controller, or MetalLB, has to give it one: is it running, and does the event say why not?";
        found.push(
            Finding::new(Cause::LoadBalancerPending, "its load balancer has no address yet", next).all(event),
        );
    }
    found
}

/// The pods that a Service selects.
pub(super) fn pods<'a>(picture: &'a Picture, service: &'a Object) -> Vec<&'a Object> {
    let wanted = labels(service.at("/spec/selector"));
    if wanted.is_empty() {
        return Vec::new();
    }
    let is_selected = |pod: &&Object| {
        let has = pod.labels();
        wanted.iter().all(|(key, value)| has.get(key) == Some(value))
            && !matches!(pod.text("/status/phase"), "Succeeded" | "Failed")
    };
    picture.within("", "Pod", service.namespace()).filter(is_selected).collect()
}

/// A port of a Service that is named as none of its pods' ports.
fn port_missing(service: &Object, pods: &[&Object]) -> Option<Finding> {
    let names: Vec<String> = pods
        .iter()
        .flat_map(|pod| pod.list("/spec/containers").chain(pod.list("/spec/initContainers")))
        .flat_map(|container| container["ports"].as_array().into_iter().flatten())
        .filter_map(|port| port["name"].as_str().map(str::to_owned))
        .collect();
    let wrong = service
        .list("/spec/ports")
        .filter_map(|port| port["targetPort"].as_str())
        .find(|name| !names.iter().any(|one| one == name))?;
    let has =
        if names.is_empty() { "they name none".to_owned() } else { format!("they have {}", few(&names)) };
    Some(Finding::new(
        Cause::ServicePortMissing,
        format!("its targetPort {wrong:?} is the name of no port of its pods: {has}"),
        "name the containers' port so, or give targetPort a number",
    ))
}

/// Whether a Service has endpoints that are ready.
pub(super) fn has_endpoints(picture: &Picture, namespace: &str, name: &str) -> bool {
    let is_of = |slice: &&Object| slice.text("/metadata/labels/kubernetes.io~1service-name") == name;
    let ready = |endpoint: &Value| endpoint["conditions"]["ready"] != false;
    picture
        .within("discovery.k8s.io", "EndpointSlice", namespace)
        .filter(is_of)
        .any(|slice| slice.list("/endpoints").any(ready))
}

/// What is wrong with the Service that has to answer calls, in words.
pub(super) fn unserved(picture: &Picture, reference: &Value) -> Option<String> {
    let [namespace, name] = ["namespace", "name"].map(|key| reference[key].as_str().unwrap_or_default());
    let id = Id::new("", "Service", namespace, name);
    if picture.is_absent(&id) {
        return Some(format!("service {name} in {namespace} does not exist"));
    }
    let is_known = picture.has(&id) && picture.is_whole("discovery.k8s.io", "EndpointSlice", namespace);
    (is_known && !has_endpoints(picture, namespace, name))
        .then(|| format!("service {name} in {namespace} has no ready endpoints"))
}

pub(super) fn ingress(around: &Around<'_>) -> Vec<Finding> {
    let Around { picture, object, .. } = *around;
    let missing = |name: &String| picture.is_absent(&Id::new("", "Service", object.namespace(), name));
    let names: Vec<String> = backend_names(object).into_iter().filter(missing).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let message = format!("its backend service {} does not exist", few(&names));
    let next = format!(
        "create the Service, or correct the Ingress: kubectl get services{}",
        in_namespace(object.namespace())
    );
    vec![Finding::new(Cause::BackendMissing, message, next)]
}

/// The Services of an Ingress.
pub(super) fn backends<'a>(picture: &'a Picture, object: &'a Object) -> Vec<&'a Object> {
    let names = backend_names(object);
    picture
        .within("", "Service", object.namespace())
        .filter(|one| names.iter().any(|name| name == one.name()))
        .collect()
}

fn backend_names(object: &Object) -> Vec<String> {
    let default = object.at("/spec/defaultBackend");
    let rules =
        object.list("/spec/rules").flat_map(|rule| rule["http"]["paths"].as_array().into_iter().flatten());
    let backends = std::iter::once(default).chain(rules.map(|path| &path["backend"]));
    let mut names: Vec<String> =
        backends.filter_map(|one| one["service"]["name"].as_str().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    names
}
