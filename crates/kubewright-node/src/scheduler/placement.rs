//! Where a pod goes: the filters of kube-scheduler that are known here, then the node with the fewest pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Taint};

use super::requests::Resources;
use super::selection;

/// The taint that stands for `spec.unschedulable`.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A port of the node that a pod takes: address, protocol and number.
type HostPort = (String, String, i32);

/// A node and what is taken of it.
struct Place {
    node: Arc<Node>,
    allocatable: Resources,
    requested: Resources,
    pods: usize,
    ports: BTreeSet<HostPort>,
}

/// The nodes of a cluster with the pods on them.
pub(super) struct Places(BTreeMap<String, Place>);

/// What a pod needs; worked out once and asked of every node.
struct Needs<'a> {
    pod: &'a Pod,
    requests: Resources,
    ports: BTreeSet<HostPort>,
}

impl<'a> Needs<'a> {
    fn of(pod: &'a Pod) -> Self {
        Self { pod, requests: Resources::requested(pod), ports: host_ports(pod) }
    }
}

impl Places {
    /// Empty nodes.
    pub(super) fn new(nodes: impl IntoIterator<Item = Arc<Node>>) -> Self {
        let place = |node: Arc<Node>| Place {
            allocatable: Resources::allocatable(&node),
            requested: Resources::default(),
            pods: 0,
            ports: BTreeSet::new(),
            node,
        };
        Self(
            nodes
                .into_iter()
                .map(|node| (node.metadata.name.clone().unwrap_or_default(), place(node)))
                .collect(),
        )
    }

    /// Puts a pod on a node; a node that is not known is none of the scheduler's business.
    pub(super) fn occupy(&mut self, node: &str, pod: &Pod) {
        if let Some(place) = self.0.get_mut(node) {
            place.requested.add(&Resources::requested(pod));
            place.ports.extend(host_ports(pod));
            place.pods += 1;
        }
    }

    /// The node for `pod`: of those that every filter lets through the one with the fewest pods, by name among equals.
    ///
    /// # Errors
    /// Why no node will do, in kube-scheduler's words.
    pub(super) fn find(&self, pod: &Pod) -> Result<&str, String> {
        let needs = Needs::of(pod);
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        let mut best: Option<(usize, &str)> = None;
        for (name, place) in &self.0 {
            let against = place.objections(&needs);
            if against.is_empty() && best.is_none_or(|(fewest, _)| place.pods < fewest) {
                best = Some((place.pods, name));
            }
            for reason in against {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        best.map(|(_, name)| name).ok_or_else(|| refusal(self.0.len(), &reasons))
    }
}

impl Place {
    /// Why the pod cannot go here: what the first filter that is against it says.
    fn objections(&self, needs: &Needs<'_>) -> Vec<String> {
        let Some(spec) = &needs.pod.spec else { return Vec::new() };
        let node = self.node.spec.as_ref();
        let tolerations = spec.tolerations.as_deref().unwrap_or_default();
        if node.and_then(|node| node.unschedulable) == Some(true) {
            let taint = Taint { key: UNSCHEDULABLE.into(), effect: "NoSchedule".into(), ..Taint::default() };
            if !selection::tolerates(tolerations, &taint) {
                return vec!["node(s) were unschedulable".into()];
            }
        }
        let taints = node.and_then(|node| node.taints.as_deref()).unwrap_or_default();
        if selection::is_barred(taints, tolerations) {
            return vec!["node(s) had untolerated taint(s)".into()];
        }
        if !selection::selects(spec, &self.node) {
            return vec!["node(s) didn't match Pod's node affinity/selector".into()];
        }
        if needs.ports.iter().any(|port| self.ports.iter().any(|taken| collide(port, taken))) {
            return vec!["node(s) didn't have free ports for the requested pod ports".into()];
        }
        self.shortages(&needs.requests)
    }

    fn shortages(&self, requests: &Resources) -> Vec<String> {
        let one = crate::quantity::billionths("1").unwrap_or_default();
        let pods = i128::try_from(self.pods + 1).unwrap_or(i128::MAX).saturating_mul(one);
        let mut shortages = Vec::new();
        if pods > self.allocatable.get("pods") {
            shortages.push("Too many pods".into());
        }
        for (name, amount) in requests.iter() {
            if amount > self.allocatable.get(name) - self.requested.get(name) {
                shortages.push(format!("Insufficient {name}"));
            }
        }
        shortages
    }
}

/// The sentence of the `FailedScheduling` event (`FitError.Error` in `pkg/scheduler/framework/types.go`).
fn refusal(nodes: usize, reasons: &BTreeMap<String, usize>) -> String {
    if nodes == 0 {
        return "no nodes available to schedule pods".into();
    }
    let mut counted: Vec<_> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    counted.sort();
    format!("0/{nodes} nodes are available: {}.", counted.join(", "))
}

fn host_ports(pod: &Pod) -> BTreeSet<HostPort> {
    let Some(spec) = &pod.spec else { return BTreeSet::new() };
    let containers = spec.containers.iter().chain(
        spec.init_containers
            .iter()
            .flatten()
            .filter(|container| container.restart_policy.as_deref() == Some("Always")),
    );
    containers
        .flat_map(|container| container.ports.iter().flatten())
        .filter_map(|port| {
            let number = port.host_port.filter(|number| *number > 0)?;
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".into());
            Some((port.host_ip.clone().unwrap_or_default(), protocol, number))
        })
        .collect()
}

/// The same protocol and number collide, unless on two different addresses.
fn collide(a: &HostPort, b: &HostPort) -> bool {
    let any = |address: &str| address.is_empty() || address == "0.0.0.0";
    (&a.1, a.2) == (&b.1, b.2) && (any(&a.0) || any(&b.0) || a.0 == b.0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(name: &str, spec: impl Into<Value>) -> Arc<Node> {
        let spec = spec.into();
        let allocatable = json!({"cpu": "4", "memory": "8Gi", "pods": "3"});
        let node = json!({"metadata": {"name": name}, "spec": spec, "status": {"allocatable": allocatable}});
        Arc::new(serde_json::from_value(node).expect("a node"))
    }

    fn pod(cpu: &str) -> Pod {
        let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}}))
            .expect("a pod")
    }

    fn two_nodes() -> Places {
        Places::new([node("a", json!({})), node("b", json!({}))])
    }

    #[test]
    fn pods_spread_over_the_nodes() {
        let mut places = two_nodes();
        let mut order = Vec::new();
        for _ in 0..4 {
            let place = places.find(&pod("1")).expect("a node").to_owned();
            places.occupy(&place, &pod("1"));
            order.push(place);
        }
        assert_eq!(order, ["a", "b", "a", "b"]);
    }

    #[test]
    fn a_node_that_is_full_takes_no_more() {
        let mut places = two_nodes();
        places.occupy("a", &pod("3"));
        assert_eq!(places.find(&pod("2")), Ok("b"));
        places.occupy("b", &pod("3"));
        assert_eq!(places.find(&pod("2")), Err("0/2 nodes are available: 2 Insufficient cpu.".into()));
        for _ in 0..3 {
            places.occupy("a", &pod("0"));
        }
        let refused = places.find(&pod("2"));
        assert_eq!(refused, Err("0/2 nodes are available: 1 Too many pods, 2 Insufficient cpu.".into()));
    }

    #[test]
    fn cordoned_and_tainted_nodes_refuse_each_with_its_reason() {
        let taint = json!({"taints": [{"key": "k", "effect": "NoSchedule"}]});
        let places = Places::new([node("a", json!({"unschedulable": true})), node("b", taint)]);
        let told =
            "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.";
        assert_eq!(places.find(&pod("1")), Err(told.into()));
    }

    #[test]
    fn without_nodes_there_is_nothing_to_say_about_them() {
        assert_eq!(Places::new([]).find(&pod("1")), Err("no nodes available to schedule pods".into()));
    }

    #[test]
    fn a_host_port_is_given_once_per_address() {
        let with_port = |address: &str| -> Pod {
            let ports = json!([{"containerPort": 80, "hostPort": 80, "hostIP": address}]);
            let container = json!({"name": "c", "ports": ports});
            serde_json::from_value(json!({"spec": {"containers": [container]}})).expect("a pod")
        };
        let mut places = Places::new([node("a", json!({}))]);
        places.occupy("a", &with_port("10.0.0.1"));
        assert_eq!(places.find(&with_port("10.0.0.2")), Ok("a"));
        assert!(places.find(&with_port("10.0.0.1")).is_err());
        assert!(places.find(&with_port("")).is_err());
    }
}
