//! PodTopologyLabels: a pod tells where its node is (`k8s.io/kubernetes/plugin/pkg/admission/podtopologylabels`).

use kubewright_kinds::built_in::core::node::NODE;
use kubewright_meta::{ApiError, object};
use serde_json::{Value, json};

use super::{AdmissionPlugin, Operation, Plugin, Review};

const PLACES: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Gives a pod the zone and the region of its node as labels.
pub(super) struct PodTopologyLabels;

impl AdmissionPlugin for PodTopologyLabels {
    fn name(&self) -> Plugin {
        Plugin::PodTopologyLabels
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.operation == Operation::Create && matches!(review.subresource, "" | "binding")
    }

    fn mutate(&self, review: &Review<'_>, object: &mut Value) -> Result<(), ApiError> {
        mutate(review, object);
        Ok(())
    }
}

/// Gives a new pod, or a binding to a node, the labels of the node's zone and region.
fn mutate(review: &Review<'_>, object: &mut Value) {
    let node = match (review.subresource, review.operation) {
        ("", Operation::Create) => node_of(object),
        ("binding", Operation::Create) if object["target"]["kind"] == "Node" => {
            object["target"]["name"].as_str().unwrap_or_default().to_owned()
        }
        _ => return,
    };
    set_topology_labels(review, object, &node);
}

fn set_topology_labels(review: &Review<'_>, object: &mut Value, node: &str) {
    if node.is_empty() {
        return;
    }
    let Some(entry) = review.objects.entry(&NODE, node) else { return };
    for place in PLACES {
        if let Some(value) = entry.tag.label(place) {
            let labels = object::meta_mut(object).entry("labels").or_insert_with(|| json!({}));
            object::as_map(labels).insert(place.into(), value.into());
        }
    }
}

/// The node that a pod is created on; empty for one that waits for a scheduler.
pub(super) fn node_of(pod: &Value) -> String {
    pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;

    use super::*;
    use crate::admission::fake::Fake;

    #[test]
    fn a_pod_and_a_binding_tell_where_the_node_is() {
        let labels = json!({"topology.kubernetes.io/zone": "z", "other": "x"});
        let fake = Fake::with(&[(&NODE, json!({"metadata": {"name": "a", "labels": labels}}))]);
        let of = |subresource: &'static str, mut object: Value| {
            let review = Review { subresource, ..fake.review(&POD, Operation::Create) };
            assert!(PodTopologyLabels.handles(&review));
            PodTopologyLabels.mutate(&review, &mut object).expect("nothing is refused");
            object["metadata"]["labels"].clone()
        };
        let told = json!({"topology.kubernetes.io/zone": "z"});
        assert_eq!(of("", json!({"spec": {"nodeName": "a"}})), told);
        assert_eq!(of("binding", json!({"target": {"kind": "Node", "name": "a"}})), told);
        assert_eq!(of("", json!({"spec": {}})), Value::Null);
    }
}
