//! Cluster roles that are made of others (`k8s.io/kubernetes/pkg/controller/clusterroleaggregation`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::Rule;
use super::objects::Role;

/// The rules that an aggregating cluster role should have: those of all cluster roles that one of its selectors matches,
/// in the order of selectors and then of names, each rule once. `None` for a role that does not aggregate, or whose
/// selectors make no sense.
#[must_use]
pub fn aggregate<'a>(role: &Value, all: impl IntoIterator<Item = &'a Value>) -> Option<Vec<Rule>> {
    let selectors = role.get("aggregationRule")?.get("clusterRoleSelectors").and_then(Value::as_array)?;
    let own = &role["metadata"]["name"];
    let mut others: Vec<&Value> = all.into_iter().filter(|other| other["metadata"]["name"] != *own).collect();
    others.sort_by_key(|other| other["metadata"]["name"].as_str());
    let mut rules: Vec<Rule> = Vec::new();
    let mut seen = BTreeSet::new();
    for selector in selectors {
        let selector = Selector::deserialize(selector).ok()?;
        for other in others.iter().filter(|other| selector.matches(&other["metadata"]["labels"])) {
            let Ok(parsed) = Role::deserialize(*other) else { continue };
            for rule in parsed.rules {
                if seen.insert(rule.clone()) {
                    rules.push(rule);
                }
            }
        }
    }
    Some(rules)
}

/// A `metav1.LabelSelector`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Selector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<Requirement>,
}

#[derive(Deserialize)]
struct Requirement {
    key: String,
    operator: Operator,
    #[serde(default)]
    values: Vec<String>,
}

#[derive(Deserialize)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Selector {
    fn matches(&self, labels: &Value) -> bool {
        self.match_labels.iter().all(|(key, value)| labels[key.as_str()] == *value)
            && self.match_expressions.iter().all(|one| one.matches(labels[one.key.as_str()].as_str()))
    }
}

impl Requirement {
    fn matches(&self, label: Option<&str>) -> bool {
        let listed = label.is_some_and(|label| self.values.iter().any(|value| value == label));
        match self.operator {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(name: &str, label: &str, verb: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {"part": label}}, "rules": [{"verbs": [verb]}]})
    }

    fn verbs(rules: &[Rule]) -> Vec<&str> {
        rules.iter().map(|rule| rule.verbs[0].as_str()).collect()
    }

    #[test]
    fn rules_come_from_matching_roles_by_name_each_once_and_never_from_itself() {
        let whole = json!({"metadata": {"name": "whole", "labels": {"part": "yes"}}, "rules": [{"verbs": ["self"]}],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}});
        let all = [
            part("b", "yes", "list"),
            part("a", "yes", "get"),
            part("c", "no", "watch"),
            part("d", "yes", "get"),
        ];
        let rules = aggregate(&whole, all.iter().chain([&whole])).unwrap();
        assert_eq!(verbs(&rules), ["get", "list"]);
    }

    #[test]
    fn selectors_are_alternatives_and_expressions_within_one_all_hold() {
        let whole = |selectors: Value| json!({"metadata": {"name": "w"}, "aggregationRule": {"clusterRoleSelectors": selectors}});
        let all = [part("a", "x", "get"), part("b", "y", "list"), part("c", "z", "watch")];
        let of = |selectors| aggregate(&whole(selectors), &all).map(|rules| verbs(&rules).join(" "));
        let expression = |operator: &str, values: Value| json!([{"matchExpressions": [{"key": "part", "operator": operator, "values": values}]}]);
        assert_eq!(
            of(json!([{"matchLabels": {"part": "z"}}, {"matchLabels": {"part": "x"}}])).unwrap(),
            "watch get"
        );
        assert_eq!(of(expression("In", json!(["x", "y"]))).unwrap(), "get list");
        assert_eq!(of(expression("NotIn", json!(["x"]))).unwrap(), "list watch");
        assert_eq!(of(expression("Exists", json!([]))).unwrap(), "get list watch");
        assert_eq!(of(expression("DoesNotExist", json!([]))).unwrap(), "");
        assert_eq!(of(expression("Near", json!([]))), None, "no such operator");
    }

    #[test]
    fn a_role_without_an_aggregation_rule_is_left_alone() {
        assert_eq!(aggregate(&part("a", "yes", "get"), &[part("b", "yes", "list")]), None);
    }
}
