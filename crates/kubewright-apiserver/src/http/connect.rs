//! The subresources by which clients reach containers: `log`, `exec`, `attach`, `portforward` and `proxy`
//! (`k8s.io/kubernetes/pkg/registry/core/{pod/rest,pod,node/rest,service}`).
//!
//! The API server asks the kubelet for them. No node here has one that listens: what can be told without it is told,
//! and beyond that a connection is refused, as from a node whose kubelet is down.

mod options;

use std::net::IpAddr;

use http::header::UPGRADE;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::dispatch::Asked;
use super::respond::{self, ResponseBody};
use crate::admission::{self, Operation, Options, Review};
use crate::error::ApiError;
use crate::field::FieldError;
use crate::kinds::Subresource;
use crate::registry::{encode, object};

const KUBELET_PORT: u16 = 10_250;

pub(super) async fn answer(
    asked: &Asked<'_>,
    subresource: &Subresource,
) -> Result<Response<ResponseBody>, ApiError> {
    let mut warnings = Vec::new();
    if let Some(mut options) = options::of(subresource, asked.query, asked.behind)? {
        admission::admit_connection(&review(asked, subresource), &mut options, &mut warnings).await?;
    }
    answer_admitted(asked, subresource).map_err(|error| error.with_warnings(warnings))
}

/// The connection as admission sees it.
fn review<'a>(asked: &Asked<'a>, subresource: &Subresource) -> Review<'a> {
    Review {
        registry: asked.server.registry(),
        call: asked.call,
        operation: Operation::Connect,
        subresource: subresource.name(),
        old: None,
        dry_run: false,
        options: Options::Connect,
        collection: false,
    }
}

fn answer_admitted(asked: &Asked<'_>, subresource: &Subresource) -> Result<Response<ResponseBody>, ApiError> {
    let registry = asked.server.registry();
    if asked.call.kind.plural == "services" {
        return Err(proxy_of_service(asked));
    }
    let found = encode::value(asked.call.kind, &*registry.entry(asked.call)?);
    match (subresource, asked.call.kind.plural.as_str()) {
        (Subresource::Proxy(_), "pods") => Err(proxy_of_pod(&found)),
        (Subresource::Proxy(_), _) => Err(proxy_of_node(&found)),
        (Subresource::PortForward, _) => Err(dial(asked, &found)),
        _ => {
            if *subresource == Subresource::Log {
                check_log_options(asked)?;
            }
            let container = container_of(&found, asked.query.text("container"))?;
            if *subresource == Subresource::Log {
                logs(asked, &found, &container)
            } else {
                Err(dial(asked, &found))
            }
        }
    }
}

/// What is wrong with the options of a log (`ValidatePodLogOptions` in `k8s.io/kubernetes/pkg/apis/core/validation`).
fn check_log_options(asked: &Asked<'_>) -> Result<(), ApiError> {
    let mut errors = Vec::new();
    let at_least = |field: &str, least: i64, why: &str| -> Result<Option<FieldError>, ApiError> {
        let number = asked.query.number(field)?;
        let wrong = number.filter(|number| *number < least);
        Ok(wrong.map(|number| FieldError::invalid(field, number, format!("must be greater than {why}"))))
    };
    errors.extend(at_least("tailLines", 0, "or equal to 0")?);
    errors.extend(at_least("limitBytes", 1, "0")?);
    let since = asked.query.number("sinceSeconds")?;
    if since.is_some() && asked.query.get("sinceTime").is_some() {
        let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        errors.push(FieldError::forbidden("[]", why));
    } else {
        errors.extend(at_least("sinceSeconds", 1, "0")?);
    }
    if !asked.query.text("stream").is_empty() {
        errors.push(FieldError::forbidden("stream", "may not be specified"));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid_of("", "PodLogOptions", asked.call.name, &errors))
    }
}

/// The container that is meant: the one that is named, or the only one that runs for good (`validateContainer` in
/// `pkg/registry/core/pod/strategy.go`).
fn container_of(pod: &Value, asked: &str) -> Result<String, ApiError> {
    let names = |list: &str| -> Vec<&str> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).collect()
    };
    let (ordinary, first, later) =
        (names("containers"), names("initContainers"), names("ephemeralContainers"));
    let pod_name = object::name(pod);
    if !asked.is_empty() {
        return if [&ordinary, &first, &later].into_iter().flatten().any(|name| *name == asked) {
            Ok(asked.to_owned())
        } else {
            Err(ApiError::bad_request(format!("container {asked} is not valid for pod {pod_name}")))
        };
    }
    match ordinary.as_slice() {
        [only] => Ok((*only).to_owned()),
        _ => {
            let all: Vec<&str> = first.into_iter().chain(ordinary).chain(later).collect();
            Err(ApiError::bad_request(format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{}]",
                all.join(" ")
            )))
        }
    }
}

/// A pod that is on no node has written nothing yet.
fn logs(asked: &Asked<'_>, pod: &Value, container: &str) -> Result<Response<ResponseBody>, ApiError> {
    if node_name(pod).is_empty() {
        return Ok(respond::text(StatusCode::NO_CONTENT, ""));
    }
    let address = kubelet(asked, pod)?;
    let (namespace, name) = (object::namespace(pod), object::name(pod));
    Err(refused(
        &format!("Get \"https://{address}/containerLogs/{namespace}/{name}/{container}\": "),
        &address,
    ))
}

/// 500 for a stream to a pod: nobody answers where its kubelet should be.
fn dial(asked: &Asked<'_>, pod: &Value) -> ApiError {
    if node_name(pod).is_empty() {
        return ApiError::bad_request(format!("pod {} does not have a host assigned", object::name(pod)));
    }
    match kubelet(asked, pod) {
        Ok(_) if !asked.headers.contains_key(UPGRADE) => ApiError::bad_request("Upgrade request required"),
        Ok(address) => refused("error dialing backend: ", &address),
        Err(error) => error,
    }
}

fn node_name(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

/// Where the kubelet of a pod's node would listen.
fn kubelet(asked: &Asked<'_>, pod: &Value) -> Result<String, ApiError> {
    let node = node_name(pod);
    let snapshot = asked.server.registry().snapshot();
    // Kubernetes says so, too: the error of the node's look-up is told as one of the pod.
    let entry = snapshot.get("/nodes", node).ok_or_else(|| ApiError::not_found_in("", "pods", node))?;
    let node: Value = serde_json::from_slice(&entry.bytes).unwrap_or_default();
    address_of(&node)
}

fn address_of(node: &Value) -> Result<String, ApiError> {
    let addresses = node["status"]["addresses"].as_array().map_or(&[][..], Vec::as_slice);
    let preferred = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
    let found = preferred.iter().find_map(|kind| addresses.iter().find(|address| address["type"] == *kind));
    let port =
        node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64().filter(|port| *port != 0);
    match found.and_then(|address| address["address"].as_str()) {
        Some(address) => Ok(format!("{address}:{}", port.unwrap_or(KUBELET_PORT.into()))),
        None => Err(ApiError::unexplained(format!(
            "no preferred addresses found; known addresses: {}",
            json!(addresses)
        ))),
    }
}

fn proxy_of_node(node: &Value) -> ApiError {
    match address_of(node) {
        Ok(address) => out_of_reach(&address),
        Err(error) => error,
    }
}

fn proxy_of_pod(pod: &Value) -> ApiError {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut ports = containers.filter_map(|container| container["ports"].as_array()).flatten();
    let port = ports.find_map(|port| port["containerPort"].as_u64()).unwrap_or(80);
    match pod["status"]["podIP"].as_str().filter(|ip| !ip.is_empty()) {
        None => ApiError::bad_request("address not allowed"),
        Some(ip) => out_of_reach(&format!("{ip}:{port}")),
    }
}

/// A service is named with its scheme and port, where it has several: `https:web:443`.
fn proxy_of_service(asked: &Asked<'_>) -> ApiError {
    let parts: Vec<&str> = asked.call.name.split(':').collect();
    let (name, port) = match parts.as_slice() {
        [name, port] | [_, name, port] => (*name, *port),
        _ => (asked.call.name, ""),
    };
    let snapshot = asked.server.registry().snapshot();
    let key = format!("{}/{name}", asked.call.namespace);
    let Some(entry) = snapshot.get("/services", &key) else {
        return ApiError::not_found(asked.call.kind, name);
    };
    let service: Value = serde_json::from_slice(&entry.bytes).unwrap_or_default();
    let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let is_it = |one: &Value| {
        one["name"] == port || one["port"].as_u64().is_some_and(|number| number.to_string() == port)
    };
    if !port.is_empty() && !ports.any(is_it) {
        return unavailable(format!("no service port {port} found for service {name:?}"));
    }
    if snapshot.get("/endpoints", &key).is_none() {
        return ApiError::not_found(asked.call.kind, name);
    }
    unavailable(format!("no endpoints available for service {name:?}"))
}

/// Nobody is led to the machine of the API server itself (`k8s.io/kubernetes/pkg/proxy/util`, `IsProxyableIP`).
fn out_of_reach(address: &str) -> ApiError {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let inside = host.parse::<IpAddr>().is_ok_and(|ip| match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local() || ip.is_multicast() || ip.is_unspecified(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_multicast() || ip.is_unspecified(),
    });
    if inside {
        return ApiError::bad_request("address not allowed");
    }
    unavailable(format!("error trying to reach service: dial tcp {address}: connect: connection refused"))
}

fn unavailable(message: String) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
}

fn refused(start: &str, address: &str) -> ApiError {
    ApiError::unexplained(format!("{start}dial tcp {address}: connect: connection refused"))
}
