//! PodResizeValidator (`k8s.io/kubernetes/plugin/pkg/admission/podresize`), which there is from v1.36 on.

use kubewright_kinds::built_in::core::node::NODE;
use kubewright_meta::quantity::Quantity;
use kubewright_meta::{ApiError, object};
use kubewright_quota as quota;
use kubewright_spec::Version;
use serde_json::{Value, json};

use super::pod_topology_labels::node_of;
use super::refusal::forbidden;
use super::{AdmissionPlugin, Plugin, Review};

/// Refuses a resize that the pod's node has no room for.
pub(super) struct PodResizeValidator;

impl AdmissionPlugin for PodResizeValidator {
    fn name(&self) -> Plugin {
        Plugin::PodResizeValidator
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_write() && review.subresource == "resize" && review.call.kind.kubernetes() >= Version::V1_36
    }

    fn validate(&self, review: &Review<'_>, pod: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, pod)
    }
}

/// Allows a pod that runs to be resized where its node can do it: one with Linux and enough room.
///
/// # Errors
/// 403, with the cause.
fn validate(review: &Review<'_>, pod: &Value) -> Result<(), ApiError> {
    let node = node_of(pod);
    let unchanged = review.old.is_none_or(|old| object::generation(old) == object::generation(pod));
    if node.is_empty() || unchanged {
        return Ok(());
    }
    let Some(found) = review.objects.object(&NODE, &node) else {
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

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;

    use super::*;
    use crate::admission::Operation;
    use crate::admission::fake::Fake;

    #[test]
    fn a_pod_grows_where_its_node_has_room() {
        let node = |name: &str, os: &str| {
            let labels = json!({"kubernetes.io/os": os});
            let status = json!({"allocatable": {"cpu": "2", "memory": "1Gi"}});
            (&NODE, json!({"metadata": {"name": name, "labels": labels}, "status": status}))
        };
        let fake = Fake::with(&[node("a", "linux"), node("w", "windows")]);
        let pod = |node: &str, cpu: &str, generation: i64| {
            let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
            let spec = json!({"nodeName": node, "containers": [container]});
            json!({"metadata": {"name": "p", "generation": generation}, "spec": spec})
        };
        let grown = |node: &str, cpu: &str| {
            let (old, new) = (pod(node, "1", 1), pod(node, cpu, 2));
            let review =
                Review { old: Some(&old), subresource: "resize", ..fake.review(&POD, Operation::Update) };
            assert!(PodResizeValidator.handles(&review));
            let outcome = PodResizeValidator.validate(&review, &new, &mut Vec::new());
            outcome.map_err(|error| error.details.map(|details| details["causes"][0]["reason"].clone()))
        };
        assert_eq!(grown("a", "2"), Ok(()));
        assert_eq!(grown("a", "3"), Err(Some(json!("NodeCapacity"))));
        assert_eq!(grown("w", "2"), Err(Some(json!("UnsupportedPlatform"))));
        assert!(grown("missing", "2").is_err());
    }
}
