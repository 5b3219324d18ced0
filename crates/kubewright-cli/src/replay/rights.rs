//! The rights of the program that is replayed.

use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::{
    access::{self, Objects, Others},
    stand::{Stand, sources},
};

/// The objects that give an account its rights: those of these files, or all rights where none is named.
///
/// # Errors
/// When a file cannot be read, or has no role.
pub(super) fn rights(files: &[PathBuf], account: &(String, String)) -> anyhow::Result<Vec<Value>> {
    if files.is_empty() {
        return Ok(vec![binding("all", None, "ClusterRole", "cluster-admin", account)]);
    }
    let objects = sources::read(files, None).context("--with-rights")?;
    let objects: Vec<Value> = objects.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    let given = of_objects(&objects, account);
    if given.is_empty() {
        bail!("--with-rights: there is no Role and no ClusterRole in these files");
    }
    Ok(given)
}

/// Has an account be there with these rights.
///
/// # Errors
/// When the control plane refuses something.
pub(super) async fn grant(stand: &Stand, account: &(String, String), rights: &[Value]) -> anyhow::Result<()> {
    let (namespace, name) = account;
    let mut objects = Objects::new(&stand.access.client);
    let first = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}),
    ];
    for object in first.iter().chain(rights) {
        objects.apply(&access::object(object.clone())?, Others::TakenOver).await?;
    }
    Ok(())
}

/// The roles among objects under names of their own, bound to the account as the bindings among them bind them; a role without a
/// binding is bound as far as it can be.
fn of_objects(objects: &[Value], account: &(String, String)) -> Vec<Value> {
    let of_kind = |kind: &'static str| objects.iter().filter(move |one| one["kind"] == kind);
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let place = |object: &Value| object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    let mut given = Vec::new();
    for role in of_kind("ClusterRole").chain(of_kind("Role")) {
        let kind = role["kind"].as_str().unwrap_or_default();
        let is_of_cluster = kind == "ClusterRole";
        let own = format!("replay-{}", name(role));
        let mut copy = json!({"apiVersion": role["apiVersion"], "kind": kind, "metadata": {"name": own}, "rules": role["rules"]});
        if !is_of_cluster {
            copy["metadata"]["namespace"] = place(role).into();
        }
        given.push(copy);
        let binds = |binding: &&Value| {
            binding["roleRef"]["kind"] == kind
                && binding["roleRef"]["name"] == name(role)
                && (is_of_cluster || place(binding) == place(role))
        };
        let mut places: Vec<Option<String>> =
            of_kind("ClusterRoleBinding").filter(binds).map(|_| None).collect();
        places.extend(of_kind("RoleBinding").filter(binds).map(|binding| Some(place(binding))));
        if places.is_empty() {
            places.push((!is_of_cluster).then(|| place(role)));
        }
        places.dedup();
        given.extend(places.into_iter().map(|place| binding(&name(role), place, kind, &own, account)));
    }
    given
}

fn binding(
    name: &str,
    place: Option<String>,
    role_kind: &str,
    role: &str,
    (namespace, account): &(String, String),
) -> Value {
    let kind = if place.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
    let mut binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": {"name": format!("replay-{name}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    });
    if let Some(place) = place {
        binding["metadata"]["namespace"] = place.into();
    }
    binding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_bound_as_their_bindings_say_and_else_as_far_as_they_go() {
        let role = |kind: &str, name: &str| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": "shop"}, "rules": []})
        };
        let bound = json!({"kind": "RoleBinding", "metadata": {"name": "b", "namespace": "shop"},
            "roleRef": {"kind": "ClusterRole", "name": "narrow"}});
        let objects =
            [role("ClusterRole", "narrow"), role("ClusterRole", "wide"), role("Role", "local"), bound];
        let account = ("shop".to_owned(), "press-replay".to_owned());
        let given = of_objects(&objects, &account);
        let bindings: Vec<(&str, &str, &str)> = given
            .iter()
            .filter(|one| one["kind"].as_str().is_some_and(|kind| kind.ends_with("Binding")))
            .map(|one| {
                let text = |pointer: &str| one.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
                (text("/kind"), text("/roleRef/name"), text("/metadata/namespace"))
            })
            .collect();
        let wanted = [
            ("RoleBinding", "replay-narrow", "shop"),
            ("ClusterRoleBinding", "replay-wide", ""),
            ("RoleBinding", "replay-local", "shop"),
        ];
        assert_eq!(bindings, wanted);
    }
}
