//! The kind `ValidatingAdmissionPolicy` of `admissionregistration.k8s.io/v1`.

use kubewright_table as table;

use crate::rules;
use crate::{Behaviour, BuiltIn, LeftAlone, Role, Subresource};

/// All that is known of it.
pub static VALIDATING_ADMISSION_POLICY: BuiltIn = BuiltIn {
    categories: &["api-extensions"],
    subresources: &[Subresource::Status],
    columns: table::admission::VALIDATING_POLICIES,
    rules: rules::admission::policies(),
    behaviour: Behaviour {
        role: Role::ValidatingPolicy,
        conditional_update: true,
        create_on_status_apply: true,
        metadata_of_status_writes: &[],
        ..Behaviour::BUILT_IN
    },
    left_alone: LeftAlone { status: &[&["spec"], &["metadata"]], ..LeftAlone::BUILT_IN },
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy",
        "admissionregistration.k8s.io/validatingadmissionpolicies",
    )
};
