//! Which nodes a pod may go to by labels and taints (`component-helpers/scheduling/corev1`).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, PreferredSchedulingTerm, Taint, Toleration,
};

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// A node as selectors see it.
#[derive(Clone, Copy, Debug)]
pub struct NodeInfo<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

impl<'a> NodeInfo<'a> {
    fn label(self, name: &str) -> Option<&'a str> {
        self.labels.get(name).map(String::as_str)
    }
}

impl<'a> From<&'a Node> for NodeInfo<'a> {
    fn from(node: &'a Node) -> Self {
        Self {
            name: node.metadata.name.as_deref().unwrap_or_default(),
            labels: node.metadata.labels.as_ref().unwrap_or(&NO_LABELS),
        }
    }
}

/// Which nodes a pod asks for by `spec.nodeSelector` and the required node affinity.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequiredNodeAffinity<'a> {
    selector: Option<&'a BTreeMap<String, String>>,
    required: Option<&'a [NodeSelectorTerm]>,
}

impl<'a> RequiredNodeAffinity<'a> {
    /// The nodes that a pod with this spec asks for.
    #[must_use]
    pub fn of(spec: &'a PodSpec) -> Self {
        let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity
            .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
        Self {
            selector: spec.node_selector.as_ref().filter(|selector| !selector.is_empty()),
            required: required.map(|required| required.node_selector_terms.as_slice()),
        }
    }

    /// Whether the node is one of those that the pod may go to.
    #[must_use]
    pub fn matches(&self, node: NodeInfo<'_>) -> bool {
        let selected = |(name, value): (&String, &String)| node.label(name) == Some(value);
        self.selector.into_iter().flatten().all(selected)
            && self.required.is_none_or(|terms| terms.iter().any(|term| matches(term, node)))
    }

    /// The nodes that the required affinity names by `metadata.name`, if every term does (`NodeAffinity.PreFilter`).
    #[must_use]
    pub fn names(&self) -> Option<BTreeSet<&'a str>> {
        let terms = self.required.filter(|terms| !terms.is_empty())?;
        let mut all = BTreeSet::new();
        for term in terms {
            let mut of_term: Option<BTreeSet<&str>> = None;
            for field in term.match_fields.iter().flatten() {
                if field.key == "metadata.name" && field.operator == "In" {
                    let named = field.values.iter().flatten().map(String::as_str).collect();
                    of_term = Some(match of_term {
                        Some(before) => before.intersection(&named).copied().collect(),
                        None => named,
                    });
                }
            }
            all.extend(of_term?);
        }
        Some(all)
    }
}

/// Whether the node matches one of the terms: the affinity of a volume.
#[must_use]
pub fn is_one_of(terms: &[NodeSelectorTerm], node: NodeInfo<'_>) -> bool {
    terms.iter().any(|term| matches(term, node))
}

/// The sum of the weights of the preferred terms that the node matches; one without requirements matches nothing.
#[must_use]
pub fn preference(terms: &[PreferredSchedulingTerm], node: NodeInfo<'_>) -> i64 {
    let liked = terms.iter().filter(|term| term.weight != 0 && matches(&term.preference, node));
    liked.map(|term| i64::from(term.weight)).sum()
}

/// All requirements of a term have to hold; a term without any matches no node.
fn matches(term: &NodeSelectorTerm, node: NodeInfo<'_>) -> bool {
    let mut expressions = term.match_expressions.iter().flatten();
    let mut fields = term.match_fields.iter().flatten();
    let is_any = term.match_expressions.as_ref().is_some_and(|all| !all.is_empty())
        || term.match_fields.as_ref().is_some_and(|all| !all.is_empty());
    is_any
        && expressions.all(|requirement| holds(requirement, node.label(&requirement.key)))
        && fields
            .all(|requirement| holds(requirement, (requirement.key == "metadata.name").then_some(node.name)))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let listed = requirement.values.as_deref().unwrap_or_default();
    let has = |value: &str| listed.iter().any(|listed| listed == value);
    let compared = || Some((value?.parse::<i64>().ok()?, listed.first()?.parse::<i64>().ok()?));
    match requirement.operator.as_str() {
        "In" => value.is_some_and(has),
        "NotIn" => !value.is_some_and(has),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared().is_some_and(|(value, bound)| value > bound),
        "Lt" => compared().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

/// Whether one of the tolerations stands the taint.
#[must_use]
pub fn is_tolerated(taint: &Taint, tolerations: &[Toleration]) -> bool {
    tolerations.iter().any(|toleration| tolerates(toleration, taint))
}

/// Whether the toleration stands the taint (`Toleration.ToleratesTaint`; its comparisons are off in v1.36).
#[must_use]
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    (effect.is_empty() || effect == taint.effect)
        && (key.is_empty() || key == taint.key)
        && match toleration.operator.as_deref().unwrap_or_default() {
            "" | "Equal" => {
                toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
            }
            operator => operator == "Exists",
        }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node() -> Node {
        let node = json!({"metadata": {"name": "n", "labels": {"zone": "two", "cores": "8"}}});
        kubewright_objects::from_value(node).expect("a node")
    }

    fn pod(spec: Value) -> PodSpec {
        let mut spec = spec;
        spec["containers"] = json!([]);
        kubewright_objects::from_value(spec).expect("a spec")
    }

    fn is_selected(spec: Value) -> bool {
        RequiredNodeAffinity::of(&pod(spec)).matches(NodeInfo::from(&node()))
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
        let other = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]});
        assert!(!is_selected(affinity(&other)));
    }

    #[test]
    fn terms_that_all_name_nodes_leave_only_these() {
        let named = |names: &[&str]| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]});
        let names = |term: &Value| {
            let pod = pod(affinity(term));
            RequiredNodeAffinity::of(&pod)
                .names()
                .map(|names| names.into_iter().map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(names(&named(&["b", "a"])), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(names(&json!({"matchExpressions": [{"key": "zone", "operator": "Exists"}]})), None);
        let mut both = named(&["a"]);
        both["matchFields"].as_array_mut().expect("fields").push(named(&["b"])["matchFields"][0].clone());
        assert_eq!(names(&both), Some(vec![]), "no node has two names");
    }

    #[test]
    fn preferences_add_up() {
        let term = |weight: i32, zone: &str| -> PreferredSchedulingTerm {
            let zone = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
            kubewright_objects::from_value(json!({"weight": weight, "preference": zone})).expect("a term")
        };
        assert_eq!(preference(&[term(5, "two"), term(7, "one"), term(1, "two")], NodeInfo::from(&node())), 6);
    }

    fn taint(effect: &str) -> Taint {
        kubewright_objects::from_value(json!({"key": "k", "value": "v", "effect": effect})).expect("a taint")
    }

    fn stands(toleration: Value, taint: &Taint) -> bool {
        is_tolerated(taint, &[kubewright_objects::from_value(toleration).expect("a toleration")])
    }

    #[test]
    fn a_taint_is_tolerated_by_key_value_and_effect() {
        assert!(!is_tolerated(&taint("NoSchedule"), &[]));
        assert!(!stands(json!({"key": "other", "operator": "Exists"}), &taint("NoExecute")));
        for tolerated in [
            json!({"operator": "Exists"}),
            json!({"key": "k", "operator": "Exists"}),
            json!({"key": "k", "value": "v", "effect": "NoSchedule"}),
        ] {
            assert!(stands(tolerated, &taint("NoSchedule")));
        }
        assert!(!stands(json!({"key": "k", "value": "w"}), &taint("NoSchedule")));
        assert!(!stands(
            json!({"key": "k", "operator": "Exists", "effect": "NoExecute"}),
            &taint("NoSchedule")
        ));
        assert!(!stands(json!({"key": "k", "operator": "Gt", "value": "1"}), &taint("NoSchedule")));
    }
}
