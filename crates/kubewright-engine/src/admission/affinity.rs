//! LimitPodHardAntiAffinityTopology: what a pod must not be near to is told by node
//! (`k8s.io/kubernetes/plugin/pkg/admission/antiaffinity`).

use kubewright_meta::{ApiError, object};
use serde_json::Value;

use super::Review;

/// The one topology key that a required anti-affinity may have.
const HOST: &str = "kubernetes.io/hostname";

/// # Errors
/// 403 for another topology key.
pub(super) fn validate(review: &Review<'_>, pod: &Value) -> Result<(), ApiError> {
    if !review.subresource.is_empty() {
        return Ok(());
    }
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
