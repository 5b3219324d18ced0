//! Nobody grants what they do not hold (`k8s.io/kubernetes/pkg/registry/rbac/*/policybased`).

use super::Operation;
use crate::authz::{Attributes, escalation};
use crate::error::ApiError;
use crate::registry::{Call, Registry};

pub(super) fn admit(registry: &Registry, call: Call<'_>, operation: &Operation<'_>) -> Result<(), ApiError> {
    if !escalation::is_limited(call.user, &call.kind.group) {
        return Ok(());
    }
    let (verb, object, old) = match operation {
        Operation::Create(object) => ("create", &**object, None),
        Operation::Update(object, old) => ("update", &**object, Some(*old)),
        Operation::Delete(_) => return Ok(()),
    };
    let request = Attributes {
        verb,
        group: &call.kind.group,
        version: &call.kind.version,
        resource: &call.kind.plural,
        namespace: call.namespace,
        name: call.name,
        ..Attributes::default()
    };
    let rbac = registry.authorizer().rbac(&registry.snapshot());
    escalation::check(&rbac, call.user, &request, object, old)
}
