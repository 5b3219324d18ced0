//! Ports of the node that lead to pods (`hostPort`): what the plugin `portmap` of a cluster's network does elsewhere.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::core::v1::{ContainerPort, Pod};

use crate::frontends::{Frontend, Here, Protocol, Socket};

/// The sockets that the pods of a node want. A port at no address in particular is at all that the node has;
/// addresses beyond the loopback network are nobody's here. Pods on the node's own network listen themselves.
pub(crate) fn host_ports<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    here: &Here,
) -> BTreeMap<Socket, Frontend> {
    let mut all = BTreeMap::new();
    for pod in pods {
        let (Some(spec), Some(address)) = (&pod.spec, address(pod)) else { continue };
        if spec.host_network.unwrap_or_default() {
            continue;
        }
        let sidecars = spec.init_containers.iter().flatten();
        let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
        for port in sidecars.chain(&spec.containers).flat_map(|container| container.ports.iter().flatten()) {
            let Some((protocol, number, backend)) = mapped(port) else { continue };
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            for host in hosts(port, here) {
                let socket = Socket { protocol, address: SocketAddr::new(host, number) };
                let frontend = Frontend {
                    owner: format!("pod {namespace}/{name}"),
                    backends: vec![SocketAddr::new(address, backend)],
                    affinity: None,
                };
                // Of two that want the same, which the kubelet does not admit, the first has it.
                all.entry(socket).or_insert(frontend);
            }
        }
    }
    all
}

/// Where a pod is, as long as it may answer.
fn address(pod: &Pod) -> Option<IpAddr> {
    let status = pod.status.as_ref()?;
    let is_over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    status.pod_ip.as_deref().filter(|_| !is_over)?.parse().ok()
}

/// What is carried, from which port of the node to which of the pod.
fn mapped(port: &ContainerPort) -> Option<(Protocol, u16, u16)> {
    let protocol = match port.protocol.as_deref() {
        None | Some("TCP") => Protocol::Tcp,
        Some("UDP") => Protocol::Udp,
        Some(_) => return None,
    };
    let number = u16::try_from(port.host_port?).ok().filter(|number| *number != 0)?;
    Some((protocol, number, u16::try_from(port.container_port).ok()?))
}

fn hosts(port: &ContainerPort, here: &Here) -> Vec<IpAddr> {
    match port.host_ip.as_deref().unwrap_or_default() {
        "" | "0.0.0.0" => here.addresses().to_vec(),
        host => host.parse().ok().filter(IpAddr::is_loopback).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::{Value, json};

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "so that tests say `pod(_, _, json!(..))`")]
    fn pod(name: &str, address: &str, ports: Value) -> Pod {
        let object = json!({
            "metadata": {"namespace": "shop", "name": name},
            "spec": {"containers": [{"name": "c", "ports": ports}]},
            "status": {"phase": "Running", "podIP": address}
        });
        kubewright_objects::from_value(object).expect("a pod")
    }

    fn of(pods: &[Pod]) -> Vec<String> {
        let here = Here {
            node: "n".to_owned(),
            address: Ipv4Addr::new(127, 64, 0, 1),
            api_server: SocketAddr::from(([127, 0, 0, 1], 6443)),
        };
        let all = host_ports(pods, &here);
        let line = |(socket, frontend): (Socket, Frontend)| {
            format!("{:?} {} -> {}", socket.protocol, socket.address, frontend.backends[0])
        };
        all.into_iter().map(line).collect()
    }

    #[test]
    fn a_port_is_where_its_pod_wants_it() {
        let pods = [
            pod("a", "127.64.0.7", json!([{"containerPort": 8080, "hostPort": 80, "hostIP": "127.0.0.1"}])),
            pod("b", "127.64.0.8", json!([{"containerPort": 8080, "hostPort": 80, "hostIP": "127.64.0.1"}])),
            pod("c", "127.64.0.9", json!([{"containerPort": 53, "hostPort": 80, "protocol": "UDP"}])),
        ];
        assert_eq!(
            of(&pods),
            [
                "Tcp 127.0.0.1:80 -> 127.64.0.7:8080",
                "Tcp 127.64.0.1:80 -> 127.64.0.8:8080",
                "Udp 127.0.0.1:80 -> 127.64.0.9:53",
                "Udp 127.64.0.1:80 -> 127.64.0.9:53",
            ]
        );
    }

    #[test]
    fn nothing_leads_where_nobody_answers_or_from_where_nobody_is() {
        let port = json!([{"containerPort": 80, "hostPort": 80}]);
        let mut over = pod("over", "127.64.0.7", port.clone());
        over.status.as_mut().expect("a status").phase = Some("Succeeded".to_owned());
        let mut own = pod("own", "127.64.0.1", port.clone());
        own.spec.as_mut().expect("a spec").host_network = Some(true);
        let waiting = pod("waiting", "", port);
        let elsewhere = json!([
            {"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"},
            {"containerPort": 80},
            {"containerPort": 80, "hostPort": 80, "protocol": "SCTP"}
        ]);
        assert_eq!(of(&[over, own, waiting, pod("p", "127.64.0.8", elsewhere)]), Vec::<String>::new());
    }
}
