//! The kind `MutatingAdmissionPolicy` of `admissionregistration.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, Role};

/// All that is known of it.
pub static MUTATING_ADMISSION_POLICY: BuiltIn = BuiltIn {
    categories: &["api-extensions"],
    columns: table::admission::MUTATING_POLICIES,
    rules: rules::admission::mutating_rules(),
    behaviour: Behaviour {
        role: Role::MutatingPolicy,
        conditional_update: true,
        metadata_of_status_writes: &[],
        ..Behaviour::BUILT_IN
    },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy",
        "admissionregistration.k8s.io/mutatingadmissionpolicies",
    )
};
