use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::json;

use super::*;

fn get<'a>(namespace: &'a str, resource: &'a str) -> Attributes<'a> {
    Attributes { verb: "get", resource, namespace, ..Attributes::default() }
}

fn role(kind: &str, namespace: &str, name: &str, resource: &str) -> Value {
    json!({"kind": kind, "metadata": {"name": name, "namespace": namespace},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": [resource]}]})
}

fn binding(namespace: &str, role: (&str, &str), subject: &Value) -> Value {
    let kind = if namespace.is_empty() { "ClusterRoleBinding" } else { "RoleBinding" };
    json!({"kind": kind, "metadata": {"name": "b", "namespace": namespace},
        "roleRef": {"kind": role.0, "name": role.1}, "subjects": [subject]})
}

#[test]
fn the_reason_names_binding_role_and_subject() {
    let of = |objects: &[Value], user: &User| Rbac::of_objects(objects).authorize(user, &get("ns", "pods"));
    let alice = User::new("alice", ["team"]);
    let bot = User::service_account("ns", "bot", "");
    let cluster = role("ClusterRole", "", "r", "pods");
    let cases = [
        (
            binding("", ("ClusterRole", "r"), &json!({"kind": "Group", "name": "team"})),
            &alice,
            r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "team""#,
        ),
        (
            binding("ns", ("ClusterRole", "r"), &json!({"kind": "User", "name": "alice"})),
            &alice,
            r#"RBAC: allowed by RoleBinding "b/ns" of ClusterRole "r" to User "alice""#,
        ),
        (
            binding("ns", ("ClusterRole", "r"), &json!({"kind": "ServiceAccount", "name": "bot"})),
            &bot,
            r#"RBAC: allowed by RoleBinding "b/ns" of ClusterRole "r" to ServiceAccount "bot/ns""#,
        ),
        (
            binding(
                "",
                ("ClusterRole", "r"),
                &json!({"kind": "ServiceAccount", "name": "bot", "namespace": "ns"}),
            ),
            &bot,
            r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to ServiceAccount "bot/ns""#,
        ),
    ];
    for (binding, user, reason) in cases {
        let decision = of(&[cluster.clone(), binding], user);
        assert_eq!((decision.allowed(), decision.reason.as_str()), (true, reason));
    }
}

#[test]
fn a_role_holds_in_its_namespace_alone() {
    let alice = User::new("alice", ["team"]);
    let rbac = Rbac::of_objects(&[
        role("Role", "ns", "r", "pods"),
        binding("ns", ("Role", "r"), &json!({"kind": "User", "name": "alice"})),
    ]);
    assert!(rbac.authorize(&alice, &get("ns", "pods")).allowed());
    assert!(!rbac.authorize(&alice, &get("other", "pods")).allowed());
    assert!(!rbac.authorize(&alice, &get("", "pods")).allowed());
}

#[test]
fn a_role_binding_without_a_namespace_holds_nowhere() {
    let mut lost = binding("", ("ClusterRole", "r"), &json!({"kind": "User", "name": "alice"}));
    lost["kind"] = "RoleBinding".into();
    let rbac = Rbac::of_objects(&[role("ClusterRole", "", "r", "pods"), lost]);
    assert!(!rbac.authorize(&User::new("alice", ["team"]), &get("", "pods")).allowed());
}

#[test]
fn who_is_named_twice_in_a_binding_holds_its_rules_once() {
    let mut twice = binding("", ("ClusterRole", "r"), &json!({"kind": "User", "name": "alice"}));
    twice["subjects"] = json!([{"kind": "Group", "name": "team"}, {"kind": "User", "name": "alice"}]);
    let rbac = Rbac::of_objects(&[role("ClusterRole", "", "r", "pods"), twice]);
    let alice = User::new("alice", ["team"]);
    assert_eq!(rbac.rules_for(&alice, "").0.len(), 1);
    assert!(
        rbac.authorize(&alice, &get("", "pods")).reason.ends_with("to Group \"team\""),
        "the first that matches"
    );
}

#[test]
fn masters_need_no_role() {
    let decision = Rbac::default().authorize(&User::new("x", [SYSTEM_MASTERS]), &get("", "nodes"));
    assert_eq!(decision, Decision::allow(""));
}

#[test]
fn a_role_that_is_not_there_is_told() {
    let subject = json!({"kind": "User", "name": "alice"});
    let rbac = Rbac::of_objects(&[
        binding("", ("ClusterRole", "gone"), &subject),
        binding("ns", ("Role", "lost"), &subject),
    ]);
    let alice = User::new("alice", ["team"]);
    assert_eq!(
        rbac.authorize(&alice, &get("ns", "pods")).reason,
        r#"RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "lost" not found]"#
    );
    assert_eq!(rbac.authorize(&User::new("bob", ["x"]), &get("ns", "pods")).reason, "");
}

/// What Kubernetes' documentation says, straight over the JSON of the objects: the model that compiled decisions must
/// agree with.
mod model {
    use super::*;

    pub(super) fn allows(objects: &[Value], user: &User, what: &Attributes<'_>) -> bool {
        objects.iter().any(|binding| {
            let home = binding["metadata"]["namespace"].as_str().unwrap();
            let here = match binding["kind"].as_str() {
                Some("ClusterRoleBinding") => true,
                Some("RoleBinding") => !what.namespace.is_empty() && home == what.namespace,
                _ => false,
            };
            here && list(&binding["subjects"]).iter().any(|subject| is(user, subject, home))
                && objects
                    .iter()
                    .filter(|role| names(&binding["roleRef"], home, role))
                    .flat_map(|role| list(&role["rules"]))
                    .any(|rule| rule_allows(rule, what))
        })
    }

    fn list(value: &Value) -> &[Value] {
        value.as_array().map_or(&[], Vec::as_slice)
    }

    fn is(user: &User, subject: &Value, home: &str) -> bool {
        let name = subject["name"].as_str().unwrap();
        match subject["kind"].as_str().unwrap() {
            "User" => user.name == name,
            "Group" => user.groups.iter().any(|group| group == name),
            _ => {
                let namespace = subject["namespace"].as_str().filter(|own| !own.is_empty()).unwrap_or(home);
                !namespace.is_empty() && user.name == format!("system:serviceaccount:{namespace}:{name}")
            }
        }
    }

    fn names(reference: &Value, home: &str, role: &Value) -> bool {
        let here = if reference["kind"] == "Role" { home } else { "" };
        role["kind"] == reference["kind"]
            && role["metadata"]["name"] == reference["name"]
            && role["metadata"]["namespace"] == here
    }

    fn rule_allows(rule: &Value, what: &Attributes<'_>) -> bool {
        let has =
            |field: &str, wanted: &str| list(&rule[field]).iter().any(|one| one == "*" || one == wanted);
        if let Some(asked) = what.path {
            let path = |url: &Value| {
                let url = url.as_str().unwrap();
                url == asked || url.strip_suffix('*').is_some_and(|start| asked.starts_with(start))
            };
            return has("verbs", what.verb) && list(&rule["nonResourceURLs"]).iter().any(path);
        }
        let names = list(&rule["resourceNames"]);
        let resource = if what.subresource.is_empty() {
            has("resources", what.resource)
        } else {
            has("resources", &format!("{}/{}", what.resource, what.subresource))
                || has("resources", &format!("*/{}", what.subresource))
        };
        has("verbs", what.verb)
            && has("apiGroups", what.group)
            && resource
            && (names.is_empty() || names.iter().any(|name| name == what.name))
    }
}

const VERBS: &[&str] = &["get", "list", "*"];
const GROUPS: &[&str] = &["", "apps", "*"];
const RESOURCES: &[&str] = &["pods", "pods/log", "*/log", "*/scale", "pods/*", "*"];
const NAMES: &[&str] = &["a", "b"];
const PATHS: &[&str] = &["/healthz", "/api/*", "/a*", "*"];
const NAMESPACES: &[&str] = &["x", "y"];
const ROLES: &[&str] = &["r0", "r1", "r2"];

fn some(of: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    subsequence(of, 0..=most)
}

fn a_rule() -> impl Strategy<Value = Value> {
    (some(VERBS, 2), some(GROUPS, 2), some(RESOURCES, 2), some(NAMES, 1), some(PATHS, 1)).prop_map(
        |(verbs, groups, resources, names, paths)| {
            json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names,
                "nonResourceURLs": paths})
        },
    )
}

fn a_subject() -> impl Strategy<Value = Value> {
    (
        select(&["User", "Group", "ServiceAccount"][..]),
        select(&["alice", "team", "bot"][..]),
        select(&["", "x", "y"][..]),
    )
        .prop_map(|(kind, name, namespace)| json!({"kind": kind, "name": name, "namespace": namespace}))
}

fn a_binding() -> impl Strategy<Value = Value> {
    let subjects = prop::collection::vec(a_subject(), 0..3);
    (select(&["", "x", "y"][..]), any::<bool>(), select(ROLES), subjects).prop_map(
        |(namespace, cluster_role, role, subjects)| {
            let local = !namespace.is_empty();
            let role_kind = if local && !cluster_role { "Role" } else { "ClusterRole" };
            json!({"kind": if local { "RoleBinding" } else { "ClusterRoleBinding" },
                "metadata": {"name": "b", "namespace": namespace},
                "roleRef": {"kind": role_kind, "name": role}, "subjects": subjects})
        },
    )
}

/// Every role may be there or not, in the cluster and in each namespace.
fn objects() -> impl Strategy<Value = Vec<Value>> {
    let slots: Vec<(&str, &str)> =
        ROLES.iter().flat_map(|name| ["", "x", "y"].map(|namespace| (*name, namespace))).collect();
    let roles = subsequence(slots.clone(), 0..=slots.len()).prop_flat_map(|slots| {
        let rules = prop::collection::vec(prop::collection::vec(a_rule(), 0..3), slots.len());
        (Just(slots), rules)
    });
    (roles, prop::collection::vec(a_binding(), 0..6)).prop_map(|((slots, rules), bindings)| {
        let role = |((name, namespace), rules): ((&str, &str), Vec<Value>)| {
            let kind = if namespace.is_empty() { "ClusterRole" } else { "Role" };
            json!({"kind": kind, "metadata": {"name": name, "namespace": namespace}, "rules": rules})
        };
        slots.into_iter().zip(rules).map(role).chain(bindings).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn compiled_decisions_agree_with_the_model(
        objects in objects(),
        user in select(&["alice", "system:serviceaccount:x:bot", "system:serviceaccount:y:bot"][..]),
        groups in some(&["team", "other"], 2),
        verb in select(&["get", "list", "watch"][..]),
        group in select(&["", "apps", "batch"][..]),
        (resource, subresource) in select(&[("pods", ""), ("pods", "log"), ("nodes", "scale"), ("nodes", "")][..]),
        name in select(&["", "a", "c"][..]),
        namespace in select(&["", "x", "y"][..]),
        path in select(&["", "/healthz", "/api/v1", "/b"][..]),
    ) {
        let user = User::new(user, groups);
        let what = if path.is_empty() {
            Attributes { verb, group, resource, subresource, namespace, name, ..Attributes::default() }
        } else {
            Attributes { verb, path: Some(path), ..Attributes::default() }
        };
        let decision = Rbac::of_objects(&objects).authorize(&user, &what);
        prop_assert_eq!(decision.allowed(), model::allows(&objects, &user, &what), "{:?}", what);
        prop_assert!(!decision.allowed() || decision.reason.starts_with("RBAC: allowed by "));
    }

    #[test]
    fn what_somebody_holds_is_what_they_may_do(objects in objects(), namespace in select(NAMESPACES)) {
        let rbac = Rbac::of_objects(&objects);
        let alice = User::new("alice", ["team"]);
        let (held, _) = rbac.rules_for(&alice, namespace);
        for rule in held {
            for atom in rule.atoms().filter(|atom| atom.non_resource_urls.is_empty()) {
                let (resource, subresource) = atom.resources[0].split_once('/').unwrap_or((&atom.resources[0], ""));
                let what = Attributes {
                    verb: &atom.verbs[0],
                    group: &atom.api_groups[0],
                    resource,
                    subresource,
                    namespace,
                    name: atom.resource_names.first().map_or("", String::as_str),
                    ..Attributes::default()
                };
                prop_assert!(rbac.authorize(&alice, &what).allowed(), "{:?}", what);
            }
        }
    }
}
