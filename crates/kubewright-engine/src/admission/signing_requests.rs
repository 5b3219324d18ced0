//! What kube-apiserver does itself with a decision about a certificate signing request, when all others have had their say
//! (`k8s.io/kubernetes/pkg/registry/certificates/certificates`).

use kubewright_kinds::Role;
use kubewright_meta::object;
use serde_json::Value;

use super::Review;

/// Fills in what only the server knows of a decision: that it was made, and when. Not before everybody else has changed the
/// request: the controllers believe it (`k8s.io/kubernetes/pkg/registry/certificates/certificates`, which does it in its
/// strategies).
pub(super) fn complete(review: &Review<'_>, request: &mut Value) {
    let Some(old) = review.old.filter(|_| review.call.kind.behaviour.role == Role::SigningRequest) else {
        return;
    };
    if review.subresource == "status" {
        keep_decisions(request, old);
    }
    if matches!(review.subresource, "status" | "approval") {
        stamp(request, old, &object::time(review.objects.world().clock.now()));
    }
}

/// A write to the status does not decide: approvals and denials stay as they are.
fn keep_decisions(request: &mut Value, old: &Value) {
    for kind in ["Approved", "Denied"] {
        let of = |request: &Value| -> Vec<Value> {
            let conditions = request["status"]["conditions"].as_array().into_iter().flatten();
            conditions.filter(|condition| condition["type"] == kind).cloned().collect()
        };
        let before = of(old);
        if before.len() != of(request).len() {
            continue;
        }
        let mut before = before.into_iter();
        let Some(Value::Array(conditions)) = request["status"].get_mut("conditions") else { continue };
        for condition in conditions.iter_mut().filter(|condition| condition["type"] == kind) {
            if let Some(before) = before.next() {
                *condition = before;
            }
        }
    }
}

/// Conditions say when they were set, and since when they have their status.
fn stamp(request: &mut Value, old: &Value, now: &Value) {
    let before = old["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(Value::Array(conditions)) = request["status"].get_mut("conditions") else { return };
    for condition in conditions.iter_mut().filter(|condition| condition.is_object()) {
        if !condition["lastUpdateTime"].is_string() {
            condition["lastUpdateTime"] = now.clone();
        }
        if !condition["lastTransitionTime"].is_string() {
            let same =
                |one: &&Value| one["type"] == condition["type"] && one["status"] == condition["status"];
            let since = before
                .iter()
                .find(same)
                .map(|one| &one["lastTransitionTime"])
                .filter(|time| time.is_string());
            condition["lastTransitionTime"] = since.unwrap_or(now).clone();
        }
    }
}
