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
        copy_metadata(next, &written, self.metadata());
        if self == Self::Containers && pods::has_others(&written, current) {
            copy_metadata(next, &written, &["annotations", "finalizers", "labels", "ownerReferences"]);
        }
        // Where metadata is written as it comes, that an object is to go is compared, and refused.
        let is_to_go = |object: &Value| !object::meta_text(object, "deletionTimestamp").is_empty();
        if matches!(self, Self::Approval | Self::Finalizers) && is_to_go(&written) && !is_to_go(current) {
            object::copy_meta(next, &written, "deletionTimestamp");
        }
        let (outer, inner) = match self {
            Self::Approval => ("status", "conditions"),
            Self::Finalizers => ("spec", "finalizers"),
            Self::EphemeralContainers => ("spec", "ephemeralContainers"),
            Self::Containers => return pods::resize(next, &written),
        };
        copy(object::member_mut(next, outer), &written[outer], inner);
        if self == Self::EphemeralContainers {
            pods::drop_disabled(&mut next["spec"]);
        }
    }

    /// The fields of metadata that a write of it may change too: the strategies of pods reset them
    /// (`ResetObjectMetaForStatus`), the others do not.
    fn metadata(self) -> &'static [&'static str] {
        match self {
            Self::Approval | Self::Finalizers => &[
                "annotations",
                "deletionGracePeriodSeconds",
                "finalizers",
                "generateName",
                "labels",
                "ownerReferences",
                "uid",
            ],
            Self::EphemeralContainers | Self::Containers => {
                &["deletionGracePeriodSeconds", "generateName", "uid"]
            }
        }
    }

    /// Whether the object is looked at as if it were new, too.
    pub(super) fn revalidates(self) -> bool {
        self == Self::Approval
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

/// Takes these fields of metadata from what was written. A uid or a grace period that nobody gave stays; one that was given is compared
/// later (`k8s.io/apiserver/pkg/registry/rest/update.go`, `BeforeUpdate`).
pub(super) fn copy_metadata(next: &mut Value, written: &Value, fields: &[&str]) {
    let is_given = |field: &str| match field {
        "uid" => !object::uid(written).is_empty(),
        "deletionGracePeriodSeconds" => !written["metadata"][field].is_null(),
        _ => true,
    };
    for field in fields.iter().filter(|field| is_given(field)) {
        object::copy_meta(next, written, field);
    }
}

fn copy(target: &mut serde_json::Map<String, Value>, from: &Value, field: &str) {
    match from.get(field) {
        Some(value) => drop(target.insert(field.to_owned(), value.clone())),
        None => drop(target.remove(field)),
    }
}
