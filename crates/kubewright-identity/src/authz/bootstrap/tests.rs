use std::collections::BTreeSet;

use super::*;
use crate::authn::User;
use crate::authz::{Attributes, Rbac};

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let same = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects.iter().find(same).unwrap_or_else(|| panic!("no {kind} {name}"))
}

#[test]
fn every_object_is_marked_as_a_default_that_may_be_updated() {
    for object in objects(Version::DEFAULT) {
        assert_eq!(object["metadata"]["labels"]["kubernetes.io/bootstrapping"], "rbac-defaults", "{object}");
        assert_eq!(object["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"], "true");
    }
}

#[test]
fn every_line_of_the_tables_is_an_object() {
    for version in Version::ALL {
        for line in version.tables().roles.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.splitn(3, ' ');
            let (resource, name, content) = (words.next(), words.next(), words.next());
            assert!(KINDS.iter().any(|(known, _)| Some(*known) == resource) && name.is_some(), "{line}");
            assert!(
                serde_json::from_str::<Value>(content.unwrap_or_default()).is_ok_and(|one| one.is_object()),
                "{line}"
            );
        }
    }
}

#[test]
fn no_name_is_taken_twice_and_every_binding_names_a_role_that_is_there() {
    let all = objects(Version::DEFAULT);
    let identity = |object: &Value| {
        let metadata = &object["metadata"];
        (object["kind"].to_string(), metadata["namespace"].to_string(), metadata["name"].to_string())
    };
    let identities: BTreeSet<_> = all.iter().map(identity).collect();
    assert_eq!(identities.len(), all.len());
    for binding in all.iter().filter(|object| !object["roleRef"].is_null()) {
        let role = &binding["roleRef"];
        let namespace = if role["kind"] == "Role" { &binding["metadata"]["namespace"] } else { &Value::Null };
        let wanted = (role["kind"].to_string(), namespace.to_string(), role["name"].to_string());
        assert!(identities.contains(&wanted), "{binding}");
    }
}

#[test]
fn the_aggregated_roles_are_born_with_their_rules() {
    let all = objects(Version::DEFAULT);
    let sizes = ["view", "edit", "admin"]
        .map(|name| find(&all, "ClusterRole", name)["rules"].as_array().unwrap().len());
    assert_eq!(sizes, [12, 27, 29]);
    for name in ["view", "edit", "admin"] {
        let role = find(&all, "ClusterRole", name);
        assert_eq!(json!(aggregate(role, &all).unwrap()), role["rules"], "{name}");
    }
}

#[test]
fn who_may_do_what_on_a_new_cluster() {
    let rbac = Rbac::of_objects(&objects(Version::DEFAULT));
    let may = |user: &User, verb: &str, group: &str, resource: &str| {
        rbac.authorize(user, &Attributes { verb, group, resource, ..Attributes::default() }).allowed()
    };
    let may_path = |user: &User, path: &str| {
        rbac.authorize(user, &Attributes { verb: "get", path: Some(path), ..Attributes::default() }).allowed()
    };
    let alice = User::new("alice", ["system:authenticated"]);
    assert!(may(&alice, "create", "authorization.k8s.io", "selfsubjectaccessreviews"));
    assert!(!may(&alice, "create", "authorization.k8s.io", "subjectaccessreviews"));
    assert!(!may(&alice, "list", "", "pods"));
    assert!(may_path(&alice, "/apis/apps/v1"));
    assert!(!may_path(&alice, "/metrics"));

    let nobody = User::anonymous();
    assert!(may_path(&nobody, "/version"));
    assert!(!may_path(&nobody, "/api"));

    let collector = User::service_account("kube-system", "generic-garbage-collector", "");
    assert!(may(&collector, "delete", "example.com", "anything"));
    let deployments = User::service_account("kube-system", "deployment-controller", "");
    assert!(may(&deployments, "create", "apps", "replicasets"));
    assert!(!may(&deployments, "create", "apps", "deployments"));
}
