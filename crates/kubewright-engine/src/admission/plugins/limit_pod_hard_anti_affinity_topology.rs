//! LimitPodHardAntiAffinityTopology: what a pod must not be near to is told by node
//! (`k8s.io/kubernetes/plugin/pkg/admission/antiaffinity`).

use kubewright_meta::{ApiError, object};
use serde_json::Value;

use super::{AdmissionPlugin, Plugin, Review};

/// The one topology key that a required anti-affinity may have.
const HOST: &str = "kubernetes.io/hostname";

/// Refuses required anti-affinity by anything but the node.
pub(super) struct LimitPodHardAntiAffinityTopology;

impl AdmissionPlugin for LimitPodHardAntiAffinityTopology {
    fn name(&self) -> Plugin {
        Plugin::LimitPodHardAntiAffinityTopology
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_whole()
    }

    fn validate(&self, _: &Review<'_>, pod: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(pod)
    }
}

/// # Errors
/// 403 for another topology key.
fn validate(pod: &Value) -> Result<(), ApiError> {
    let terms = &pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let keys =
        terms.as_array().into_iter().flatten().map(|term| term["topologyKey"].as_str().unwrap_or_default());
    match keys.into_iter().find(|key| *key != HOST) {
        None => Ok(()),
        Some(key) => {
            let why = format!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOST} is allowed"
            );
            Err(ApiError::forbidden("", "pods", object::name(pod), &why))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_required_anti_affinity_is_told_by_node() {
        let pod = |key: &str| {
            let term = json!({"topologyKey": key});
            json!({"metadata": {"name": "p"}, "spec": {"affinity": {"podAntiAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}})
        };
        assert!(validate(&pod(HOST)).is_ok());
        assert!(validate(&pod("topology.kubernetes.io/zone")).is_err());
    }
}
