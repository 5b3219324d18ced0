//! What keeps RBAC from being used against itself: nobody grants what they do not hold
//! (`k8s.io/kubernetes/pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased` and
//! `pkg/registry/rbac/validation`).

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use kubewright_meta::{ApiError, object};
use serde::Deserialize;
use serde_json::Value;

use super::objects::{Binding, GROUP, Role};
use super::rbac::{MissingRole, aggregate};
use super::rule::{Rule, quoted_list};
use super::{Attributes, Rights};
use crate::authn::{SYSTEM_MASTERS, User};

/// More single rights than this in one object are refused unseen (a rule multiplies its lists, so a body of a megabyte
/// can name 10^20 of them). Kubernetes has no such limit.
const MAX_ATOMS: usize = 20_000;

/// Whether [`check`] has anything to ask: objects of other groups pass, and so do members of `system:masters`.
#[must_use]
pub fn is_limited(user: &User, group: &str) -> bool {
    group == GROUP && !user.is_in(SYSTEM_MASTERS)
}

/// May `user` write this object of an RBAC kind? `request` says what the write is: the plural of its kind, its namespace
/// and the name in its URL (none for a create). `old` is what an update replaces. Objects of other kinds pass.
///
/// Members of `system:masters` may. A role passes when the user holds all its rules, or the verb `escalate` on it; a
/// binding when the user holds all rules of the role that it names, or the verb `bind` on that role; an aggregated
/// cluster role needs all rights there are.
///
/// # Errors
/// 403 with the rights that are missing; 404 when the role that a binding names is not there; 400 when the object cannot
/// be read as its kind.
pub fn check(
    rights: &Rights,
    user: &User,
    request: &Attributes<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    if !is_limited(user, request.group) {
        return Ok(());
    }
    if old.is_some_and(|old| only_lets_collect(object, old)) {
        return Ok(());
    }
    match request.resource {
        "roles" | "clusterroles" => check_role(rights, user, request, object, old),
        "rolebindings" | "clusterrolebindings" => check_binding(rights, user, request, object),
        _ => Ok(()),
    }
}

fn check_role(
    rights: &Rights,
    user: &User,
    request: &Attributes<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let escalate = Attributes { verb: "escalate", version: "*", subresource: "", ..*request };
    if rights.authorize(user, &escalate).allowed() {
        return Ok(());
    }
    let role: Role = decode(object)?;
    confirm(rights, user, request, &role.metadata.name, &role.rules)?;
    let aggregates = |role: &Value| role.get("aggregationRule").is_some_and(|rule| !rule.is_null());
    if request.resource == "clusterroles" && (aggregates(object) || old.is_some_and(aggregates)) {
        let (held, _) = rights.rbac().rules_for(user, request.namespace);
        if !missing(&held, &Rule::everything()).is_empty() {
            let why = "must have cluster-admin privileges to use aggregationRule";
            return Err(ApiError::forbidden(GROUP, request.resource, &role.metadata.name, why));
        }
    }
    Ok(())
}

fn check_binding(
    rights: &Rights,
    user: &User,
    request: &Attributes<'_>,
    object: &Value,
) -> Result<(), ApiError> {
    let binding: Binding = decode(object)?;
    let role = &binding.role_ref;
    let resource = match role.kind.as_str() {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        kind => {
            let why = format!("unsupported role reference kind: {kind:?}");
            return Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why));
        }
    };
    let bind = Attributes {
        verb: "bind",
        group: &role.api_group,
        version: "*",
        resource,
        name: &role.name,
        namespace: request.namespace,
        ..Attributes::default()
    };
    if rights.authorize(user, &bind).allowed() {
        return Ok(());
    }
    match rights.rbac().rules_of(role, request.namespace) {
        Ok(rules) => confirm(rights, user, request, &binding.metadata.name, rules),
        // It is looked for by the storage of roles, which takes what is asked for to be the resource of the request.
        Err(_) => {
            object::check_key(&role.name)?;
            Err(ApiError::not_found_in(GROUP, request.resource, &role.name))
        }
    }
}

/// The user must hold all of these rules where the request is about.
fn confirm(
    rights: &Rights,
    user: &User,
    request: &Attributes<'_>,
    name: &str,
    wanted: &[Rule],
) -> Result<(), ApiError> {
    let (held, unresolved) = rights.rbac().rules_for(user, request.namespace);
    let unheld: Vec<&Rule> = wanted.iter().filter(|rule| !held.iter().any(|own| own.covers(rule))).collect();
    let atoms = unheld.iter().fold(0_usize, |sum, rule| sum.saturating_add(rule.atom_count()));
    if atoms > MAX_ATOMS {
        let why =
            format!("the rules name {atoms} single rights, more than the {MAX_ATOMS} that can be checked");
        return Err(ApiError::forbidden(GROUP, request.resource, name, &why));
    }
    let missing = missing(&held, unheld);
    if missing.is_empty() {
        return Ok(());
    }
    Err(ApiError::forbidden(GROUP, request.resource, name, &describe(user, missing, &unresolved)))
}

/// The single rights that none of the held rules covers.
fn missing<'a>(held: &[&Rule], wanted: impl IntoIterator<Item = &'a Rule>) -> Vec<Rule> {
    wanted.into_iter().flat_map(Rule::atoms).filter(|atom| !held.iter().any(|own| own.covers(atom))).collect()
}

fn describe(user: &User, missing: Vec<Rule>, unresolved: &[&MissingRole]) -> String {
    let lines: BTreeSet<String> = compact(missing).iter().map(Rule::compact).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    let mut why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted_list(&user.groups),
        lines.join("\n")
    );
    if !unresolved.is_empty() {
        let unresolved = unresolved.iter().map(|role| role.describe("s")).collect();
        why.push_str(&format!("; resolution errors: [{}]", aggregate(unresolved)));
    }
    why
}

/// Joins rights that differ only in their verbs.
fn compact(atoms: Vec<Rule>) -> Vec<Rule> {
    let mut joined: BTreeMap<[Vec<String>; 3], usize> = BTreeMap::new();
    let mut rules: Vec<Rule> = Vec::new();
    for atom in atoms {
        if !atom.non_resource_urls.is_empty() {
            rules.push(atom);
            continue;
        }
        let key = [atom.api_groups.clone(), atom.resources.clone(), atom.resource_names.clone()];
        match joined.get(&key) {
            Some(&index) => rules[index].verbs.extend(atom.verbs),
            None => {
                joined.insert(key, rules.len());
                rules.push(atom);
            }
        }
    }
    rules
}

/// Whether a change does no more than to let an object be collected, which is no grant (`pkg/registry/rbac/helpers.go`,
/// `IsOnlyMutatingGCFields`).
#[must_use]
pub fn only_lets_collect(object: &Value, old: &Value) -> bool {
    let without = |value: &Value| {
        let mut value = value.clone();
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
                metadata.remove(field);
            }
        }
        value
    };
    without(object) == without(old)
}

fn decode<T: for<'de> Deserialize<'de>>(object: &Value) -> Result<T, ApiError> {
    T::deserialize(object).map_err(|error| ApiError::bad_request(error.to_string()))
}

#[cfg(test)]
mod tests;
