use serde_json::json;

use super::super::{Attributes, DecisionKind, Rbac, Rights};
use super::*;
use crate::authn::{SYSTEM_MASTERS, User};

fn modes(names: &[&str], policies: Option<Policies>) -> Result<Vec<Mode>, String> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    Mode::of_names(&names, policies, None).map_err(|error| error.to_string())
}

/// `alice` may `get` pods in `ns` by a role.
fn rights(names: &[&str]) -> Rights {
    let rbac = Rbac::of_objects(&[
        json!({"kind": "Role", "metadata": {"name": "r", "namespace": "ns"},
            "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
        json!({"kind": "RoleBinding", "metadata": {"name": "r", "namespace": "ns"},
            "roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "alice"}]}),
        json!({"kind": "RoleBinding", "metadata": {"name": "lost", "namespace": "ns"},
            "roleRef": {"kind": "Role", "name": "lost"}, "subjects": [{"kind": "User", "name": "bob"}]}),
    ]);
    Rights::new(rbac.into(), modes(names, None).unwrap().into(), None)
}

const GET: Attributes<'_> = Attributes {
    verb: "get",
    group: "",
    version: "v1",
    resource: "pods",
    subresource: "",
    namespace: "ns",
    name: "",
    path: None,
    field_selector: "",
    label_selector: "",
};

#[test]
fn the_first_mode_that_says_yes_decides_and_the_reasons_of_all_are_told() {
    let alice = User::new("alice", ["g"]);
    for (names, allowed, reason) in [
        (&["AlwaysAllow"][..], true, ""),
        (&["AlwaysDeny"], false, "Everything is forbidden."),
        (&["AlwaysDeny", "RBAC"], true, r#"RBAC: allowed by RoleBinding "r/ns" of Role "r" to User "alice""#),
        (&["RBAC", "AlwaysDeny"], true, r#"RBAC: allowed by RoleBinding "r/ns" of Role "r" to User "alice""#),
        (&["Node", "RBAC"], true, r#"RBAC: allowed by RoleBinding "r/ns" of Role "r" to User "alice""#),
        (&["AlwaysDeny", "AlwaysAllow"], true, ""),
    ] {
        let decision = rights(names).authorize(&alice, &GET);
        assert_eq!((decision.allowed(), decision.reason.as_str()), (allowed, reason), "{names:?}");
    }
    let bob = rights(&["AlwaysDeny", "RBAC"]).authorize(&User::new("bob", ["g"]), &GET);
    assert_eq!(bob.verdict, DecisionKind::NoOpinion);
    assert_eq!(
        bob.reason,
        "Everything is forbidden.\nRBAC: role.rbac.authorization.k8s.io \"lost\" not found"
    );
}

#[test]
fn masters_may_do_everything_whatever_the_modes_say() {
    assert!(rights(&["AlwaysDeny"]).authorize(&User::new("x", [SYSTEM_MASTERS]), &GET).allowed());
}

#[test]
fn rules_are_those_of_all_modes() {
    let held = |names: &[&str], user: &User| {
        let rights = rights(names);
        let held = rights.rules_for(user, "ns");
        (held.rules.len(), held.incomplete, held.errors.clone())
    };
    let alice = User::new("alice", ["g"]);
    assert_eq!(held(&["AlwaysAllow", "RBAC"], &alice), (3, false, vec![]));
    assert_eq!(held(&["AlwaysDeny"], &alice), (0, false, vec![]));
    assert_eq!(held(&["Node", "RBAC"], &alice), (1, false, vec![]));
    let node = User::new("system:node:n", ["system:nodes"]);
    let why = "node authorizer does not support user rule resolution".to_owned();
    assert_eq!(held(&["Node", "RBAC"], &node), (0, true, vec![why]));
}

#[test]
fn flags_that_make_no_sense_are_refused_in_the_words_of_kube_apiserver() {
    let refused = |names: &[&str], policies| modes(names, policies).unwrap_err();
    assert_eq!(refused(&[], None), "at least one authorization-mode must be passed");
    assert_eq!(refused(&["RBAC", "rbac"], None), "authorization-mode \"rbac\" is not a valid mode");
    assert_eq!(
        refused(&["RBAC", "Node", "RBAC"], None),
        "authorization-mode [\"RBAC\" \"Node\" \"RBAC\"] has mode specified more than once"
    );
    assert_eq!(refused(&["ABAC"], None), "authorization-mode ABAC's authorization policy file not passed");
    assert_eq!(
        refused(&["Webhook"], None),
        "authorization-mode Webhook's authorization config file not passed"
    );
    assert_eq!(
        refused(&["RBAC"], Some(Policies::default())),
        "cannot specify --authorization-policy-file without mode ABAC"
    );
    assert!(modes(&["Node", "RBAC", "ABAC"], Some(Policies::default())).is_ok());
}
