use serde_json::json;

use super::*;
use crate::authz::Rbac;

/// `dev` holds `get` and `list` on pods everywhere, and whatever `more` adds.
fn rights(more: &[Value]) -> Rights {
    let mut objects = vec![
        json!({"kind": "ClusterRole", "metadata": {"name": "reader"},
            "rules": [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]}),
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": "dev"},
            "roleRef": {"kind": "ClusterRole", "name": "reader"}, "subjects": [{"kind": "User", "name": "dev"}]}),
    ];
    objects.extend_from_slice(more);
    Rbac::of_objects(&objects).into()
}

/// A right for `dev`, cluster-wide.
fn right(verb: &str, group: &str, resource: &str, name: &str) -> [Value; 2] {
    [
        json!({"kind": "ClusterRole", "metadata": {"name": "more"}, "rules": [{"verbs": [verb], "apiGroups": [group],
            "resources": [resource], "resourceNames": if name.is_empty() { json!([]) } else { json!([name]) }}]}),
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": "more"},
            "roleRef": {"kind": "ClusterRole", "name": "more"}, "subjects": [{"kind": "User", "name": "dev"}]}),
    ]
}

fn dev() -> User {
    User::new("dev", ["team", "system:authenticated"])
}

fn write<'a>(resource: &'a str, namespace: &'a str, name: &'a str) -> Attributes<'a> {
    Attributes {
        verb: "create",
        group: GROUP,
        version: "v1",
        resource,
        namespace,
        name,
        ..Attributes::default()
    }
}

fn role(rules: &Value) -> Value {
    json!({"metadata": {"name": "r", "namespace": "ns"}, "rules": rules})
}

fn pods(verbs: &[&str]) -> Value {
    json!([{"verbs": verbs, "apiGroups": [""], "resources": ["pods"]}])
}

fn binding(kind: &str, name: &str) -> Value {
    json!({"metadata": {"name": "b", "namespace": "ns"},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name}, "subjects": []})
}

#[test]
fn a_role_may_hold_what_its_writer_holds_and_no_more() {
    let request = write("roles", "ns", "");
    assert_eq!(check(&rights(&[]), &dev(), &request, &role(&pods(&["get", "list"])), None), Ok(()));

    let wanted = json!([{"verbs": ["get", "delete", "watch"], "apiGroups": [""], "resources": ["pods", "secrets"]},
        {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["a"]}]);
    let refusal = check(&rights(&[]), &dev(), &request, &role(&wanted), None).unwrap_err();
    assert_eq!(
        refusal.message,
        "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"dev\" (groups=[\"team\" \
         \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"watch\"]}\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"delete\" \"watch\"]}\n\
         {APIGroups:[\"apps\"], Resources:[\"deployments\"], ResourceNames:[\"a\"], Verbs:[\"get\"]}"
    );
    assert_eq!((refusal.code, &*refusal.reason), (StatusCode::FORBIDDEN, "Forbidden"));
}

#[test]
fn two_rules_together_cover_what_neither_covers_alone() {
    let both = rights(&right("delete", "", "pods", ""));
    let request = write("roles", "ns", "");
    assert_eq!(check(&both, &dev(), &request, &role(&pods(&["get", "delete"])), None), Ok(()));
}

#[test]
fn masters_and_escalate_are_above_the_check() {
    let request = write("roles", "ns", "");
    let wanted = role(&pods(&["*"]));
    assert!(check(&rights(&[]), &dev(), &request, &wanted, None).is_err());
    assert_eq!(check(&rights(&[]), &User::new("root", [SYSTEM_MASTERS]), &request, &wanted, None), Ok(()));
    assert_eq!(
        check(&rights(&right("escalate", GROUP, "roles", "")), &dev(), &request, &wanted, None),
        Ok(())
    );

    let by_name = rights(&right("escalate", GROUP, "roles", "r"));
    assert!(check(&by_name, &dev(), &request, &wanted, None).is_err(), "a create has no name in its URL");
    assert_eq!(check(&by_name, &dev(), &write("roles", "ns", "r"), &wanted, Some(&role(&json!([])))), Ok(()));
}

#[test]
fn a_binding_needs_the_rights_of_its_role_or_bind() {
    let admin = json!({"kind": "ClusterRole", "metadata": {"name": "admin"}, "rules": pods(&["*"])});
    let known = rights(std::slice::from_ref(&admin));
    let request = write("rolebindings", "ns", "");
    assert_eq!(check(&known, &dev(), &request, &binding("ClusterRole", "reader"), None), Ok(()));
    let refusal = check(&known, &dev(), &request, &binding("ClusterRole", "admin"), None).unwrap_err();
    assert!(
        refusal
            .message
            .starts_with("rolebindings.rbac.authorization.k8s.io \"b\" is forbidden: user \"dev\"")
            && refusal
                .message
                .ends_with("not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"*\"]}"),
        "{}",
        refusal.message
    );

    let [more, held] = right("bind", GROUP, "clusterroles", "admin");
    let binder = rights(&[admin, more, held]);
    assert_eq!(check(&binder, &dev(), &request, &binding("ClusterRole", "admin"), None), Ok(()));
}

#[test]
fn a_binding_to_a_role_that_is_not_there_is_not_found() {
    let request = write("rolebindings", "ns", "");
    let refusal = check(&rights(&[]), &dev(), &request, &binding("Role", "x"), None).unwrap_err();
    assert_eq!(
        (refusal.code, refusal.message.as_str()),
        (StatusCode::NOT_FOUND, "rolebindings.rbac.authorization.k8s.io \"x\" not found"),
        "the storage of roles takes the resource of the request for the one that it looks for"
    );
}

#[test]
fn aggregation_needs_all_rights_on_create_and_on_taking_it_away() {
    let request = write("clusterroles", "", "");
    let plain = json!({"metadata": {"name": "r"}, "rules": []});
    let mut aggregating = plain.clone();
    aggregating["aggregationRule"] = json!({"clusterRoleSelectors": []});
    let why = "clusterroles.rbac.authorization.k8s.io \"r\" is forbidden: must have cluster-admin privileges to use \
               aggregationRule";
    for (new, old) in [(&aggregating, None), (&plain, Some(&aggregating))] {
        assert_eq!(check(&rights(&[]), &dev(), &request, new, old).unwrap_err().message, why);
    }
    let everything = [
        json!({"kind": "ClusterRole", "metadata": {"name": "all"}, "rules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]}),
        json!({"kind": "ClusterRoleBinding", "metadata": {"name": "all"},
            "roleRef": {"kind": "ClusterRole", "name": "all"}, "subjects": [{"kind": "User", "name": "dev"}]}),
    ];
    assert_eq!(check(&rights(&everything), &dev(), &request, &aggregating, None), Ok(()));
}

#[test]
fn letting_go_of_an_object_is_no_grant() {
    let old = json!({"metadata": {"name": "r", "finalizers": ["x"], "resourceVersion": "1"}, "rules": pods(&["*"])});
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    let request = write("roles", "ns", "r");
    assert_eq!(check(&rights(&[]), &dev(), &request, &new, Some(&old)), Ok(()));
    new["metadata"]["labels"] = json!({"a": "b"});
    assert!(check(&rights(&[]), &dev(), &request, &new, Some(&old)).is_err());
}

#[test]
fn a_rule_that_multiplies_out_of_hand_is_refused_unseen() {
    let many: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
    let huge = role(&json!([{"verbs": many, "apiGroups": many, "resources": many, "resourceNames": many}]));
    let refusal = check(&rights(&[]), &dev(), &write("roles", "ns", ""), &huge, None).unwrap_err();
    assert!(refusal.message.contains("more than the 20000 that can be checked"), "{}", refusal.message);
}

#[test]
fn roles_that_could_not_be_resolved_are_told() {
    let lost = json!({"kind": "ClusterRoleBinding", "metadata": {"name": "lost"},
        "roleRef": {"kind": "ClusterRole", "name": "gone"}, "subjects": [{"kind": "User", "name": "dev"}]});
    let refusal = check(&rights(&[lost]), &dev(), &write("roles", "ns", ""), &role(&pods(&["watch"])), None)
        .unwrap_err();
    assert!(
        refusal
            .message
            .ends_with("; resolution errors: [clusterroles.rbac.authorization.k8s.io \"gone\" not found]"),
        "{}",
        refusal.message
    );
}

#[test]
fn long_lists_are_compared_as_sets() {
    let many: Vec<String> = (0..50_000).map(|n| n.to_string()).collect();
    let rules = json!([{"verbs": many, "apiGroups": [""], "resources": many}]);
    let objects = [
        json!({"kind": "ClusterRole", "metadata": {"name": "more"}, "rules": rules}),
        right("", "", "", "")[1].clone(),
    ];
    assert_eq!(check(&rights(&objects), &dev(), &write("roles", "ns", ""), &role(&rules), None), Ok(()));
}
