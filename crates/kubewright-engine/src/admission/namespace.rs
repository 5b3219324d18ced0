//! NamespaceLifecycle: nothing is created in a namespace that is missing or terminating, and some are not deleted
//! (`k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle`). NamespaceExists: nothing at all is done in one that is
//! missing (`k8s.io/kubernetes/plugin/pkg/admission/namespace/exists`).

use kubewright_kinds::Role;
use kubewright_meta::ApiError;
use serde_json::{Value, json};

use super::refusal::forbidden;
use super::{Operation, Review};

/// The namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) fn admit(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let call = review.call;
    match review.operation {
        Operation::Create if call.kind.namespaced() => must_be_alive(review, object),
        Operation::Delete if call.kind.behaviour.role == Role::Namespace && IMMORTAL.contains(&call.name) => {
            Err(ApiError::forbidden("", "namespaces", call.name, "this namespace may not be deleted"))
        }
        _ => Ok(()),
    }
}

/// # Errors
/// 404 of the namespace.
pub(super) fn exists(review: &Review<'_>) -> Result<(), ApiError> {
    let call = review.call;
    let is_there = !call.kind.namespaced()
        || review.operation == Operation::Connect
        || review.registry.snapshot().get("/namespaces", call.namespace).is_some();
    if is_there { Ok(()) } else { Err(ApiError::not_found_in("", "namespaces", call.namespace)) }
}

fn must_be_alive(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let call = review.call;
    let snapshot = review.registry.snapshot();
    let Some(entry) = snapshot.get("/namespaces", call.namespace) else {
        return Err(ApiError::not_found_in("", "namespaces", call.namespace));
    };
    if entry.tag.field("status.phase") != "Terminating" {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {} because it is being terminated",
        call.namespace
    );
    let mut error = forbidden(review, object, &why);
    if let Some(details) = &mut error.details {
        details["causes"] = json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {} is being terminated", call.namespace),
            "field": "metadata.namespace"
        }]);
    }
    Err(error)
}
