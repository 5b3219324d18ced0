//! The kind `MutatingAdmissionPolicy` of `admissionregistration.k8s.io/v1`.

use k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicy;

use crate::kinds::BuiltIn;
use crate::kinds::rules;
use crate::table;

/// All that is known of it.
pub static MUTATING_ADMISSION_POLICY: BuiltIn = BuiltIn {
    categories: &["api-extensions"],
    columns: table::admission::MUTATING_POLICIES,
    rules: rules::admission::mutating_rules(),
    ..BuiltIn::of::<MutatingAdmissionPolicy>()
};
