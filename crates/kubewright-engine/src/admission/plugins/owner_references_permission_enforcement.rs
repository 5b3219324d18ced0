//! OwnerReferencesPermissionEnforcement: who makes an object go or stay with another one must have a say in that
//! (`k8s.io/kubernetes/plugin/pkg/admission/gc`).

use std::collections::BTreeMap;

use kubewright_identity::authz::{Attributes, Decision, Rights};
use kubewright_meta::ApiError;
use serde_json::Value;

use super::refusal::forbidden;
use super::{AdmissionPlugin, Operation, Plugin, Review};

/// Refuses owners that the writer has no say in.
pub(super) struct OwnerReferencesPermissionEnforcement;

impl AdmissionPlugin for OwnerReferencesPermissionEnforcement {
    fn name(&self) -> Plugin {
        Plugin::OwnerReferencesPermissionEnforcement
    }

    /// A pod takes nothing from a status but the status.
    fn handles(&self, review: &Review<'_>) -> bool {
        review.is_write() && !(review.is_of_pod() && review.subresource == "status")
    }

    fn validate(&self, review: &Review<'_>, object: &Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        validate(review, object)
    }
}

/// # Errors
/// 403: new owners on an object that the user may not delete, or an owner that is held, and whose finalizers the user may
/// not set.
fn validate(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let call = review.call;
    let (new, old) = (references(object), review.old.map(references).unwrap_or_default());
    if new == old {
        return Ok(());
    }
    let rights = review.objects.rights();
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
            let why =
                format!("cannot set an ownerRef on a resource you can't delete: {}", describe(&decision));
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
    let kinds = review.objects.kinds();
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
                describe(&decision)
            );
            return Err(forbidden(review, object, &why));
        }
    }
    Ok(())
}

/// The reason of a decision and what went wrong, as Go prints them.
fn describe(decision: &Decision) -> String {
    format!("{}, {}", decision.reason, decision.error.as_deref().unwrap_or("<nil>"))
}

#[cfg(test)]
mod tests {
    use kubewright_kinds::built_in::core::pod::POD;
    use serde_json::json;

    use super::*;
    use crate::admission::fake::Fake;

    #[test]
    fn who_may_not_delete_gives_no_owner() {
        let fake = Fake::with(&[]);
        let free = json!({"metadata": {"name": "p"}});
        let owner = |blocks: bool| {
            let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u", "blockOwnerDeletion": blocks});
            json!({"metadata": {"name": "p", "ownerReferences": [owner]}})
        };
        let of = |review: &Review<'_>, object: &Value| {
            OwnerReferencesPermissionEnforcement.validate(review, object, &mut Vec::new())
        };
        let changed = Review { old: Some(&free), ..fake.review(&POD, Operation::Update) };
        assert!(of(&changed, &free).is_ok());
        assert!(of(&changed, &owner(false)).is_err());
        let created = fake.review(&POD, Operation::Create);
        assert!(of(&created, &owner(false)).is_ok());
        let held = of(&created, &owner(true)).expect_err("who holds an owner sets its finalizers").message;
        assert!(held.contains("you can't set finalizers on"), "{held}");
    }
}
