//! The RBAC objects that every cluster is born with, as those of Kubernetes v1.36
//! (`k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy`): tables of names and rules, made into objects
//! at start.

mod bindings;
mod components;
mod controllers;
mod users;

use serde_json::{Value, json};

use super::aggregation::aggregate;
use super::objects::GROUP;
use super::rule::Rule;

/// A role in a table: its name and its rules.
type RoleFacts = (&'static str, &'static [RuleFacts]);

/// A rule in a table: words between spaces; the core group is the word `core`.
#[derive(Clone, Copy)]
struct RuleFacts {
    verbs: &'static str,
    groups: &'static str,
    resources: &'static str,
    names: &'static str,
    paths: &'static str,
}

/// Verbs on resources.
const fn on(verbs: &'static str, groups: &'static str, resources: &'static str) -> RuleFacts {
    RuleFacts { verbs, groups, resources, names: "", paths: "" }
}

/// Verbs on objects with these names.
const fn named(
    verbs: &'static str,
    groups: &'static str,
    resources: &'static str,
    names: &'static str,
) -> RuleFacts {
    RuleFacts { verbs, groups, resources, names, paths: "" }
}

/// Verbs on paths outside the API.
const fn at(verbs: &'static str, paths: &'static str) -> RuleFacts {
    RuleFacts { verbs, groups: "", resources: "", names: "", paths }
}

/// What everything that reports events needs.
const EVENTS: RuleFacts = on("create patch update", "core events.k8s.io", "events");

/// The aggregated roles, each after what it is made of: the name, the label that parts carry, and the label that makes it
/// a part itself.
const AGGREGATED: [(&str, &str, Option<&str>); 3] = [
    (
        "view",
        "rbac.authorization.k8s.io/aggregate-to-view",
        Some("rbac.authorization.k8s.io/aggregate-to-edit"),
    ),
    (
        "edit",
        "rbac.authorization.k8s.io/aggregate-to-edit",
        Some("rbac.authorization.k8s.io/aggregate-to-admin"),
    ),
    ("admin", "rbac.authorization.k8s.io/aggregate-to-admin", None),
];

/// The prefix of the names of the parts that `view`, `edit` and `admin` are made of.
const PART_PREFIX: &str = "system:aggregate-to-";

/// All of them: cluster roles (the aggregated ones with their rules), cluster role bindings, roles and role bindings.
/// Without uid, timestamps and the like, which the registry gives.
#[must_use]
pub fn objects() -> Vec<Value> {
    let mut all = cluster_roles();
    all.extend(bindings::cluster_role_bindings());
    all.extend(bindings::roles());
    all.extend(bindings::role_bindings());
    all
}

/// The rules of a component's cluster role; none for a name that is not there.
pub(super) fn rules_of_cluster_role(name: &str) -> Vec<Rule> {
    let found = components::COMPONENTS.iter().find(|(role, _)| *role == name);
    found.map(|(_, facts)| facts.iter().map(RuleFacts::rule).collect()).unwrap_or_default()
}

fn cluster_roles() -> Vec<Value> {
    let named = |name: &str, facts: &[RuleFacts]| {
        let mut role = object("ClusterRole", name, "");
        role["rules"] = json!(facts.iter().map(RuleFacts::rule).collect::<Vec<_>>());
        if let Some(target) = name.strip_prefix(PART_PREFIX) {
            role["metadata"]["labels"][format!("rbac.authorization.k8s.io/aggregate-to-{target}")] =
                "true".into();
        }
        role
    };
    let tables = users::USERS.iter().chain(components::COMPONENTS);
    let mut roles: Vec<Value> = tables.map(|(name, facts)| named(name, facts)).collect();
    roles.extend(
        controllers::CONTROLLERS
            .iter()
            .map(|(name, facts)| named(&format!("system:controller:{name}"), facts)),
    );
    for (name, parts, part_of) in AGGREGATED {
        let mut role = object("ClusterRole", name, "");
        role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {parts: "true"}}]});
        if let Some(label) = part_of {
            role["metadata"]["labels"][label] = "true".into();
        }
        role["rules"] = json!(aggregate(&role, &roles).unwrap_or_default());
        roles.push(role);
    }
    roles
}

/// A bootstrap object without its content.
fn object(kind: &str, name: &str, namespace: &str) -> Value {
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

impl RuleFacts {
    fn rule(&self) -> Rule {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let group = |word: &str| if word == "core" { String::new() } else { word.to_owned() };
        Rule {
            verbs: words(self.verbs),
            api_groups: self.groups.split_whitespace().map(group).collect(),
            resources: words(self.resources),
            resource_names: words(self.names),
            non_resource_urls: words(self.paths),
        }
    }
}

#[cfg(test)]
mod tests;
