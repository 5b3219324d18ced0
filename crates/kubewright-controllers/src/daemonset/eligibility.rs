//! Which nodes a daemon runs on (`NodeShouldRunDaemonPod` in `pkg/controller/daemon/daemon_controller.go`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

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
    if elsewhere || !selects(spec, node) {
        return Fit::Not;
    }
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    let taints = || node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let bars = |effects: &[&str]| {
        taints().any(|taint| effects.contains(&taint.effect.as_str()) && !tolerates(tolerations, taint))
    };
    if bars(&["NoExecute"]) {
        Fit::Not
    } else if bars(&["NoSchedule"]) {
        Fit::Stays
    } else {
        Fit::Runs
    }
}

/// Whether the node matches `spec.nodeSelector` and the required node affinity.
fn selects(spec: &PodSpec, node: &Node) -> bool {
    let empty = BTreeMap::new();
    let labels = node.metadata.labels.as_ref().unwrap_or(&empty);
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    spec.node_selector.iter().flatten().all(|(name, value)| labels.get(name) == Some(value))
        && required.is_none_or(|required| {
            required.node_selector_terms.iter().any(|term| matches(term, node, labels))
        })
}

/// All requirements of a term have to hold; a term without any matches no node.
fn matches(term: &NodeSelectorTerm, node: &Node, labels: &BTreeMap<String, String>) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    let label = |key: &str| labels.get(key).map(String::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(node.metadata.name.as_deref()).flatten();
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|requirement| holds(requirement, label(&requirement.key)))
        && fields.iter().all(|requirement| holds(requirement, field(&requirement.key)))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let listed = requirement.values.as_deref().unwrap_or_default();
    let is_listed = |value: &str| listed.iter().any(|listed| listed == value);
    let number = |text: &str| text.parse::<i64>().ok();
    let compared = || Some((number(value?)?, number(listed.first()?)?));
    match requirement.operator.as_str() {
        "In" => value.is_some_and(is_listed),
        "NotIn" => !value.is_some_and(is_listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|(value, bound)| value > bound),
        "Lt" => compared().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

/// Whether one of the tolerations stands the taint (`Toleration.ToleratesTaint`; its comparisons are off in v1.36).
fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| {
        let of_any = |wanted: &Option<String>, has: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == has)
        };
        of_any(&toleration.effect, &taint.effect)
            && of_any(&toleration.key, &taint.key)
            && match toleration.operator.as_deref().unwrap_or_default() {
                "" | "Equal" => {
                    toleration.value.as_deref().unwrap_or_default()
                        == taint.value.as_deref().unwrap_or_default()
                }
                operator => operator == "Exists",
            }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fits(spec: Value, taints: &Value) -> Fit {
        let node = json!({"metadata": {"name": "n", "labels": {"zone": "two", "cores": "8"}}, "spec": {"taints": taints}});
        let mut spec = spec;
        spec["containers"] = json!([]);
        fit(&serde_json::from_value(spec).expect("a spec"), &serde_json::from_value(node).expect("a node"))
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
