//! Admission policies: CEL expressions in objects of the users change objects, or decide whether to take them
//! (`k8s.io/apiserver/pkg/admission/plugin/policy`).

mod authorize;
mod binding;
mod merge;
mod mutating;
mod params;
mod patch;
mod policy;
mod typecheck;
mod types;
mod validating;

use kubewright_kinds::Summary;
use kubewright_store::Snapshot;

pub(super) use authorize::authorize;
use binding::Binding;
use mutating::MutatingPolicy;
pub(super) use mutating::{Invocation, mutate};
pub(crate) use typecheck::type_checking;
use validating::ValidatingPolicy;
pub(super) use validating::validate;

use super::matching::Cache;

/// The policies that are configured, compiled.
pub(super) struct Policies {
    validating: Cache<ValidatingPolicy>,
    validating_bindings: Cache<Binding>,
    mutating: Cache<MutatingPolicy>,
    mutating_bindings: Cache<Binding>,
}

impl Policies {
    pub(super) fn new() -> Self {
        Self {
            validating: Cache::new(
                "admissionregistration.k8s.io/validatingadmissionpolicies",
                ValidatingPolicy::read,
            ),
            validating_bindings: Cache::new(
                "admissionregistration.k8s.io/validatingadmissionpolicybindings",
                Binding::read,
            ),
            mutating: Cache::new(
                "admissionregistration.k8s.io/mutatingadmissionpolicies",
                MutatingPolicy::read,
            ),
            mutating_bindings: Cache::new(
                "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
                Binding::read,
            ),
        }
    }

    /// Whether there are any.
    pub(super) fn any(&self, snapshot: &Snapshot<Summary>) -> bool {
        self.validating.any(snapshot) || self.mutating.any(snapshot)
    }
}
