//! Connections to ports of pods: how they are asked for.

use http::{Response, StatusCode};
use kubewright_meta::ApiError;

use super::super::dispatch::RequestInfo;
use super::super::respond::{self, ResponseBody};
use super::super::stream::{Forwarding, Ports};
use super::Backend;

pub(super) async fn answer(
    info: &RequestInfo<'_>,
    backend: Backend,
) -> Result<Response<ResponseBody>, ApiError> {
    let Some(upgrade) = &info.upgrade else {
        return Err(ApiError::bad_request("Upgrade request required"));
    };
    let Backend { kubelet, target } = backend;
    let forwarding = match Forwarding::negotiate(info.method, info.headers) {
        Ok(forwarding) => forwarding,
        Err(refused) => return Ok(*refused),
    };
    let numbers = match forwarding.needs_ports().then(|| ports(info)) {
        Some(Err(why)) => return Ok(respond::text(StatusCode::BAD_REQUEST, why)),
        Some(Ok(numbers)) => numbers,
        None => Vec::new(),
    };
    Ok(forwarding.serve(upgrade, info.server.shutdown(), Ports { kubelet, target }, numbers))
}

/// The ports that a client names who will open no streams for them
/// (`NewV4Options` in `k8s.io/cri-streaming/pkg/streaming/portforward/websocket.go`).
fn ports(info: &RequestInfo<'_>) -> Result<Vec<u16>, String> {
    let all: Vec<&str> = info.query.all("ports").flat_map(|list| list.split(',')).collect();
    if all.is_empty() {
        return Err("query parameter \"port\" is required".to_owned());
    }
    // The API server writes them as one list.
    let list = all.join(",");
    let read = |port: &str| match port.parse::<u16>() {
        Ok(0) => Err(format!("port {list:?} must be > 0")),
        Ok(port) => Ok(port),
        Err(_) => {
            let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            let why = if is_number { "value out of range" } else { "invalid syntax" };
            Err(format!("unable to parse {list:?} as a port: strconv.ParseUint: parsing {port:?}: {why}"))
        }
    };
    all.iter().map(|port| read(port)).collect()
}
