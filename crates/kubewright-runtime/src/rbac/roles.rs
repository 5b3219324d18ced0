//! Used rights as roles.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::DynamicObject;
use serde_json::json;

use super::{Right, Verb, rights::rules};
use crate::Error;

/// Verbs by group and resource.
type Grants<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<Verb>>;

/// The least roles that grant these rights.
pub(super) fn of(used: &[Right], name: &str, home: &str) -> Vec<DynamicObject> {
    let is_everywhere = looks_everywhere(used);
    let (mut cluster, mut inside): (Grants<'_>, BTreeMap<&str, Grants<'_>>) = Default::default();
    for right in used {
        let what = (right.group.as_str(), right.resource.as_str());
        let grants = match right.namespace.as_deref() {
            Some(namespace) if !is_everywhere || namespace == home => inside.entry(namespace).or_default(),
            _ => &mut cluster,
        };
        grants.entry(what).or_default().insert(right.verb);
    }
    let granted = cluster.clone();
    let mut roles: Vec<_> = role("ClusterRole", name, None, &cluster).into_iter().collect();
    for (namespace, mut grants) in inside {
        for (what, verbs) in &mut grants {
            verbs.retain(|verb| granted.get(what).is_none_or(|have| !have.contains(verb)));
        }
        roles.extend(role("Role", name, Some(namespace), &grants));
    }
    roles
}

/// Whether objects of a kind are looked at in all namespaces: those of a kind that is asked for in a namespace too, as who
/// asks cluster-wide may ask about a kind that lives in none.
fn looks_everywhere(used: &[Right]) -> bool {
    let plural = |right: &Right| right.resource.split('/').next().unwrap_or_default().to_owned();
    used.iter().filter(|right| right.namespace.is_none()).any(|right| {
        matches!(right.verb, Verb::List | Verb::Watch)
            && used.iter().any(|other| {
                other.namespace.is_some() && other.group == right.group && plural(other) == plural(right)
            })
    })
}

fn role(kind: &str, name: &str, namespace: Option<&str>, grants: &Grants<'_>) -> Option<DynamicObject> {
    let grants = grants.iter().map(|((group, resource), verbs)| (*group, *resource, None, verbs.clone()));
    let rules: Vec<PolicyRule> = rules(grants);
    if rules.is_empty() {
        return None;
    }
    let mut role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": rules,
    });
    if let Some(namespace) = namespace {
        role["metadata"]["namespace"] = namespace.into();
    }
    // It is one: it has a kind and metadata.
    kubewright_objects::from_value(role).ok()
}

/// Documents of YAML, one after the other.
pub(crate) fn yaml(objects: &[DynamicObject]) -> Result<String, Error> {
    let mut text = String::new();
    for object in objects {
        let document = serde_saphyr::to_string(object).map_err(Error::new)?;
        text += "---\n";
        text += document.trim_end();
        text += "\n";
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(namespace: &str, resource: &str, verb: Verb) -> Right {
        let (group, resource) = resource.split_once(':').unwrap_or(("", resource));
        let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        Right { group: group.into(), resource: resource.into(), verb, namespace, name: None }
    }

    /// Each role with its rules.
    fn described(roles: &[DynamicObject]) -> Vec<String> {
        let words = |list: &serde_json::Value| -> String {
            let words: Vec<_> =
                list.as_array().into_iter().flatten().filter_map(|word| word.as_str()).collect();
            words.join(",")
        };
        let describe = |role: &DynamicObject| {
            let rules = role.data["rules"].as_array().cloned().unwrap_or_default();
            let rules: Vec<String> = rules
                .iter()
                .map(|rule| format!("{} {}", words(&rule["resources"]), words(&rule["verbs"])))
                .collect();
            let kind = role.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
            let namespace =
                role.metadata.namespace.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
            format!("{kind}{namespace}: {}", rules.join(", "))
        };
        roles.iter().map(describe).collect()
    }

    #[test]
    fn who_looks_at_two_namespaces_gets_a_role_in_each() {
        let used = [
            right("", "nodes", Verb::List),
            right("a", "pods", Verb::List),
            right("b", "pods", Verb::List),
            right("b", "pods", Verb::Watch),
        ];
        assert_eq!(
            described(&of(&used, "web", "home")),
            ["ClusterRole: nodes list", "Role a: pods list", "Role b: pods list,watch"]
        );
    }

    #[test]
    fn roles_print_as_documents_that_can_be_applied() {
        let text = yaml(&of(&[right("a", "pods", Verb::Get)], "web", "home")).expect("YAML");
        let start = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: web\n  namespace: a\nrules:\n";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn who_looks_everywhere_works_everywhere_but_at_home() {
        let used = [
            right("", "e.com:widgets", Verb::Watch),
            right("a", "e.com:widgets/status", Verb::Patch),
            right("a", "configmaps", Verb::Create),
            right("home", "configmaps", Verb::Create),
            right("home", "coordination.k8s.io:leases", Verb::Get),
        ];
        assert_eq!(
            described(&of(&used, "web", "home")),
            ["ClusterRole: configmaps create, widgets watch, widgets/status patch", "Role home: leases get",]
        );
    }
}
