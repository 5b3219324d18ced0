//! Which nodes a daemon runs on (`NodeShouldRunDaemonPod` in `pkg/controller/daemon/daemon_controller.go`).

use k8s_openapi::api::core::v1::{Node, PodSpec};
use kubewright_node::facts::taints;
use kubewright_node::selection::{NodeInfo, RequiredNodeAffinity, is_tolerated};

/// What a node is to a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It should run there.
    Runs,
    /// It may stay where it runs already, but would not be started: a taint keeps new pods off.
    Stays,
    /// It has no business there.
    Not,
}

/// Whether a pod with this spec (its default tolerations included) runs on the node.
pub(super) fn fit(spec: &PodSpec, node: &Node) -> Fit {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let elsewhere = spec.node_name.as_deref().is_some_and(|wanted| !wanted.is_empty() && wanted != name);
    if elsewhere || !RequiredNodeAffinity::of(spec).matches(NodeInfo::from(node)) {
        return Fit::Not;
    }
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let bars = |effect: &str| {
        taints(node).iter().any(|taint| taint.effect == effect && !is_tolerated(taint, tolerations))
    };
    if bars("NoExecute") {
        Fit::Not
    } else if bars("NoSchedule") {
        Fit::Stays
    } else {
        Fit::Runs
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fits(spec: Value, taints: &Value) -> Fit {
        let node = json!({"metadata": {"name": "n", "labels": {"zone": "two", "cores": "8"}}, "spec": {"taints": taints}});
        let mut spec = spec;
        spec["containers"] = json!([]);
        fit(
            &kubewright_objects::from_value(spec).expect("a spec"),
            &kubewright_objects::from_value(node).expect("a node"),
        )
    }

    fn affinity(term: &Value) -> Value {
        let terms = json!({"nodeSelectorTerms": [term]});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
    }

    #[test]
    fn selector_affinity_and_node_name_have_to_match() {
        let none = json!([]);
        assert_eq!(fits(json!({}), &none), Fit::Runs);
        assert_eq!(fits(json!({"nodeSelector": {"zone": "one"}}), &none), Fit::Not);
        assert_eq!(fits(json!({"nodeName": "other"}), &none), Fit::Not);
        for (expected, key, operator, values) in [
            (Fit::Runs, "zone", "In", &["one", "two"][..]),
            (Fit::Not, "zone", "NotIn", &["two"]),
            (Fit::Runs, "disk", "DoesNotExist", &[]),
            (Fit::Not, "disk", "Exists", &[]),
            (Fit::Runs, "cores", "Gt", &["4"]),
            (Fit::Not, "cores", "Lt", &["8"]),
            (Fit::Not, "zone", "Gt", &["4"]),
        ] {
            let term = json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
            assert_eq!(fits(affinity(&term), &none), expected, "{key} {operator}");
        }
        let named = |name: &str| {
            affinity(&json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}))
        };
        assert_eq!(fits(named("n"), &none), Fit::Runs);
        assert_eq!(fits(named("other"), &none), Fit::Not);
        assert_eq!(fits(affinity(&json!({})), &none), Fit::Not);
    }

    #[test]
    fn a_taint_bars_new_pods_and_only_no_execute_drives_out() {
        let taints = |effect: &str| json!([{"key": "gpu", "value": "yes", "effect": effect}]);
        assert_eq!(fits(json!({}), &taints("NoSchedule")), Fit::Stays);
        assert_eq!(fits(json!({}), &taints("NoExecute")), Fit::Not);
        assert_eq!(fits(json!({}), &taints("PreferNoSchedule")), Fit::Runs);
        let tolerating = |toleration: Value| json!({"tolerations": [toleration]});
        assert_eq!(fits(tolerating(json!({"operator": "Exists"})), &taints("NoExecute")), Fit::Runs);
        assert_eq!(fits(tolerating(json!({"key": "gpu", "value": "yes"})), &taints("NoSchedule")), Fit::Runs);
        assert_eq!(fits(tolerating(json!({"key": "gpu", "value": "no"})), &taints("NoSchedule")), Fit::Stays);
        let elsewhere = json!({"key": "gpu", "operator": "Exists", "effect": "NoExecute"});
        assert_eq!(fits(tolerating(elsewhere), &taints("NoSchedule")), Fit::Stays);
    }
}
