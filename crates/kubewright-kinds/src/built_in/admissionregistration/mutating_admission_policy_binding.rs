//! The kind `MutatingAdmissionPolicyBinding` of `admissionregistration.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, Role};

/// All that is known of it.
pub static MUTATING_ADMISSION_POLICY_BINDING: BuiltIn = BuiltIn {
    categories: &["api-extensions"],
    columns: table::admission::BINDINGS,
    rules: rules::admission::binding_rules(false),
    behaviour: Behaviour {
        role: Role::MutatingPolicyBinding,
        conditional_update: true,
        metadata_of_status_writes: &[],
        ..Behaviour::BUILT_IN
    },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io/mutatingadmissionpolicybindings",
    )
};
