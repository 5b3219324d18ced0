//! Cluster roles that are made of others (`k8s.io/kubernetes/pkg/controller/clusterroleaggregation`).

use std::collections::BTreeSet;

use kubewright_meta::selector::LabelSelector;
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
        let selector = LabelSelector::from_object(selector).ok()?;
        let is_meant = |other: &&&Value| {
            let labels = &other["metadata"]["labels"];
            selector.matches_by(|key| labels[key].as_str())
        };
        for other in others.iter().filter(is_meant) {
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
