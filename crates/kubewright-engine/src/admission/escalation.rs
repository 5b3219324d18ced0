//! Nobody grants what they do not hold (`k8s.io/kubernetes/pkg/registry/rbac/*/policybased`).

use kubewright_identity::authz::escalation;
use kubewright_meta::ApiError;
use serde_json::Value;

use super::{Operation, Review};

/// Asks about the object as all mutations have left it.
///
/// # Errors
/// As [`escalation::check`].
pub(super) fn admit(review: &Review<'_>, object: &Value) -> Result<(), ApiError> {
    let Review { objects, call, old, .. } = *review;
    if !escalation::is_limited(call.user, &call.kind.group) {
        return Ok(());
    }
    let verb = match review.operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete | Operation::Connect => return Ok(()),
    };
    let request = call.attributes(verb);
    escalation::check(&objects.rights(), call.user, &request, object, old)
}
