//! What scheduler and nodes ask about a pod.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use serde_json::{Value, json};

/// `status.phase`; empty when nobody has set it.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether the pod has ended for good, well or not.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// `spec.nodeName`; empty while the pod is bound to no node.
pub(crate) fn node_name(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// The pod's conditions.
pub(crate) fn conditions(pod: &Pod) -> &[PodCondition] {
    pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

/// The condition as Kubernetes writes it: with a `lastProbeTime`, though nobody sets it.
pub(crate) fn condition_json(condition: &PodCondition) -> Value {
    let mut value = serde_json::to_value(condition).unwrap_or_default();
    if value.get("lastProbeTime").is_none() {
        value["lastProbeTime"] = json!(null);
    }
    value
}
