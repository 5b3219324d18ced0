//! Admission policies: CEL expressions in objects of the users change objects, or decide whether to take them
//! (`k8s.io/apiserver/pkg/admission/plugin/policy`).

mod authorize;
mod binding;
mod mutating;
mod params;
mod patch;
mod policy;
mod typecheck;
mod types;
mod validating;

use kubewright_kinds::Summary;
use kubewright_kinds::built_in::admissionregistration::mutating_admission_policy::MUTATING_ADMISSION_POLICY;
use kubewright_kinds::built_in::admissionregistration::mutating_admission_policy_binding::MUTATING_ADMISSION_POLICY_BINDING;
use kubewright_kinds::built_in::admissionregistration::validating_admission_policy::VALIDATING_ADMISSION_POLICY;
use kubewright_kinds::built_in::admissionregistration::validating_admission_policy_binding::VALIDATING_ADMISSION_POLICY_BINDING;
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
            validating: Cache::new(&VALIDATING_ADMISSION_POLICY, ValidatingPolicy::read),
            validating_bindings: Cache::new(&VALIDATING_ADMISSION_POLICY_BINDING, Binding::read),
            mutating: Cache::new(&MUTATING_ADMISSION_POLICY, MutatingPolicy::read),
            mutating_bindings: Cache::new(&MUTATING_ADMISSION_POLICY_BINDING, Binding::read),
        }
    }

    /// Whether there are any.
    pub(super) fn any(&self, snapshot: &Snapshot<Summary>) -> bool {
        self.validating.any(snapshot) || self.mutating.any(snapshot)
    }
}
