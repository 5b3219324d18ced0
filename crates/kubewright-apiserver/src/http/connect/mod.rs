//! The subresources by which clients reach containers: `log`, `exec`, `attach`, `portforward` and `proxy`
//! (`k8s.io/kubernetes/pkg/registry/core/{pod/rest,pod,node/rest,service}`).
//!
//! The API server asks the kubelet of the pod's node for them. A node that has none which can be reached refuses the
//! connection, as one whose kubelet is down; of a simulated one it is said that it is.

mod forward;
mod links;
mod log;
mod options;
mod passage;
mod proxy;
mod session;

use std::sync::Arc;

use http::header::UPGRADE;
use http::{Response, StatusCode};
use kubewright_engine::admission::{self, Operation, Options, Review};
use kubewright_identity::authz::{Attributes, Rights};
use kubewright_kinds::{Proxied, Subresource, encode};
use kubewright_meta::{ApiError, object};
use serde_json::{Value, json};

use super::dispatch::RequestInfo;
use super::respond::{self, ResponseBody};
use super::stream::Purpose;
use crate::kubelet::{Kubelet, Refusal, SimulatedPod, Target};

const KUBELET_PORT: u16 = 10_250;

pub(super) async fn answer(
    info: &RequestInfo<'_>,
    subresource: &Subresource,
) -> Result<Response<ResponseBody>, ApiError> {
    let mut warnings = Vec::new();
    if let Some(mut options) = options::of(subresource, info.query, info.behind)? {
        admission::admit_connection(&review(info, subresource), &mut options, &mut warnings).await?;
    }
    match answer_admitted(info, subresource).await {
        Ok(mut response) => {
            respond::warn(&mut response, &warnings);
            Ok(response)
        }
        Err(error) => Err(error.with_warnings(warnings)),
    }
}

/// The connection as admission sees it.
fn review<'a>(info: &RequestInfo<'a>, subresource: &Subresource) -> Review<'a> {
    Review {
        objects: info.server.engine().as_ref(),
        call: info.call,
        operation: Operation::Connect,
        subresource: subresource.name(),
        old: None,
        dry_run: false,
        options: Options::Connect,
        collection: false,
    }
}

async fn answer_admitted(
    info: &RequestInfo<'_>,
    subresource: &Subresource,
) -> Result<Response<ResponseBody>, ApiError> {
    let engine = info.server.engine();
    match subresource {
        Subresource::Proxy(Proxied::Service) => return proxy::to_service(info).await,
        Subresource::Proxy(Proxied::Pod) => return proxy::to_pod(info).await,
        _ => {}
    }
    if matches!(subresource, Subresource::Exec | Subresource::Attach | Subresource::PortForward) {
        may_create(info, subresource).await?;
    }
    let found =
        || -> Result<Value, ApiError> { Ok(encode::value(info.call.kind, &*engine.entry(info.call)?)) };
    match subresource {
        Subresource::Proxy(_) => Err(proxy::to_node(info, &found()?)),
        Subresource::Log => {
            let options = log::read(info)?;
            log::answer(info, &found()?, options).await
        }
        Subresource::PortForward => {
            let pod = found()?;
            forward::answer(info, backend(info, &pod, String::new())?).await
        }
        subresource => {
            let pod = found()?;
            let container = container_of(&pod, info.query.text("container"))?;
            if matches!(subresource, Subresource::Exec)
                && info.server.kubelets().of(node_name(&pod)).is_none()
                && let Some(simulated) = simulated_pod(info, &pod)
                && let Some(response) = session::answer_simulated(info, &*simulated, &container)
            {
                return response;
            }
            let purpose = match subresource {
                Subresource::Attach => Purpose::Attach,
                _ => Purpose::Exec,
            };
            session::answer(info, backend(info, &pod, container)?, purpose).await
        }
    }
}

/// A WebSocket is asked for with GET, which is the verb `get`. What it does asks for `create`, as with POST
/// (`k8s.io/kubernetes/pkg/registry/core/pod/rest/authorize.go`).
async fn may_create(info: &RequestInfo<'_>, subresource: &Subresource) -> Result<(), ApiError> {
    const VERB: &str = "create";
    if info.verb == VERB {
        return Ok(());
    }
    let (call, engine) = (info.call, info.server.engine());
    let what = Attributes {
        verb: VERB,
        group: &call.kind.group,
        version: &call.kind.version,
        resource: &call.kind.plural,
        subresource: subresource.name(),
        namespace: call.namespace,
        name: call.name,
        ..Attributes::default()
    };
    let judge = |rights: &Rights| rights.authorize(call.user, &what);
    let decision = engine.authorizer().resolve(&engine.snapshot(), judge).await;
    match (decision.allowed(), &decision.error) {
        (true, _) => Ok(()),
        (false, Some(error)) => Err(ApiError::unexplained(error.to_string())),
        (false, None) => {
            Err(ApiError::forbidden(&call.kind.group, &call.kind.plural, call.name, &decision.reason))
        }
    }
}

/// The container that is meant: the one that is named, or the only one that runs for good (`validateContainer` in
/// `pkg/registry/core/pod/strategy.go`).
fn container_of(pod: &Value, wanted: &str) -> Result<String, ApiError> {
    let names = |list: &str| -> Vec<&str> {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).collect()
    };
    let (ordinary, first, later) =
        (names("containers"), names("initContainers"), names("ephemeralContainers"));
    let pod_name = object::name(pod);
    if !wanted.is_empty() {
        return if [&ordinary, &first, &later].into_iter().flatten().any(|name| *name == wanted) {
            Ok(wanted.to_owned())
        } else {
            Err(ApiError::bad_request(format!("container {wanted} is not valid for pod {pod_name}")))
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

/// The container or pod that a client wants to stream to, and who leads there.
struct Backend {
    kubelet: Arc<dyn Kubelet>,
    target: Target,
}

/// Whose kubelet serves a stream to a pod.
///
/// # Errors
/// When the pod is on no node, or nobody answers where its kubelet should be.
fn backend(info: &RequestInfo<'_>, pod: &Value, container: String) -> Result<Backend, ApiError> {
    if node_name(pod).is_empty() {
        return Err(ApiError::bad_request(format!(
            "pod {} does not have a host assigned",
            object::name(pod)
        )));
    }
    let address = kubelet_address(info, pod)?;
    if info.upgrade.is_none() && !info.headers.contains_key(UPGRADE) {
        return Err(ApiError::bad_request("Upgrade request required"));
    }
    match info.server.kubelets().of(node_name(pod)) {
        Some(kubelet) => Ok(Backend { kubelet, target: target(pod, container) }),
        None => Err(refused(info, node_name(pod), "error dialing backend: ", &address)),
    }
}

fn target(pod: &Value, container: String) -> Target {
    Target {
        namespace: object::namespace(pod).to_owned(),
        pod: object::name(pod).to_owned(),
        uid: object::uid(pod).to_owned(),
        container,
    }
}

/// What a kubelet refuses, as it comes through the API server (`k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go`).
fn refusal(refusal: &Refusal) -> Response<ResponseBody> {
    let code = match refusal {
        Refusal::BadRequest(_) => StatusCode::BAD_REQUEST,
        Refusal::NotFound(_) => StatusCode::NOT_FOUND,
        Refusal::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    respond::text(code, refusal.to_string())
}

fn node_name(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

/// Where the kubelet of a pod's node would listen.
fn kubelet_address(info: &RequestInfo<'_>, pod: &Value) -> Result<String, ApiError> {
    let node = node_name(pod);
    let snapshot = info.server.engine().snapshot();
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

/// Nobody answers where the kubelet of a node would listen.
fn refused(info: &RequestInfo<'_>, node: &str, start: &str, address: &str) -> ApiError {
    ApiError::unexplained(
        simulated(info, node)
            .unwrap_or_else(|| format!("{start}dial tcp {address}: connect: connection refused")),
    )
}

/// Who answers for a pod on a simulated node; `None` where the pod's node is none.
fn simulated_pod(info: &RequestInfo<'_>, pod: &Value) -> Option<Arc<dyn SimulatedPod>> {
    simulated(info, node_name(pod))?;
    let (engine, kind) = (Arc::clone(info.server.engine()), Arc::clone(info.call.kind));
    let (key, uid) =
        (format!("{}/{}", object::namespace(pod), object::name(pod)), object::uid(pod).to_owned());
    let lookup = move || {
        let pod = encode::value(&kind, engine.snapshot().get(&kind.collection, &key)?);
        (object::uid(&pod) == uid).then_some(pod)
    };
    let clock = info.server.engine().world().clock;
    info.server.kubelets().simulate(Arc::new(lookup), Arc::new(move || clock.now()))
}

/// What there is to say of the pod that is asked for when a container is put into it that will not run.
pub(super) fn of_simulated(info: &RequestInfo<'_>) -> Option<String> {
    let written = matches!(info.verb, "update" | "patch");
    let entry = written.then(|| info.server.engine().entry(info.call).ok()).flatten()?;
    simulated(info, node_name(&encode::value(info.call.kind, &entry)))
}

/// What there is to say of a simulated node to who wants something of a pod that runs. A cluster of kwok leaves its user
/// with a connection that is refused.
fn simulated(info: &RequestInfo<'_>, node: &str) -> Option<String> {
    let snapshot = info.server.engine().snapshot();
    let found: Value = serde_json::from_slice(&snapshot.get("/nodes", node)?.bytes).ok()?;
    info.server.kubelets().simulated(&found).then(|| {
        format!("{node} is simulated: its pods do not run; kubewright up --runtime process runs them")
    })
}
