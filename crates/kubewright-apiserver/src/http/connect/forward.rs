//! Connections to ports of pods: how they are asked for.

use http::{Response, StatusCode};
use kubewright_meta::ApiError;

use super::super::dispatch::Asked;
use super::super::respond::{self, ResponseBody};
use super::super::stream::{Forwarding, Ports};
use super::Backend;

pub(super) async fn answer(asked: &Asked<'_>, backend: Backend) -> Result<Response<ResponseBody>, ApiError> {
    let Some(upgrade) = &asked.upgrade else {
        return Err(ApiError::bad_request("Upgrade request required"));
    };
    let Backend { kubelet, target } = backend;
    let forwarding = match Forwarding::negotiate(asked.method, asked.headers) {
        Ok(forwarding) => forwarding,
        Err(refused) => return Ok(*refused),
    };
    let numbers = match forwarding.needs_ports().then(|| ports(asked)) {
        Some(Err(why)) => return Ok(respond::text(StatusCode::BAD_REQUEST, why)),
        Some(Ok(numbers)) => numbers,
        None => Vec::new(),
    };
    Ok(forwarding.serve(upgrade, asked.server.shutdown(), Ports { kubelet, target }, numbers))
}

/// The ports that a client names who will open no streams for them
/// (`NewV4Options` in `k8s.io/cri-streaming/pkg/streaming/portforward/websocket.go`).
fn ports(asked: &Asked<'_>) -> Result<Vec<u16>, String> {
    let all: Vec<&str> = asked.query.all("ports").flat_map(|list| list.split(',')).collect();
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
