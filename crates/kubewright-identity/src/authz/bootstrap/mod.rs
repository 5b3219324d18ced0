//! The RBAC objects that every cluster is born with, as those of its version of Kubernetes
//! (`k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy`): the table of that version, made into objects at start.

mod reconcile;

use kubewright_spec::Version;
use serde_json::{Value, json};

use super::aggregation::aggregate;
use super::objects::{GROUP, Role};
use super::rule::Rule;

pub use reconcile::{Reconciliation, reconcile};

/// What the objects of a resource are called, in the order in which they are made.
const KINDS: [(&str, &str); 4] = [
    ("clusterroles", "ClusterRole"),
    ("clusterrolebindings", "ClusterRoleBinding"),
    ("roles", "Role"),
    ("rolebindings", "RoleBinding"),
];

/// All of them in a version of Kubernetes: cluster roles (the aggregated ones with their rules), cluster role bindings, roles and role bindings.
/// Without uid, timestamps and the like, which the registry gives.
#[must_use]
pub fn objects(version: Version) -> Vec<Value> {
    let of_kind =
        |(resource, kind)| lines(version, resource).map(move |(name, content)| object(kind, name, content));
    let mut all: Vec<Value> = KINDS.into_iter().flat_map(of_kind).collect();
    // The table is of a server alone: what a controller would add to these roles is not in it. One may be a part of another.
    while let Some((index, rules)) = first_incomplete(&all) {
        all[index]["rules"] = rules;
    }
    all
}

/// A role whose rules are not yet those of its parts, and these.
fn first_incomplete(all: &[Value]) -> Option<(usize, Value)> {
    all.iter().enumerate().find_map(|(index, role)| {
        let rules = json!(aggregate(role, all)?);
        (rules != role["rules"]).then_some((index, rules))
    })
}

/// The rules of a cluster role that is not aggregated; none for a name that is not there.
pub(super) fn rules_of_cluster_role(name: &str) -> Vec<Rule> {
    let found = lines(Version::DEFAULT, "clusterroles").find(|(role, _)| *role == name);
    found
        .and_then(|(_, content)| serde_json::from_str::<Role>(content).ok())
        .map(|role| role.rules)
        .unwrap_or_default()
}

/// The names and contents of the objects of a resource. Of those in a namespace the name is `namespace/name`.
fn lines(version: Version, resource: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = version.tables().roles.lines();
    lines.filter_map(move |line| line.strip_prefix(resource)?.strip_prefix(' ')?.split_once(' '))
}

fn object(kind: &str, place: &str, content: &str) -> Value {
    let mut content: Value = serde_json::from_str(content).unwrap_or_default();
    let mut object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind});
    let metadata = &mut object["metadata"];
    let name = match place.split_once('/') {
        Some((namespace, name)) => {
            metadata["namespace"] = namespace.into();
            name
        }
        None => place,
    };
    metadata["name"] = name.into();
    for part in ["annotations", "labels"] {
        if let Some(value) = content.as_object_mut().and_then(|content| content.remove(part)) {
            metadata[part] = value;
        }
    }
    if let (Some(object), Value::Object(content)) = (object.as_object_mut(), content) {
        object.extend(content);
    }
    object
}

#[cfg(test)]
mod tests;
