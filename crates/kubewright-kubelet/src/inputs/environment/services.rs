//! The variables that tell a container where Services are (`pkg/kubelet/envvars`).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Service, ServicePort};

/// The Service that clients in a pod find the API server by.
const API_SERVER: &str = "kubernetes";

/// The port of [`API_SERVER`] as the names of its variables have it, wherever the API server listens.
const API_SERVER_PORT: i32 = 443;

/// The variables of the Services of `namespace` that have an address where `links` are wanted, and always those of the
/// API server. Names and shape of the latter are those of the Service `kubernetes`; address and port are `api_server`.
pub(super) fn variables(
    services: &[Arc<Service>],
    namespace: &str,
    links: bool,
    api_server: SocketAddr,
) -> BTreeMap<String, String> {
    let mut variables = of_api_server(api_server);
    let wanted = services.iter().filter(|service| {
        let metadata = &service.metadata;
        let is_api_server = namespace == "default" && metadata.name.as_deref() == Some(API_SERVER);
        links && metadata.namespace.as_deref() == Some(namespace) && !is_api_server
    });
    for service in wanted {
        of_service(service, &mut variables);
    }
    variables
}

fn of_api_server(address: SocketAddr) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let port = Port {
        name: API_SERVER_PORT,
        number: i32::from(address.port()),
        protocol: "TCP",
        host: &address.ip().to_string(),
    };
    let number = port.number.to_string();
    variables.insert("KUBERNETES_SERVICE_HOST".to_owned(), port.host.to_owned());
    variables.insert("KUBERNETES_SERVICE_PORT".to_owned(), number.clone());
    variables.insert("KUBERNETES_SERVICE_PORT_HTTPS".to_owned(), number);
    variables.insert("KUBERNETES_PORT".to_owned(), port.url());
    port.link("KUBERNETES", &mut variables);
    variables
}

fn of_service(service: &Service, variables: &mut BTreeMap<String, String>) {
    let Some(spec) = &service.spec else { return };
    let Some(host) = spec.cluster_ip.as_deref().filter(|address| !matches!(*address, "" | "None")) else {
        return;
    };
    let prefix = in_name(service.metadata.name.as_deref().unwrap_or_default());
    let ports: &[ServicePort] = spec.ports.as_deref().unwrap_or_default();
    let Some(first) = ports.first() else { return };
    variables.insert(format!("{prefix}_SERVICE_HOST"), host.to_owned());
    variables.insert(format!("{prefix}_SERVICE_PORT"), first.port.to_string());
    for port in ports {
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            variables.insert(format!("{prefix}_SERVICE_PORT_{}", in_name(name)), port.port.to_string());
        }
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        Port { name: port.port, number: port.port, protocol, host }.link(&prefix, variables);
    }
    let protocol = first.protocol.as_deref().unwrap_or("TCP");
    let first = Port { name: first.port, number: first.port, protocol, host };
    variables.insert(format!("{prefix}_PORT"), first.url());
}

/// A port that is linked to, as Docker named such variables.
struct Port<'a> {
    /// The number in the names of the variables.
    name: i32,
    number: i32,
    protocol: &'a str,
    host: &'a str,
}

impl Port<'_> {
    fn url(&self) -> String {
        let Self { number, host, .. } = self;
        let protocol = self.protocol.to_lowercase();
        match host.parse() {
            Ok(IpAddr::V6(_)) => format!("{protocol}://[{host}]:{number}"),
            _ => format!("{protocol}://{host}:{number}"),
        }
    }

    fn link(&self, prefix: &str, variables: &mut BTreeMap<String, String>) {
        let prefix = format!("{prefix}_PORT_{}_{}", self.name, self.protocol.to_uppercase());
        variables.insert(format!("{prefix}_PROTO"), self.protocol.to_lowercase());
        variables.insert(format!("{prefix}_PORT"), self.number.to_string());
        variables.insert(format!("{prefix}_ADDR"), self.host.to_owned());
        variables.insert(prefix, self.url());
    }
}

fn in_name(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}
