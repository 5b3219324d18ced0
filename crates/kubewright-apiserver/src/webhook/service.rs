//! From a service to where its webhook can be reached
//! (`k8s.io/apiserver/pkg/util/proxy`, `ResolveCluster`; what comes after the cluster IP is ours).

use std::net::{IpAddr, SocketAddr};

use kubewright_store::Snapshot;
use serde_json::Value;

use crate::registry::Summary;

const SERVICES: &str = "/services";
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
    /// At an address that somebody has written into an EndpointSlice.
    Address(SocketAddr),
    /// At a host outside of the cluster (`ExternalName`).
    Host(String, u16),
    /// At a cluster IP that leads to simulated pods, or to none.
    Nowhere(SocketAddr),
}

impl Resolve for Snapshot<Summary> {
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<Place, String> {
        resolve(self, namespace, name, port)
    }
}

/// [`Resolve::resolve`] by the objects of a snapshot.
pub(crate) fn resolve<T>(
    objects: &Snapshot<T>,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<Place, String> {
    let Some(entry) = objects.get(SERVICES, &format!("{namespace}/{name}")) else {
        return Err(format!("service {name:?} not found"));
    };
    let service: Value = serde_json::from_slice(&entry.bytes).unwrap_or_default();
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
            if let Some(address) = endpoint(objects, namespace, name, found) {
                return Ok(Place::Address(address));
            }
            let address = spec["clusterIP"].as_str().and_then(|address| address.parse::<IpAddr>().ok());
            match address {
                Some(address) => Ok(Place::Nowhere(SocketAddr::new(address, port))),
                None => Err(format!("service {name:?} has no cluster IP")),
            }
        }
        other => Err(format!("unsupported service type {other:?}")),
    }
}

/// A ready endpoint of the service that is no pod: what nobody simulates.
fn endpoint<T>(objects: &Snapshot<T>, namespace: &str, service: &str, port: &Value) -> Option<SocketAddr> {
    let name = port["name"].as_str().unwrap_or_default();
    objects.range(SLICES, &format!("{namespace}/"), None).find_map(|entry| {
        let slice: Value = serde_json::from_slice(&entry.bytes).ok()?;
        if slice["metadata"]["labels"][SERVICE_OF_SLICE] != service {
            return None;
        }
        let ports = slice["ports"].as_array()?;
        let port = ports.iter().find(|one| one["name"].as_str().unwrap_or_default() == name)?;
        let port = u16::try_from(port["port"].as_u64()?).ok()?;
        let real = slice["endpoints"].as_array()?.iter().filter(|endpoint| {
            endpoint["conditions"]["ready"] != false && endpoint["targetRef"]["kind"] != "Pod"
        });
        let mut addresses = real.flat_map(|endpoint| endpoint["addresses"].as_array().into_iter().flatten());
        let address = addresses.find_map(|address| address.as_str()?.parse().ok())?;
        Some(SocketAddr::new(address, port))
    })
}
