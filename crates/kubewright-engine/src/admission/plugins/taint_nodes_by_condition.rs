//! TaintNodesByCondition: a node is not ready before it says so (`k8s.io/kubernetes/plugin/pkg/admission/nodetaint`).

use kubewright_meta::{ApiError, object};
use serde_json::{Value, json};

use super::{AdmissionPlugin, Plugin, Review};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Taints a new node as not ready.
pub(super) struct TaintNodesByCondition;

impl AdmissionPlugin for TaintNodesByCondition {
    fn name(&self) -> Plugin {
        Plugin::TaintNodesByCondition
    }

    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_of_new()
    }

    fn mutate(&self, _: &Review<'_>, node: &mut Value) -> Result<(), ApiError> {
        mutate(node);
        Ok(())
    }
}

/// Taints a new node.
fn mutate(node: &mut Value) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_node_is_tainted_once() {
        let mut node = json!({"metadata": {"name": "a"}});
        mutate(&mut node);
        mutate(&mut node);
        assert_eq!(node["spec"]["taints"], json!([{"key": NOT_READY, "effect": "NoSchedule"}]));
    }
}
