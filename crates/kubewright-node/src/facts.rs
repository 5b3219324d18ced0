//! What the scheduler, nodes and other controllers ask about pods and nodes.

use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod, PodCondition, Taint, Toleration};
use serde_json::{Value, json};

/// `status.phase`; empty when nobody has set it.
#[must_use]
pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether the pod has ended for good, well or not.
#[must_use]
pub fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// `spec.nodeName`; empty while the pod is bound to no node.
#[must_use]
pub fn node_name(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// The pod's conditions.
#[must_use]
pub fn conditions(pod: &Pod) -> &[PodCondition] {
    pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

/// `spec.tolerations`.
#[must_use]
pub fn tolerations(pod: &Pod) -> &[Toleration] {
    pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default()
}

/// `spec.taints` of a node.
#[must_use]
pub fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

/// The node's conditions.
#[must_use]
pub fn node_conditions(node: &Node) -> &[NodeCondition] {
    node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

/// The status of the node's `Ready` condition; `None` while nobody has said.
#[must_use]
pub fn node_readiness(node: &Node) -> Option<&str> {
    node_conditions(node).iter().find(|has| has.type_ == "Ready").map(|has| has.status.as_str())
}

/// Whether the node's `Ready` condition is true.
#[must_use]
pub fn is_node_ready(node: &Node) -> bool {
    node_readiness(node) == Some("True")
}

/// The condition as Kubernetes writes it: with a `lastProbeTime`, though nobody sets it.
#[must_use]
pub fn condition_json(condition: &PodCondition) -> Value {
    let mut value = kubewright_objects::to_value(condition).unwrap_or_default();
    if value.get("lastProbeTime").is_none() {
        value["lastProbeTime"] = json!(null);
    }
    value
}
