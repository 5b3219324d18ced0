//! OwnerReferencesPermissionEnforcement: who makes an object go or stay with another one must have a say in that
//! (`k8s.io/kubernetes/plugin/pkg/admission/gc`).

use std::collections::BTreeMap;

use kubewright_identity::authz::{Attributes, Decision, Rights};
use kubewright_kinds::Role;
use kubewright_meta::ApiError;
use serde_json::Value;

use super::refusal::forbidden;
use super::{Operation, Review};

/// # Errors
/// 403: new owners on an object that the user may not delete, or an owner that is held, and whose finalizers the user may
/// not set.
pub(super) fn validate(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let call = review.call;
    // A pod takes nothing from a status but the status.
    if (call.kind.behaviour.role == Role::Pod && review.subresource == "status")
        || !matches!(review.operation, Operation::Create | Operation::Update)
    {
        return Ok(());
    }
    let (new, old) = (references(object), review.old.map(references).unwrap_or_default());
    if new == old {
        return Ok(());
    }
    let rights = review.registry.authorizer().rights(&review.registry.snapshot());
    if review.operation == Operation::Update {
        let what = Attributes {
            verb: "delete",
            group: &call.kind.group,
            version: &call.kind.version,
            resource: &call.kind.plural,
            subresource: review.subresource,
            namespace: call.namespace,
            name: call.name,
            ..Attributes::default()
        };
        let decision = rights.authorize(call.user, &what);
        if !decision.allowed() {
            let why = format!("cannot set an ownerRef on a resource you can't delete: {}", told(&decision));
            return Err(forbidden(review, object, &why));
        }
    }
    let held = newly_held(new, old);
    if held.is_empty() || rights.authorize(call.user, &ANYTHING).allowed() {
        return Ok(());
    }
    held.into_iter().try_for_each(|reference| may_hold(&rights, review, object, reference))
}

/// The finalizers of anything.
const ANYTHING: Attributes<'_> = Attributes {
    verb: "update",
    group: "*",
    version: "*",
    resource: "*",
    subresource: "finalizers",
    namespace: "",
    name: "*",
    path: None,
    field_selector: "",
    label_selector: "",
};

fn references(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// The references that hold their owner and did not before.
fn newly_held<'a>(new: &'a [Value], old: &'a [Value]) -> Vec<&'a Value> {
    let holds = |reference: &Value| reference["blockOwnerDeletion"] == true;
    let before: BTreeMap<&str, bool> = old
        .iter()
        .map(|reference| (reference["uid"].as_str().unwrap_or_default(), holds(reference)))
        .collect();
    let held_before =
        |reference: &Value| before.get(reference["uid"].as_str().unwrap_or_default()) == Some(&true);
    new.iter().filter(|reference| holds(reference) && !held_before(reference)).collect()
}

/// The user must be able to set the finalizers of the owner.
fn may_hold(rights: &Rights, review: &Review<'_>, object: &Value, reference: &Value) -> Result<(), ApiError> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let kinds = review.registry.kinds();
    let owners: Vec<_> = kinds.in_version(group, version).filter(|kind| kind.kind == text("kind")).collect();
    if owners.is_empty() {
        let why = format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {} Kind {}: no matches for kind {:?} in version {:?}",
            text("apiVersion"),
            text("kind"),
            text("kind"),
            text("apiVersion")
        );
        return Err(forbidden(review, object, &why));
    }
    for owner in owners {
        let what = Attributes {
            group,
            version,
            resource: &owner.plural,
            namespace: if owner.namespaced() { review.call.namespace } else { "" },
            name: text("name"),
            ..ANYTHING
        };
        let decision = rights.authorize(review.call.user, &what);
        if !decision.allowed() {
            let why = format!(
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {}",
                told(&decision)
            );
            return Err(forbidden(review, object, &why));
        }
    }
    Ok(())
}

/// The reason of a decision and what went wrong, as Go prints them.
fn told(decision: &Decision) -> String {
    format!("{}, {}", decision.reason, decision.error.as_deref().unwrap_or("<nil>"))
}
