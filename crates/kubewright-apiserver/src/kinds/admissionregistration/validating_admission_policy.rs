//! The kind `ValidatingAdmissionPolicy` of `admissionregistration.k8s.io/v1`.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use crate::kinds::rules;
use crate::kinds::{BuiltIn, Subresource};
use crate::table;

/// All that is known of it.
pub static VALIDATING_ADMISSION_POLICY: BuiltIn = BuiltIn {
    categories: &["api-extensions"],
    subresources: &[Subresource::Status],
    columns: table::admission::VALIDATING_POLICIES,
    rules: rules::admission::policies(),
    ..BuiltIn::of::<ValidatingAdmissionPolicy>()
};
