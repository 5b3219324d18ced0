//! The kind `ValidatingAdmissionPolicyBinding` of `admissionregistration.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::rules;
use crate::rules::declared::{Declared, Mistake};
use crate::{Behaviour, BuiltIn, Role};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] =
    &[("spec.policyName", Mistake::Required), ("spec.validationActions", Mistake::Required)];

/// All that is known of it.
pub static VALIDATING_ADMISSION_POLICY_BINDING: BuiltIn = BuiltIn {
    categories: &["api-extensions"],
    columns: table::admission::BINDINGS,
    rules: rules::admission::binding_rules(true),
    behaviour: Behaviour {
        role: Role::ValidatingPolicyBinding,
        conditional_update: true,
        metadata_of_status_writes: &[],
        ..Behaviour::BUILT_IN
    },
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::cluster_scoped(
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io/validatingadmissionpolicybindings",
    )
};
