//! From a service to where its webhook can be reached
//! (`k8s.io/apiserver/pkg/util/proxy`, `ResolveCluster`; what comes after the cluster IP is ours: nothing routes it here).

use std::net::{IpAddr, SocketAddr};

use kubewright_store::Snapshot;
use serde_json::Value;

const SERVICES: &str = "/services";
const PODS: &str = "/pods";
const SLICES: &str = "discovery.k8s.io/endpointslices";
const SERVICE_OF_SLICE: &str = "kubernetes.io/service-name";

/// Finds where a service is reached.
pub trait Resolve: Send + Sync {
    /// The place of `name` in `namespace` behind its `port`.
    ///
    /// # Errors
    /// Why there is none, in kube-apiserver's words.
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<Place, String>;
}

/// Where a service is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a cluster IP, which stands for what its EndpointSlices name.
    Endpoints {
        /// The address that a client of the service calls.
        cluster_ip: SocketAddr,
        /// What is behind it and may be asked, in the order in which it is tried.
        endpoints: Vec<Endpoint>,
    },
    /// At a host outside of the cluster (`ExternalName`).
    Host(String, u16),
}

/// An endpoint of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it listens.
    pub address: SocketAddr,
    /// The pod that it is; none where somebody has written the address, to lead out of the cluster.
    pub pod: Option<PodOfEndpoint>,
}

/// A pod behind a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOfEndpoint {
    /// Its name.
    pub name: String,
    /// The node that it is bound to; empty when there is no such pod any more.
    pub node: String,
}

impl<T: Send + Sync> Resolve for Snapshot<T> {
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<Place, String> {
        resolve(self, namespace, name, port)
    }
}

/// [`Resolve::resolve`] by the objects of a snapshot.
pub(super) fn resolve<T>(
    objects: &Snapshot<T>,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<Place, String> {
    let Some(service) = object(objects, SERVICES, &format!("{namespace}/{name}")) else {
        return Err(format!("service {name:?} not found"));
    };
    let spec = &service["spec"];
    match spec["type"].as_str().unwrap_or("ClusterIP") {
        "ExternalName" => Ok(Place::Host(spec["externalName"].as_str().unwrap_or_default().to_owned(), port)),
        "ClusterIP" if spec["clusterIP"] == "None" => {
            Err(r#"cannot route to service with ClusterIP "None""#.to_owned())
        }
        "ClusterIP" | "LoadBalancer" | "NodePort" => {
            let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
            let Some(found) = ports.iter().find(|one| one["port"] == port) else {
                return Err(format!("no service port {port} found for service {name:?}"));
            };
            let address = spec["clusterIP"].as_str().and_then(|address| address.parse::<IpAddr>().ok());
            let Some(address) = address else { return Err(format!("service {name:?} has no cluster IP")) };
            let cluster_ip = SocketAddr::new(address, port);
            let port = found["name"].as_str().unwrap_or_default();
            Ok(Place::Endpoints { cluster_ip, endpoints: endpoints(objects, namespace, name, port, address) })
        }
        other => Err(format!("unsupported service type {other:?}")),
    }
}

/// The addresses at which one of these can be called: those that somebody has written by hand, and those of pods whose node
/// has a kubelet that is reached from here, which are what really runs. Pods of other nodes are simulated.
///
/// # Errors
/// Why there is none: what a client of the cluster IP is told, and what can be done about it.
pub(super) fn reachable(
    cluster_ip: SocketAddr,
    endpoints: &[Endpoint],
    runs_pods: &dyn Fn(&str) -> bool,
) -> Result<Vec<SocketAddr>, String> {
    let runs = |endpoint: &&Endpoint| endpoint.pod.as_ref().is_none_or(|pod| runs_pods(&pod.node));
    let addresses: Vec<_> = endpoints.iter().filter(runs).map(|endpoint| endpoint.address).collect();
    if !addresses.is_empty() {
        return Ok(addresses);
    }
    let refused = format!("dial tcp {cluster_ip}: connect: connection refused");
    Err(match endpoints.iter().find_map(|endpoint| endpoint.pod.as_ref()) {
        None => refused,
        Some(pod) => format!(
            "{refused}: pod {:?} is simulated, nothing listens in it (run pods as processes with \"kubewright up --runtime process\", or lead to the webhook by a URL or an EndpointSlice of your own)",
            pod.name
        ),
    })
}

fn object<T>(objects: &Snapshot<T>, collection: &str, key: &str) -> Option<Value> {
    objects.get(collection, key).map(|entry| serde_json::from_slice(&entry.bytes).unwrap_or_default())
}

/// The endpoints of a service's port (`name`) that may be asked: the ready ones; where there is none, those that end and
/// still serve (`k8s.io/kubernetes/pkg/proxy/topology.go`). Those of the family of its cluster IP come first.
fn endpoints<T>(
    objects: &Snapshot<T>,
    namespace: &str,
    service: &str,
    port: &str,
    cluster_ip: IpAddr,
) -> Vec<Endpoint> {
    let (mut ready, mut ending) = (Vec::new(), Vec::new());
    for entry in objects.range(SLICES, &format!("{namespace}/"), None) {
        let slice: Value = serde_json::from_slice(&entry.bytes).unwrap_or_default();
        if slice["metadata"]["labels"][SERVICE_OF_SLICE] != service {
            continue;
        }
        let Some(port) = port_of(&slice, port) else { continue };
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            // Only the first address means anything (`Endpoint.addresses`).
            let Some(address) = endpoint["addresses"][0].as_str().and_then(|text| text.parse().ok()) else {
                continue;
            };
            let found = || Endpoint {
                address: SocketAddr::new(address, port),
                pod: pod_of(objects, namespace, &endpoint["targetRef"]),
            };
            let conditions = &endpoint["conditions"];
            if conditions["ready"] != false {
                ready.push(found());
            } else if conditions["serving"] == true && conditions["terminating"] == true {
                ending.push(found());
            }
        }
    }
    let mut endpoints = if ready.is_empty() { ending } else { ready };
    endpoints.sort_by_key(|endpoint| endpoint.address.is_ipv4() != cluster_ip.is_ipv4());
    endpoints
}

/// The number that a port of this name has in a slice.
fn port_of(slice: &Value, name: &str) -> Option<u16> {
    let mut ports = slice["ports"].as_array()?.iter();
    let port = ports.find(|one| one["name"].as_str().unwrap_or_default() == name)?;
    u16::try_from(port["port"].as_u64()?).ok()
}

fn pod_of<T>(objects: &Snapshot<T>, namespace: &str, reference: &Value) -> Option<PodOfEndpoint> {
    let name = reference["name"].as_str().filter(|_| reference["kind"] == "Pod")?;
    let pod = object(objects, PODS, &format!("{namespace}/{name}")).unwrap_or_default();
    let node = pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
    Some(PodOfEndpoint { name: name.to_owned(), node })
}
