//! The smaller subresources, which change one part of an object.

use kubewright_kinds::rules::{certificates, namespaces, pods};
use kubewright_meta::{FieldError, object};
use serde_json::Value;

/// The one part of an object that a smaller subresource changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// `status.conditions` of a certificate signing request.
    Approval,
    /// `spec.finalizers` of a namespace.
    Finalizers,
    /// `spec.ephemeralContainers` of a pod.
    EphemeralContainers,
    /// The resources of a pod and of its containers.
    Containers,
}

impl Member {
    /// Makes `next` the current object with this part of what was written.
    pub(super) fn prepare(self, next: &mut Value, current: &Value) {
        let written = std::mem::replace(next, current.clone());
        object::copy_meta(next, &written, "managedFields");
        let (outer, inner) = match self {
            Self::Approval => ("status", "conditions"),
            Self::Finalizers => ("spec", "finalizers"),
            Self::EphemeralContainers => ("spec", "ephemeralContainers"),
            Self::Containers => return pods::resize(next, &written),
        };
        copy(object::member_mut(next, outer), &written[outer], inner);
    }

    /// What is wrong with a change of it.
    pub(super) fn errors(self, next: &Value, current: &Value) -> Vec<FieldError> {
        match self {
            Self::Approval => certificates::validate_approval(next, current),
            Self::Finalizers => namespaces::validate_finalize(next),
            Self::EphemeralContainers => pods::validate_ephemeral_containers(next, current),
            Self::Containers => pods::validate_resize(next, current),
        }
    }
}

fn copy(target: &mut serde_json::Map<String, Value>, from: &Value, field: &str) {
    match from.get(field) {
        Some(value) => drop(target.insert(field.to_owned(), value.clone())),
        None => drop(target.remove(field)),
    }
}
