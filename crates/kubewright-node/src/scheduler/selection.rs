//! Which nodes a pod may go to by labels and taints (`component-helpers/scheduling/corev1`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// Whether the node matches `spec.nodeSelector` and the required node affinity.
pub(super) fn selects(spec: &PodSpec, node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let label = |name: &str| labels.and_then(|labels| labels.get(name)).map(String::as_str);
    let selected = spec.node_selector.iter().flatten().all(|(name, value)| label(name) == Some(value));
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    selected
        && required.is_none_or(|required| required.node_selector_terms.iter().any(|term| matches(term, node)))
}

/// All requirements of a term have to hold; a term without any matches no node.
fn matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let labels = node.metadata.labels.clone().unwrap_or_default();
    let fields =
        BTreeMap::from([("metadata.name".to_owned(), node.metadata.name.clone().unwrap_or_default())]);
    let expressions = term.match_expressions.iter().flatten().map(|requirement| (requirement, &labels));
    let mut requirements = expressions
        .chain(term.match_fields.iter().flatten().map(|requirement| (requirement, &fields)))
        .peekable();
    requirements.peek().is_some() && requirements.all(|(requirement, values)| holds(requirement, values))
}

fn holds(requirement: &NodeSelectorRequirement, values: &BTreeMap<String, String>) -> bool {
    let value = values.get(&requirement.key);
    let listed = requirement.values.as_deref().unwrap_or_default();
    let number = |text: &String| text.parse::<i64>().ok();
    let compared = || Some((number(value?)?, number(listed.first()?)?));
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|value| listed.contains(value)),
        "NotIn" => value.is_none_or(|value| !listed.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|(value, bound)| value > bound),
        "Lt" => compared().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

/// Whether a taint keeps the pod off: one that bars or evicts, and that nothing in `tolerations` stands.
pub(super) fn is_barred(taints: &[Taint], tolerations: &[Toleration]) -> bool {
    let bars = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    taints.iter().filter(bars).any(|taint| !tolerates(tolerations, taint))
}

/// Whether one of the tolerations stands the taint (`Toleration.ToleratesTaint`).
pub(super) fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| {
        let effect = toleration.effect.as_deref().unwrap_or_default();
        let key = toleration.key.as_deref().unwrap_or_default();
        let value = toleration.value.as_deref().unwrap_or_default();
        let of_taint = taint.value.as_deref().unwrap_or_default();
        let number = |text: &str| text.parse::<i64>().ok();
        let compared = || Some((number(of_taint)?, number(value)?));
        (effect.is_empty() || effect == taint.effect)
            && (key.is_empty() || key == taint.key)
            && match toleration.operator.as_deref().unwrap_or_default() {
                "" | "Equal" => value == of_taint,
                "Exists" => true,
                "Gt" => compared().is_some_and(|(taint, bound)| taint > bound),
                "Lt" => compared().is_some_and(|(taint, bound)| taint < bound),
                _ => false,
            }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node() -> Node {
        serde_json::from_value(json!({"metadata": {"name": "n", "labels": {"zone": "two", "cores": "8"}}}))
            .expect("a node")
    }

    fn is_selected(spec: Value) -> bool {
        let mut spec = spec;
        spec["containers"] = json!([]);
        selects(&serde_json::from_value(spec).expect("a pod spec"), &node())
    }

    fn affinity(term: &Value) -> Value {
        let terms = json!({"nodeSelectorTerms": [term]});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
    }

    #[test]
    fn a_node_selector_wants_every_label() {
        assert!(is_selected(json!({"nodeSelector": {"zone": "two"}})));
        assert!(!is_selected(json!({"nodeSelector": {"zone": "two", "disk": "ssd"}})));
    }

    #[test]
    fn affinity_terms_are_alternatives_of_requirements_that_all_hold() {
        let requirement = |key: &str, operator: &str, values: &[&str]| {
            json!({"matchExpressions": [
            {"key": key, "operator": operator, "values": values}]})
        };
        for (holds, key, operator, values) in [
            (true, "zone", "In", &["one", "two"][..]),
            (false, "zone", "NotIn", &["two"]),
            (true, "disk", "NotIn", &["hdd"]),
            (true, "zone", "Exists", &[]),
            (true, "disk", "DoesNotExist", &[]),
            (true, "cores", "Gt", &["4"]),
            (false, "cores", "Lt", &["8"]),
            (false, "zone", "Gt", &["4"]),
        ] {
            assert_eq!(is_selected(affinity(&requirement(key, operator, values))), holds, "{key} {operator}");
        }
        assert!(!is_selected(affinity(&json!({}))), "an empty term matches nothing");
        let by_name = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]});
        assert!(is_selected(affinity(&by_name)));
    }

    fn taint(effect: &str) -> Taint {
        serde_json::from_value(json!({"key": "k", "value": "v", "effect": effect})).expect("a taint")
    }

    fn toleration(value: Value) -> Vec<Toleration> {
        vec![serde_json::from_value(value).expect("a toleration")]
    }

    #[test]
    fn a_taint_bars_whoever_does_not_tolerate_it() {
        assert!(is_barred(&[taint("NoSchedule")], &[]));
        assert!(is_barred(&[taint("NoExecute")], &toleration(json!({"key": "other", "operator": "Exists"}))));
        assert!(!is_barred(&[taint("PreferNoSchedule")], &[]));
        for tolerated in [
            json!({"operator": "Exists"}),
            json!({"key": "k", "operator": "Exists"}),
            json!({"key": "k", "value": "v", "effect": "NoSchedule"}),
        ] {
            assert!(!is_barred(&[taint("NoSchedule")], &toleration(tolerated)));
        }
        assert!(is_barred(&[taint("NoSchedule")], &toleration(json!({"key": "k", "value": "w"}))));
    }
}
