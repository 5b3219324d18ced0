//! What verbs have to know of CustomResourceDefinitions and the objects of their kinds.

use kubewright_kinds::{Kind, definition};
use kubewright_meta::{ApiError, FieldError, object};
use kubewright_schema::{Candidate, Extent};
use serde_json::{Value, json};

use crate::engine::definitions::is_definition;

/// The finalizer that holds a definition until its objects are gone.
pub(super) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What is wrong with a definition; nothing for other kinds.
pub(super) fn errors(kind: &Kind, candidate: Candidate<'_>) -> Vec<FieldError> {
    match candidate.part {
        _ if !is_definition(kind) => Vec::new(),
        Extent::Whole => definition::validate(candidate.object, candidate.old),
        Extent::Status => definition::validate_status(candidate.object),
    }
}

/// What a definition asks for that is not enforced; nothing for other kinds.
pub(super) fn warnings(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<String> {
    if is_definition(kind) { definition::warnings(kind.kubernetes(), object, old) } else { Vec::new() }
}

/// Whether an object may come: not when its kind is about to go
/// (`apiextensions-apiserver/pkg/apiserver/customresource_handler.go`, `forbidCreateAdmission`).
///
/// # Errors
/// 403.
pub(super) fn may_come(kind: &Kind, name: &str) -> Result<(), ApiError> {
    if kind.custom.as_ref().is_some_and(|custom| custom.terminating) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(&kind.group, &kind.plural, name, why));
    }
    Ok(())
}

/// A definition that is asked to go waits until its objects are gone
/// (`apiextensions-apiserver/pkg/registry/customresourcedefinition/etcd.go`, `Delete`).
pub(super) fn begin_termination(definition: &mut Value, now: jiff::Timestamp) {
    object::add_finalizer(definition, CLEANUP);
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_terminating(definition, "InstanceDeletionPending", message, now);
}

/// The condition that tells how far the end of a definition is.
pub(super) fn set_terminating(definition: &mut Value, reason: &str, message: &str, now: jiff::Timestamp) {
    let status = object::member_mut(definition, "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(conditions) = conditions else { return };
    match conditions.iter_mut().find(|condition| condition["type"] == "Terminating") {
        Some(condition) => {
            condition["reason"] = reason.into();
            condition["message"] = message.into();
        }
        None => conditions.push(json!({
            "type": "Terminating",
            "status": "True",
            "lastTransitionTime": object::time(now),
            "reason": reason,
            "message": message
        })),
    }
}
