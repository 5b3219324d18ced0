//! What listens where, and where it leads (the rules of kube-proxy, `pkg/proxy`).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};

use crate::services::{Backend, Services};

/// How long a client keeps its endpoint unless the Service says otherwise (`timeoutSeconds`).
const AFFINITY: Duration = Duration::from_secs(10_800);

/// What is carried. SCTP is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

/// Where something listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Socket {
    pub(crate) protocol: Protocol,
    pub(crate) address: SocketAddr,
}

/// A port of a Service, or of the node for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frontend {
    /// Whose it is: `Service namespace/name:port`, `pod namespace/name`.
    pub(crate) owner: String,
    /// At least one.
    pub(crate) backends: Vec<SocketAddr>,
    /// How long a client keeps its backend, where it keeps one.
    pub(crate) affinity: Option<Duration>,
}

/// Where connections come from and may go.
#[derive(Clone, Debug)]
pub(crate) struct Here {
    /// The name of the node.
    pub(crate) node: String,
    /// The address of the node. It is at 127.0.0.1 too.
    pub(crate) address: Ipv4Addr,
    /// Where the API server really listens: its Service names the address at which it is advertised, as no Endpoints of a cluster
    /// lead to a loopback address.
    pub(crate) api_server: SocketAddr,
}

impl Here {
    /// Where the node is when nobody says at which of its addresses.
    pub(crate) fn addresses(&self) -> [IpAddr; 2] {
        [self.address.into(), Ipv4Addr::LOCALHOST.into()]
    }
}

/// The Service of the API server.
const API_SERVER: (&str, &str) = ("default", "kubernetes");

/// The sockets that are to be there: at the addresses of Services, and at node ports of the node. A port without endpoints has none, and who
/// connects to it is refused. Addresses beyond the loopback network are nobody's here.
pub(crate) fn frontends(services: &Services, here: &Here) -> BTreeMap<Socket, Frontend> {
    let backends = services.backends();
    let mut all = BTreeMap::new();
    for ((namespace, name), spec) in services.iter() {
        let Some(backends) = backends.get(&(&**namespace, &**name)) else { continue };
        if spec.type_.as_deref() == Some("ExternalName") {
            continue;
        }
        let is_api_server = (&**namespace, &**name) == API_SERVER;
        let inside = reached(backends, &here.node, spec.internal_traffic_policy.as_deref());
        let outside = reached(backends, &here.node, spec.external_traffic_policy.as_deref());
        for port in spec.ports.iter().flatten() {
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            let carried = match protocol {
                "TCP" => Protocol::Tcp,
                "UDP" => Protocol::Udp,
                _ => continue,
            };
            let port_name = port.name.as_deref().unwrap_or_default();
            let mut add = |address: SocketAddr, backends: &[Backend<'_>]| {
                let same_family =
                    backends.iter().filter(|backend| backend.address.is_ipv4() == address.is_ipv4());
                let backends: Vec<SocketAddr> = match is_api_server {
                    true => vec![here.api_server],
                    false => same_family
                        .filter_map(|one| Some(SocketAddr::new(one.address, one.port(port_name, protocol)?)))
                        .collect(),
                };
                if backends.is_empty() || !address.ip().is_loopback() {
                    return;
                }
                let owner = match port_name {
                    "" => format!("Service {namespace}/{name}"),
                    port => format!("Service {namespace}/{name}:{port}"),
                };
                let frontend = Frontend { owner, backends, affinity: affinity(spec) };
                all.insert(Socket { protocol: carried, address }, frontend);
            };
            for address in addresses(spec) {
                if let Ok(number) = u16::try_from(port.port) {
                    add(SocketAddr::new(address, number), &inside);
                }
            }
            if let Some(number) = node_port(port) {
                for address in here.addresses() {
                    add(SocketAddr::new(address, number), &outside);
                }
            }
        }
    }
    all
}

/// The addresses of a Service in the cluster, and those outside that its owner leads here.
fn addresses(spec: &ServiceSpec) -> Vec<IpAddr> {
    let own = match spec.cluster_ips.as_deref() {
        Some(addresses) if !addresses.is_empty() => addresses,
        _ => spec.cluster_ip.as_slice(),
    };
    let mut all: Vec<IpAddr> = Vec::new();
    for address in own.iter().chain(spec.external_ips.iter().flatten()) {
        // `None` is no address.
        if let Ok(address) = address.parse()
            && !all.contains(&address)
        {
            all.push(address);
        }
    }
    all
}

fn node_port(port: &ServicePort) -> Option<u16> {
    port.node_port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
}

/// The endpoints that a policy lets be reached: those that are ready, or where there are none, those that answer while they end.
fn reached<'a>(backends: &[Backend<'a>], node: &str, policy: Option<&str>) -> Vec<Backend<'a>> {
    let is_near = |backend: &Backend<'_>| {
        policy != Some("Local") || backend.endpoint.node_name.as_deref() == Some(node)
    };
    let of = |state: fn(&Backend<'a>) -> bool| -> Vec<Backend<'a>> {
        backends.iter().filter(|backend| state(backend) && is_near(backend)).copied().collect()
    };
    let ready = of(Backend::is_ready);
    if ready.is_empty() { of(Backend::serves_while_it_ends) } else { ready }
}

fn affinity(spec: &ServiceSpec) -> Option<Duration> {
    if spec.session_affinity.as_deref() != Some("ClientIP") {
        return None;
    }
    let config = spec.session_affinity_config.as_ref().and_then(|config| config.client_ip.as_ref());
    let seconds = config.and_then(|config| config.timeout_seconds);
    Some(seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(AFFINITY, Duration::from_secs))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::{endpoint, service, services, slice};

    fn here() -> Here {
        Here {
            node: "n".to_owned(),
            address: Ipv4Addr::new(127, 64, 0, 1),
            api_server: "127.0.0.1:6443".parse().expect("an address"),
        }
    }

    fn at(all: &BTreeMap<Socket, Frontend>, protocol: Protocol, address: &str) -> Vec<String> {
        let address = address.parse().expect("an address");
        let found = all.get(&Socket { protocol, address });
        found.iter().flat_map(|found| &found.backends).map(ToString::to_string).collect()
    }

    #[test]
    fn a_port_leads_to_the_ready_endpoints_under_its_name() {
        let all = services([
            service(
                "web",
                json!({"clusterIP": "127.128.0.9", "type": "NodePort", "ports": [
                {"name": "http", "port": 80, "nodePort": 30080}, {"name": "dns", "port": 53, "protocol": "UDP"}]}),
            ),
            slice(
                "web",
                json!([endpoint("127.64.0.1", true), endpoint("127.64.0.2", false)]),
                json!([
                {"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "dns", "port": 5353, "protocol": "UDP"}]),
            ),
            slice(
                "web",
                json!([endpoint("127.64.0.3", true)]),
                json!([{"name": "http", "port": 9090, "protocol": "TCP"}]),
            ),
        ]);
        let all = frontends(&all, &here());
        assert_eq!(at(&all, Protocol::Tcp, "127.128.0.9:80"), ["127.64.0.1:8080", "127.64.0.3:9090"]);
        for node in ["127.0.0.1:30080", "127.64.0.1:30080"] {
            assert_eq!(at(&all, Protocol::Tcp, node), ["127.64.0.1:8080", "127.64.0.3:9090"]);
        }
        assert_eq!(at(&all, Protocol::Udp, "127.128.0.9:53"), ["127.64.0.1:5353"]);
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn endpoints_that_end_are_asked_where_no_other_is_ready() {
        let ending = json!({"addresses": ["127.64.0.2"], "conditions": {"ready": false, "serving": true, "terminating": true}});
        let ports = json!([{"name": "", "port": 8080, "protocol": "TCP"}]);
        let web = || service("web", json!({"clusterIP": "127.128.0.9", "ports": [{"port": 80}]}));
        let alone = services([web(), slice("web", json!([ending]), ports.clone())]);
        assert_eq!(at(&frontends(&alone, &here()), Protocol::Tcp, "127.128.0.9:80"), ["127.64.0.2:8080"]);
        let both = services([web(), slice("web", json!([ending, endpoint("127.64.0.1", true)]), ports)]);
        assert_eq!(at(&frontends(&both, &here()), Protocol::Tcp, "127.128.0.9:80"), ["127.64.0.1:8080"]);
    }

    #[test]
    fn the_service_of_the_api_server_leads_to_where_it_listens() {
        let mut all = Services::default();
        let service = json!({"metadata": {"namespace": "default", "name": "kubernetes"},
            "spec": {"clusterIP": "127.128.0.1", "ports": [{"name": "https", "port": 443, "targetPort": 6443}]}});
        all.apply::<k8s_openapi::api::core::v1::Service>(
            kubewright_objects::from_value(service).expect("a Service"),
        );
        let slice = json!({"metadata": {"namespace": "default", "name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
            "addressType": "IPv4", "endpoints": [endpoint("192.0.2.2", true)], "ports": [{"name": "https", "port": 6443}]});
        all.apply::<k8s_openapi::api::discovery::v1::EndpointSlice>(
            kubewright_objects::from_value(slice).expect("a slice"),
        );
        assert_eq!(at(&frontends(&all, &here()), Protocol::Tcp, "127.128.0.1:443"), ["127.0.0.1:6443"]);
    }

    #[test]
    fn local_traffic_stays_on_the_node() {
        let mut near = endpoint("127.64.0.1", true);
        near["nodeName"] = json!("n");
        let slice = || slice("web", json!([near, endpoint("127.64.0.2", true)]), json!([{"port": 8080}]));
        let web = |policy: &str| {
            service(
                "web",
                json!({"clusterIP": "127.128.0.9", "internalTrafficPolicy": policy, "ports": [{"port": 80}]}),
            )
        };
        let local = services([web("Local"), slice()]);
        assert_eq!(at(&frontends(&local, &here()), Protocol::Tcp, "127.128.0.9:80"), ["127.64.0.1:8080"]);
        let cluster = services([web("Cluster"), slice()]);
        assert_eq!(at(&frontends(&cluster, &here()), Protocol::Tcp, "127.128.0.9:80").len(), 2);
    }

    #[test]
    fn nothing_listens_for_what_has_no_endpoints_or_no_address_here() {
        let ports = json!([{"port": 80}]);
        let ready = || json!([endpoint("127.64.0.1", true)]);
        for spec in [
            json!({"clusterIP": "None", "ports": ports}),
            json!({"clusterIP": "10.0.0.7", "ports": ports}),
            json!({"type": "ExternalName", "externalName": "example.org", "ports": ports}),
            json!({"clusterIP": "127.128.0.9", "ports": [{"port": 80, "protocol": "SCTP"}]}),
        ] {
            let all =
                services([service("web", spec.clone()), slice("web", ready(), json!([{"port": 8080}]))]);
            assert!(frontends(&all, &here()).is_empty(), "{spec}");
        }
        let none = services([service("web", json!({"clusterIP": "127.128.0.9", "ports": ports}))]);
        assert!(frontends(&none, &here()).is_empty());
    }

    #[test]
    fn a_client_keeps_its_endpoint_for_three_hours_or_as_said() {
        let affinity = |config: serde_json::Value| {
            let mut spec = json!({"clusterIP": "127.128.0.9", "ports": [{"port": 80}]});
            for (field, value) in config.as_object().expect("fields") {
                spec[field] = value.clone();
            }
            let all = services([
                service("web", spec),
                slice("web", json!([endpoint("127.64.0.1", true)]), json!([{"port": 8080}])),
            ]);
            let all = frontends(&all, &here());
            all.values().next().expect("a port").affinity
        };
        assert_eq!(affinity(json!({})), None);
        assert_eq!(affinity(json!({"sessionAffinity": "ClientIP"})), Some(AFFINITY));
        let config = json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}}});
        assert_eq!(affinity(config), Some(Duration::from_secs(10)));
    }
}
