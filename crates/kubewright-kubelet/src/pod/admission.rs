//! Whether a pod may run on the node (`pkg/kubelet/lifecycle/predicate.go`).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, Node, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kubewright_meta::quantity::billionths;

use super::state::PodFailure;

/// Whether the node has room for a pod beside the others that are there; the reason why not. `others` are those that were
/// admitted before and have not ended.
pub(crate) fn admit(pod: &Pod, node: &Node, others: &[&Pod]) -> Result<(), PodFailure> {
    let empty = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&empty);
    let labels = node.metadata.labels.clone().unwrap_or_default();
    let selector = spec.node_selector.clone().unwrap_or_default();
    let os = "kubernetes.io/os";
    if selector.get(os).is_some_and(|wanted| labels.get(os) != Some(wanted)) {
        return Err(rejected(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ));
    }
    if spec.os.as_ref().is_some_and(|os| os.name != "linux") {
        return Err(rejected(
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        ));
    }
    room(spec, node, others)?;
    if selector.iter().any(|(name, value)| labels.get(name) != Some(value)) {
        return Err(predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"));
    }
    if spec.node_name.is_some() && spec.node_name != node.metadata.name {
        return Err(predicate("NodeName", "node(s) didn't match the requested node name"));
    }
    let taken: BTreeSet<_> =
        others.iter().filter_map(|other| other.spec.as_ref()).flat_map(host_ports).collect();
    let collides = host_ports(spec).into_iter().any(|port| {
        taken.iter().any(|other| {
            let (same, everywhere) = (port.1 == other.1 && port.2 == other.2, |ip: &str| ip == "0.0.0.0");
            same && (port.0 == other.0 || everywhere(&port.0) || everywhere(&other.0))
        })
    });
    if collides {
        return Err(predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports"));
    }
    Ok(())
}

fn rejected(reason: &str, message: &str) -> PodFailure {
    PodFailure { reason: reason.to_owned(), message: message.to_owned(), rejected: true }
}

fn predicate(name: &str, reason: &str) -> PodFailure {
    rejected(name, &format!("Predicate {name} failed: {reason}"))
}

fn room(spec: &PodSpec, node: &Node, others: &[&Pod]) -> Result<(), PodFailure> {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
    let pods = allocatable.get("pods").map_or(0, |pods| whole("pods", pods));
    let there = i128::try_from(others.len()).unwrap_or(i128::MAX);
    if there + 1 > pods {
        return Err(out_of("pods", 1, there, pods));
    }
    let wanted = requests(spec);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        let Some(wanted) = wanted.get(name).copied().filter(|wanted| *wanted > 0) else { continue };
        let capacity = allocatable.get(name).map_or(0, |quantity| whole(name, quantity));
        let used: i128 = others
            .iter()
            .filter_map(|other| other.spec.as_ref())
            .map(|spec| requests(spec).get(name).copied().unwrap_or_default())
            .sum();
        if used + wanted > capacity {
            return Err(out_of(name, wanted, used, capacity));
        }
    }
    Ok(())
}

fn out_of(name: &str, requested: i128, used: i128, capacity: i128) -> PodFailure {
    rejected(
        &format!("OutOf{name}"),
        &format!(
            "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}"
        ),
    )
}

/// What the containers of a pod ask for together: the most that any moment of its life takes
/// (`PodRequests` in `k8s.io/component-helpers/resource`). CPU in thousandths, all else in whole units.
fn requests(spec: &PodSpec) -> BTreeMap<String, i128> {
    let of = |container: &Container| -> BTreeMap<String, i128> {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.clone());
        requests.unwrap_or_default().iter().map(|(name, value)| (name.clone(), whole(name, value))).collect()
    };
    let add = |sum: &mut BTreeMap<String, i128>, more: &BTreeMap<String, i128>| {
        for (name, value) in more {
            *sum.entry(name.clone()).or_default() += value;
        }
    };
    let (mut sidecars, mut peak) = (BTreeMap::new(), BTreeMap::new());
    for container in spec.init_containers.iter().flatten() {
        let mut moment = sidecars.clone();
        add(&mut moment, &of(container));
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.clone_from(&moment);
        }
        for (name, value) in moment {
            let most: &mut i128 = peak.entry(name).or_default();
            *most = (*most).max(value);
        }
    }
    let mut sum = sidecars;
    for container in &spec.containers {
        add(&mut sum, &of(container));
    }
    for (name, value) in peak {
        let all = sum.entry(name).or_default();
        *all = (*all).max(value);
    }
    if let Some(whole_pod) = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()) {
        sum.extend(whole_pod.iter().map(|(name, value)| (name.clone(), whole(name, value))));
    }
    if let Some(overhead) = &spec.overhead {
        let overhead = overhead.iter().map(|(name, value)| (name.clone(), whole(name, value))).collect();
        add(&mut sum, &overhead);
    }
    sum
}

/// A quantity as the scheduler counts it: CPU in thousandths, rounded up.
fn whole(name: &str, quantity: &Quantity) -> i128 {
    let unit = if name == "cpu" { 1_000_000 } else { 1_000_000_000 };
    let value = billionths(&quantity.0).unwrap_or_default();
    value.div_euclid(unit) + i128::from(value.rem_euclid(unit) != 0)
}

/// The ports of the machine that a pod wants: address, protocol, number.
fn host_ports(spec: &PodSpec) -> Vec<(String, String, i32)> {
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    containers
        .flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let address = port.host_ip.clone().filter(|ip| !ip.is_empty());
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            Some((address.unwrap_or_else(|| "0.0.0.0".to_owned()), protocol, number))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node() -> Node {
        kubewright_objects::from_value(json!({
            "metadata": {"name": "n", "labels": {"kubernetes.io/os": "linux"}},
            "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "2"}},
        }))
        .expect("a node")
    }

    fn pod(spec: &Value) -> Pod {
        kubewright_objects::from_value(json!({"metadata": {"name": "p"}, "spec": spec})).expect("a pod")
    }

    fn refusal(spec: &Value, others: &[&Pod]) -> Option<(String, String)> {
        admit(&pod(spec), &node(), others).err().map(|failure| (failure.reason, failure.message))
    }

    #[test]
    fn a_pod_that_asks_for_more_than_is_left_is_out_of_it() {
        let other = pod(&json!({"containers": [
            {"name": "a", "resources": {"requests": {"cpu": "1500m"}}}]}));
        let spec = json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "501m"}}}]});
        assert_eq!(
            refusal(&spec, &[&other]),
            Some((
                "OutOfcpu".to_owned(),
                "Node didn't have enough resource: cpu, requested: 501, used: 1500, capacity: 2000"
                    .to_owned()
            ))
        );
        let spec = json!({"containers": [{"name": "a", "resources": {"requests": {"cpu": "500m"}}}]});
        assert_eq!(refusal(&spec, &[&other]), None);
        let (reason, _) = refusal(&json!({"containers": []}), &[&other, &other]).expect("it is full");
        assert_eq!(reason, "OutOfpods");
    }

    #[test]
    fn a_pod_for_another_system_is_not_admitted() {
        let windows = json!({"containers": [], "os": {"name": "windows"}});
        assert_eq!(refusal(&windows, &[]).expect("it is refused").0, "PodOSNotSupported");
        let selector = json!({"containers": [], "nodeSelector": {"disk": "ssd"}});
        assert_eq!(
            refusal(&selector, &[]),
            Some((
                "NodeAffinity".to_owned(),
                "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector".to_owned()
            ))
        );
    }

    #[test]
    fn a_port_of_the_machine_is_given_once() {
        let spec = json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "hostPort": 80}]}]});
        let other = pod(&spec);
        assert_eq!(refusal(&spec, &[&other]).expect("it is taken").0, "NodePorts");
    }
}
