//! TaintNodesByCondition: a node is not ready before it says so
//! (`k8s.io/kubernetes/plugin/pkg/admission/nodetaint`). PodTopologyLabels: a pod tells where its node is
//! (`k8s.io/kubernetes/plugin/pkg/admission/podtopologylabels`).

use kubewright_meta::object;
use serde_json::{Value, json};

use super::{Operation, Review};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const PLACES: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Taints a new node.
pub(super) fn taint(node: &mut Value) {
    let taints = object::member_mut(node, "spec").entry("taints").or_insert(Value::Null);
    let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
    match taints {
        Value::Array(taints) => {
            if !taints.iter().any(|one| one["key"] == NOT_READY && one["effect"] == "NoSchedule") {
                taints.push(taint);
            }
        }
        other => *other = json!([taint]),
    }
}

/// Gives a new pod, or a binding to a node, the labels of the node's zone and region.
pub(super) fn place(review: &Review<'_>, object: &mut Value) {
    let node = match (review.subresource, review.operation) {
        ("", Operation::Create) => node_of(object),
        ("binding", Operation::Create) if object["target"]["kind"] == "Node" => {
            object["target"]["name"].as_str().unwrap_or_default().to_owned()
        }
        _ => return,
    };
    tell_place(review, object, &node);
}

fn tell_place(review: &Review<'_>, object: &mut Value, node: &str) {
    if node.is_empty() {
        return;
    }
    let Some(entry) = review.registry.snapshot().get("/nodes", node).cloned() else { return };
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
