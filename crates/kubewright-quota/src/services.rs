//! Services (`pkg/quota/v1/evaluator/core/services.go`).

use kubewright_meta::quantity::Quantity;
use serde_json::Value;

use kubewright_meta::resources::Resources;

pub(super) fn matches_name(name: &str) -> bool {
    matches!(name, "count/services" | "services" | "services.nodeports" | "services.loadbalancers")
}

/// Node ports are counted as they are wanted: they may not be chosen yet.
pub(super) fn usage(service: &Value) -> Resources {
    let spec = &service["spec"];
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let (node_ports, load_balancers) = match spec["type"].as_str() {
        Some("NodePort") => (ports.len(), 0),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => (
            ports.iter().filter(|port| port["nodePort"].as_i64().is_some_and(|number| number != 0)).count(),
            1,
        ),
        Some("LoadBalancer") => (ports.len(), 1),
        _ => (0, 0),
    };
    let mut usage = Resources::default();
    usage.set("count/services", Quantity::count(1));
    usage.set("services", Quantity::count(1));
    usage.set("services.nodeports", Quantity::count(node_ports));
    usage.set("services.loadbalancers", Quantity::count(load_balancers));
    usage
}
