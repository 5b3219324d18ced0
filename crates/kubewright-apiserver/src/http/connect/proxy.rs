//! HTTP to what runs in pods, behind the API server (`k8s.io/kubernetes/pkg/registry/core/{pod,service,node}`). It goes to a
//! port of the pod by way of its kubelet.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{Response, StatusCode};
use kubewright_engine::request::Call;
use kubewright_kinds::encode;
use kubewright_meta::{ApiError, object};
use kubewright_serve::unverified;
use kubewright_spec::Version;
use serde_json::Value;

use super::super::dispatch::RequestInfo;
use super::super::respond::ResponseBody;
use super::{address_of, node_name, passage, simulated, target};
use crate::kubelet::Kubelet;

/// What a URL names: `name`, `name:port` or `scheme:name:port`
/// (`SplitSchemeNamePort` in `k8s.io/apimachinery/pkg/util/net`).
#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    https: bool,
    name: &'a str,
    port: &'a str,
}

impl<'a> Place<'a> {
    fn read(id: &'a str) -> Option<Self> {
        let parts: Vec<&str> = id.split(':').collect();
        let (scheme, name, port) = match parts[..] {
            [name] => ("", name, ""),
            [name, port] => ("", name, port),
            [scheme, name, port] => (scheme, name, port),
            _ => return None,
        };
        let known = matches!(scheme, "" | "http" | "https");
        (known && !name.is_empty()).then_some(Self { https: scheme == "https", name, port })
    }
}

/// A port of a pod, where something can be asked.
struct Port {
    kubelet: Arc<dyn Kubelet>,
    pod: Value,
    address: IpAddr,
    number: u16,
    https: bool,
}

impl Port {
    async fn ask(self, info: &RequestInfo<'_>) -> Result<Response<ResponseBody>, ApiError> {
        let Self { kubelet, pod, address, number, https } = self;
        let connection = kubelet.port_forward(target(&pod, String::new()), number).await;
        let mut connection = connection.map_err(|refusal| unreached(&refusal))?;
        if https {
            let secured = unverified::connect(address.into(), connection).await;
            connection = Box::new(secured.map_err(|error| unreached(&error))?);
        }
        passage::pass(info, connection, &SocketAddr::new(address, number).to_string()).await
    }
}

pub(super) async fn to_pod(info: &RequestInfo<'_>) -> Result<Response<ResponseBody>, ApiError> {
    let place = Place::read(info.call.name)
        .ok_or_else(|| ApiError::bad_request(format!("invalid pod request {:?}", info.call.name)))?;
    let call = Call { name: place.name, ..info.call };
    let pod = encode::value(call.kind, &*info.server.engine().entry(call)?);
    let mut ports = pod["spec"]["containers"].as_array().into_iter().flatten();
    let first = ports.find_map(|container| container["ports"][0]["containerPort"].as_u64());
    let port = match place.port {
        "" => first.unwrap_or(80).to_string(),
        port => port.to_owned(),
    };
    let ip = pod["status"]["podIP"].as_str().unwrap_or_default();
    let kubelet = info.server.kubelets().of(node_name(&pod));
    let Ok(address) = ip.parse() else { return Err(ApiError::bad_request("address not allowed")) };
    match (kubelet, port.parse()) {
        (Some(kubelet), Ok(number)) => {
            Port { kubelet, address, number, https: place.https, pod }.ask(info).await
        }
        _ => Err(without_kubelet(info, node_name(&pod), &format!("{ip}:{port}"))),
    }
}

pub(super) async fn to_service(info: &RequestInfo<'_>) -> Result<Response<ResponseBody>, ApiError> {
    let place = Place::read(info.call.name)
        .ok_or_else(|| ApiError::bad_request(format!("invalid service request {:?}", info.call.name)))?;
    endpoint(info, &place)?.ask(info).await
}

/// A ready endpoint of a service that can be reached (`ResourceLocation` of `pkg/registry/core/service/storage`).
fn endpoint(info: &RequestInfo<'_>, place: &Place<'_>) -> Result<Port, ApiError> {
    let Place { name, port, https } = *place;
    let snapshot = info.server.engine().snapshot();
    let get = |collection: &str, key: &str| -> Option<Value> {
        snapshot.get(collection, key).map(|entry| serde_json::from_slice(&entry.bytes).unwrap_or_default())
    };
    let key = format!("{}/{name}", info.call.namespace);
    // From v1.37 on a service is looked up only to find the name of a port that is given as a number.
    let is_asked_for = info.call.kind.kubernetes() < Version::V1_37 || port.parse::<u16>().is_ok();
    let missing = || {
        if is_asked_for {
            ApiError::not_found(info.call.kind, name)
        } else {
            unavailable(format!("no endpoints available for service {name:?}"))
        }
    };
    let service = get("/services", &key).ok_or_else(missing)?;
    let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let is_it = |one: &&Value| {
        one["name"] == port || one["port"].as_u64().is_some_and(|number| number.to_string() == port)
    };
    let port_name = match ports.find(is_it) {
        Some(found) => found["name"].as_str().unwrap_or_default(),
        None if port.is_empty() => "",
        None => return Err(unavailable(format!("no service port {port} found for service {name:?}"))),
    };
    let endpoints = get("/endpoints", &key).ok_or_else(|| ApiError::not_found(info.call.kind, name))?;
    let mut pod_without_kubelet = None;
    for subset in endpoints["subsets"].as_array().into_iter().flatten() {
        let mut ports = subset["ports"].as_array().into_iter().flatten();
        let Some(number) = ports.find(|one| one["name"].as_str().unwrap_or_default() == port_name) else {
            continue;
        };
        let number =
            number["port"].as_u64().and_then(|number| u16::try_from(number).ok()).unwrap_or_default();
        for address in subset["addresses"].as_array().into_iter().flatten() {
            let (reference, ip) = (&address["targetRef"], address["ip"].as_str().unwrap_or_default());
            let text = |field: &str| reference[field].as_str().unwrap_or_default();
            let Some(pod) = get("/pods", &format!("{}/{}", text("namespace"), text("name"))) else {
                continue;
            };
            match (info.server.kubelets().of(node_name(&pod)), ip.parse()) {
                (Some(kubelet), Ok(address)) => return Ok(Port { kubelet, pod, address, number, https }),
                _ => {
                    pod_without_kubelet = Some((node_name(&pod).to_owned(), format!("{ip}:{number}")));
                }
            }
        }
    }
    Err(match pod_without_kubelet {
        Some((node, address)) => without_kubelet(info, &node, &address),
        None => unavailable(format!("no endpoints available for service {:?}", info.call.name)),
    })
}

/// A node's kubelet serves no HTTP here.
pub(super) fn to_node(info: &RequestInfo<'_>, node: &Value) -> ApiError {
    match address_of(node) {
        Ok(address) => without_kubelet(info, object::name(node), &address),
        Err(error) => error,
    }
}

/// Of a pod on a node without a kubelet nothing can be asked: nothing runs there, or it is not reached.
fn without_kubelet(info: &RequestInfo<'_>, node: &str, address: &str) -> ApiError {
    simulated(info, node).map_or_else(|| out_of_reach(address), |why| unreached(&why))
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
    unreached(&format_args!("dial tcp {address}: connect: connection refused"))
}

/// 503: nobody answers behind the proxy.
pub(super) fn unreached(why: &dyn std::fmt::Display) -> ApiError {
    unavailable(format!("error trying to reach service: {why}"))
}

fn unavailable(message: String) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_name_and_may_have_a_port_and_a_scheme() {
        let read = |id| Place::read(id).map(|place| (place.https, place.name, place.port));
        assert_eq!(read("web"), Some((false, "web", "")));
        assert_eq!(read("web:80"), Some((false, "web", "80")));
        assert_eq!(read("https:web:"), Some((true, "web", "")));
        assert_eq!(read("ftp:web:21"), None);
        assert_eq!(read("a:b:c:d"), None);
        assert_eq!(read(":80"), None);
    }
}
