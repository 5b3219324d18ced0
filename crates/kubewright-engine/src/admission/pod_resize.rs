//! PodResizeValidator (`k8s.io/kubernetes/plugin/pkg/admission/podresize`).

use kubewright_meta::quantity::Quantity;
use kubewright_meta::{ApiError, object};
use kubewright_quota as quota;
use serde_json::{Value, json};

use super::refusal::forbidden;
use super::{Review, nodes, stored};

/// Allows a pod that runs to be resized where its node can do it: one with Linux and enough room.
///
/// # Errors
/// 403, with the cause.
pub(super) fn validate(review: &Review<'_>, pod: &Value) -> Result<(), ApiError> {
    let node = nodes::node_of(pod);
    let unchanged = review.old.is_none_or(|old| object::generation(old) == object::generation(pod));
    if node.is_empty() || unchanged {
        return Ok(());
    }
    let Some(found) = stored::object(&review.registry.snapshot(), "/nodes", &node) else {
        return Err(forbidden(review, pod, &format!("node {node:?} not found")));
    };
    let because = |why: String, cause: &str| {
        let mut error = forbidden(review, pod, &why);
        if let Some(details) = &mut error.details {
            details["causes"] = json!([{"reason": cause}]);
        }
        Err(error)
    };
    if let Some(system) = found["metadata"]["labels"]["kubernetes.io/os"].as_str().filter(|os| *os != "linux")
    {
        let why = format!("pod resize is only supported on linux nodes, node {node:?} is {system:?}");
        return because(why, "UnsupportedPlatform");
    }
    let room = |name: &str| Quantity::of(&found["status"]["allocatable"][name]).unwrap_or(Quantity::ZERO);
    let asked = quota::pod_requests(pod);
    let wanted = |name: &str| asked.get(name).unwrap_or(Quantity::ZERO);
    let mut lacking = Vec::new();
    if wanted("cpu") > room("cpu") {
        let (asked, there) = (wanted("cpu").millis(), room("cpu").millis());
        lacking.push(format!("cpu, requested: {asked}, allocatable: {there}"));
    }
    if wanted("memory") > room("memory") {
        let (asked, there) = (wanted("memory").units(), room("memory").units());
        lacking.push(format!("memory, requested: {asked}, allocatable: {there}"));
    }
    if lacking.is_empty() {
        return Ok(());
    }
    because(format!("node didn't have enough allocatable resources: {}", lacking.join("; ")), "NodeCapacity")
}
