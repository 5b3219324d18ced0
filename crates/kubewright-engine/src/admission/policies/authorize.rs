//! Whoever makes a policy or a binding must be able to read what it takes its parameters from
//! (`k8s.io/kubernetes/pkg/registry/admissionregistration/*/authz.go`).

use kubewright_identity::authn::{SYSTEM_MASTERS, User};
use kubewright_identity::authz::Attributes;
use kubewright_kinds::built_in::admissionregistration::mutating_admission_policy::MUTATING_ADMISSION_POLICY;
use kubewright_kinds::built_in::admissionregistration::validating_admission_policy::VALIDATING_ADMISSION_POLICY;
use kubewright_kinds::{BuiltIn, Role, encode};
use kubewright_meta::{ApiError, FieldError};
use serde_json::Value;

use super::super::{Operation, Review};
use super::params::ParamKind;

/// Checks the parameters of a policy or binding that is written.
///
/// # Errors
/// 422 when the user may not read them.
pub(crate) fn authorize(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let kind = review.call.kind;
    if !review.subresource.is_empty()
        || review.operation == Operation::Delete
        || review.call.user.is_in(SYSTEM_MASTERS)
    {
        return Ok(());
    }
    let (field, outcome) = match kind.behaviour.role {
        Role::ValidatingPolicy | Role::MutatingPolicy => ("paramKind", of_policy(review, object)),
        Role::ValidatingPolicyBinding => {
            ("paramRef", of_binding(review, object, &VALIDATING_ADMISSION_POLICY))
        }
        Role::MutatingPolicyBinding => ("paramRef", of_binding(review, object, &MUTATING_ADMISSION_POLICY)),
        _ => return Ok(()),
    };
    outcome.map_err(|why| {
        let error = FieldError::forbidden(format!("spec.{field}"), why);
        ApiError::invalid(kind, kubewright_meta::object::name(object), &[error])
    })
}

/// A policy's author can read every object of its `paramKind`.
fn of_policy(review: &Review<'_>, object: &Value) -> Result<(), String> {
    let given = &object["spec"]["paramKind"];
    let unchanged = review.old.is_some_and(|old| old["spec"].get("paramKind") == Some(given));
    let Some(kind) = ParamKind::read(given).filter(|_| !unchanged) else { return Ok(()) };
    let (group, version, resource) = kind.resource(review);
    let what = Attributes {
        verb: "get",
        group: &group,
        version: &version,
        resource: &resource,
        namespace: "*",
        name: "*",
        ..Attributes::default()
    };
    if allowed(review, &what) {
        return Ok(());
    }
    Err(format!(
        "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
        printed(review.call.user),
        given["kind"].as_str().unwrap_or_default(),
        given["apiVersion"].as_str().unwrap_or_default()
    ))
}

/// A binding's author can read the objects that it names.
fn of_binding(review: &Review<'_>, object: &Value, policies: &BuiltIn) -> Result<(), String> {
    let spec = &object["spec"];
    let Some(reference) = spec.get("paramRef").filter(|reference| !reference.is_null()) else {
        return Ok(());
    };
    let same = |old: &Value| {
        old["spec"].get("paramRef") == Some(reference) && old["spec"]["policyName"] == spec["policyName"]
    };
    if review.old.is_some_and(same) {
        return Ok(());
    }
    let policy_name = spec["policyName"].as_str().unwrap_or_default();
    let policy = policy(review, policies, policy_name);
    let kind = policy.as_ref().and_then(|policy| ParamKind::read(&policy["spec"]["paramKind"]));
    let (group, version, resource) = match &kind {
        Some(kind) => kind.resource(review),
        None => ("*".to_owned(), "*".to_owned(), "*".to_owned()),
    };
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let verb = if text("name").is_empty() { "list" } else { "get" };
    let what = Attributes {
        verb,
        group: &group,
        version: &version,
        resource: &resource,
        namespace: text("namespace"),
        name: text("name"),
        ..Attributes::default()
    };
    if allowed(review, &what) {
        return Ok(());
    }
    let user = printed(review.call.user);
    Err(match (policy, kind) {
        (None, _) => format!(
            "unable to get policy {policy_name} to determine minimum required permissions and user {user} does not have {verb:?} permission for all groups, versions and resources"
        ),
        (Some(policy), Some(_)) if resource == "*" => format!(
            "unable to resolve paramKind {} to determine minimum required permissions and user {user} does not have {verb:?} permission for all groups, versions and resources",
            policy["spec"]["paramKind"]
        ),
        _ => format!("user {user} does not have {verb:?} permission on the object referenced by paramRef"),
    })
}

fn policy(review: &Review<'_>, policies: &BuiltIn, name: &str) -> Option<Value> {
    let kinds = review.objects.kinds();
    let kind = kinds.find(policies)?;
    let entry = review.objects.snapshot().get(&kind.collection, name).cloned()?;
    Some(encode::value(kind, &entry))
}

fn allowed(review: &Review<'_>, what: &Attributes<'_>) -> bool {
    review.objects.rights().authorize(review.call.user, what).allowed()
}

/// A user as Go prints it.
fn printed(user: &User) -> String {
    let extra: Vec<String> =
        user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, user.groups.join(" "), extra.join(" "))
}
