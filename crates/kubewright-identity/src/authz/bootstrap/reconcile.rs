//! What becomes of a role or binding that a cluster has already, when a server starts that expects more of it
//! (`k8s.io/component-helpers/auth/rbac/reconciliation`, as `pkg/registry/rbac/rest/storage_rbac.go` asks it): what is missing is added,
//! what somebody has added stays.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::authz::Rule;

/// Who sets this annotation to `false` looks after the object without the server.
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// What has to be done for an object that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reconciliation {
    /// Nothing.
    None,
    /// It is to be written so.
    Update(Value),
    /// It is a binding to another role, which no update changes: it is to be deleted, and created as expected.
    Recreate,
}

/// What makes of an object the one that is expected.
#[must_use]
pub fn reconcile(existing: &Value, expected: &Value) -> Reconciliation {
    if existing["metadata"]["annotations"][AUTO_UPDATE] == "false" {
        return Reconciliation::None;
    }
    if existing["roleRef"] != expected["roleRef"] {
        return Reconciliation::Recreate;
    }
    let mut wanted = existing.clone();
    for part in ["annotations", "labels"] {
        add_missing(&mut wanted["metadata"], part, &expected["metadata"][part]);
    }
    let (role, selectors) = (expected["kind"].as_str().unwrap_or_default(), "clusterRoleSelectors");
    match role {
        "ClusterRole" | "Role" => {
            append(&mut wanted, &["rules"], missing_rules(&existing["rules"], &expected["rules"]));
            let expected = &expected["aggregationRule"];
            if expected.is_null() {
                if let Some(object) = wanted.as_object_mut() {
                    object.remove("aggregationRule");
                }
            } else {
                let missing = missing(&existing["aggregationRule"][selectors], &expected[selectors]);
                append(&mut wanted, &["aggregationRule", selectors], missing);
            }
        }
        _ => append(&mut wanted, &["subjects"], missing(&existing["subjects"], &expected["subjects"])),
    }
    if wanted == *existing { Reconciliation::None } else { Reconciliation::Update(wanted) }
}

/// Adds the members of a map that are not there; those that are keep their values.
fn add_missing(metadata: &mut Value, part: &str, expected: &Value) {
    let there = metadata.get(part);
    let missing: Map<String, Value> = expected
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| there.is_none_or(|there| there.get(key).is_none()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if missing.is_empty() {
        return;
    }
    match &mut metadata[part] {
        Value::Object(there) => there.extend(missing),
        other => *other = Value::Object(missing),
    }
}

/// Adds items to the list at a path. Without any the object stays as it is.
fn append(object: &mut Value, path: &[&str], missing: Vec<Value>) {
    if missing.is_empty() {
        return;
    }
    match path.iter().fold(object, |value, part| &mut value[*part]) {
        Value::Array(there) => there.extend(missing),
        other => *other = Value::Array(missing),
    }
}

/// The items of a list that another does not have.
fn missing(existing: &Value, expected: &Value) -> Vec<Value> {
    let there = existing.as_array().map(Vec::as_slice).unwrap_or_default();
    expected.as_array().into_iter().flatten().filter(|item| !there.contains(item)).cloned().collect()
}

/// What rules allow that others do not, each with one verb of one thing.
fn missing_rules(existing: &Value, expected: &Value) -> Vec<Value> {
    let rules = |value: &Value| Vec::<Rule>::deserialize(value).unwrap_or_default();
    let there = rules(existing);
    let expected = rules(expected);
    let atoms = expected.iter().flat_map(Rule::atoms);
    atoms.filter(|atom| !there.iter().any(|rule| rule.covers(atom))).map(|atom| json!(atom)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(rules: &Value) -> Value {
        json!({"kind": "ClusterRole", "metadata": {"name": "view", "annotations": {AUTO_UPDATE: "true"}}, "rules": rules})
    }

    #[test]
    fn what_is_missing_is_added_and_what_somebody_has_added_stays() {
        let own = json!([{"verbs": ["get", "list"], "apiGroups": ["mine.example"], "resources": ["things"]}]);
        let mut existing = role(&own);
        existing["metadata"]["labels"] = json!({"mine": "yes", "kubernetes.io/bootstrapping": "mine"});
        let mut expected = role(&json!([
            {"verbs": ["get", "watch"], "apiGroups": ["mine.example"], "resources": ["things"]},
            {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}
        ]));
        expected["metadata"]["labels"] =
            json!({"kubernetes.io/bootstrapping": "rbac-defaults", "new": "yes"});
        let Reconciliation::Update(wanted) = reconcile(&existing, &expected) else {
            panic!("it has to be updated")
        };
        let labels = json!({"mine": "yes", "kubernetes.io/bootstrapping": "mine", "new": "yes"});
        assert_eq!(wanted["metadata"]["labels"], labels);
        let rules = json!([
            own[0],
            {"verbs": ["watch"], "apiGroups": ["mine.example"], "resources": ["things"]},
            {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}
        ]);
        assert_eq!(wanted["rules"], rules);
        assert_eq!(reconcile(&wanted, &expected), Reconciliation::None);
    }

    #[test]
    fn who_has_opted_out_is_left_alone() {
        let mut existing = role(&json!([]));
        existing["metadata"]["annotations"][AUTO_UPDATE] = json!("false");
        let expected = role(&json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]));
        assert_eq!(reconcile(&existing, &expected), Reconciliation::None);
    }

    #[test]
    fn selectors_of_an_aggregated_role_are_added_and_an_aggregation_that_is_not_expected_goes() {
        let selector = |label: &str| json!({"matchLabels": {label: "true"}});
        let mut existing = role(&json!([]));
        existing["aggregationRule"] = json!({"clusterRoleSelectors": [selector("mine")]});
        let mut expected = role(&json!([]));
        expected["aggregationRule"] = json!({"clusterRoleSelectors": [selector("to-view")]});
        let Reconciliation::Update(wanted) = reconcile(&existing, &expected) else { panic!("updated") };
        let both = json!([selector("mine"), selector("to-view")]);
        assert_eq!(wanted["aggregationRule"]["clusterRoleSelectors"], both);
        let Reconciliation::Update(wanted) = reconcile(&existing, &role(&json!([]))) else {
            panic!("updated")
        };
        assert!(wanted.get("aggregationRule").is_none());
    }

    #[test]
    fn a_binding_gets_the_subjects_that_it_lacks_and_one_to_another_role_is_made_again() {
        let binding = |role: &str, subjects: &[&str]| {
            let subjects: Vec<_> =
                subjects.iter().map(|name| json!({"kind": "Group", "name": name})).collect();
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": "b"}, "roleRef": {"name": role}, "subjects": subjects})
        };
        let wanted = reconcile(&binding("view", &["mine"]), &binding("view", &["system:authenticated"]));
        assert_eq!(wanted, Reconciliation::Update(binding("view", &["mine", "system:authenticated"])));
        assert_eq!(reconcile(&binding("view", &[]), &binding("edit", &[])), Reconciliation::Recreate);
    }
}
