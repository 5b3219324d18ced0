//! The group `admissionregistration.k8s.io`.

pub mod mutating_admission_policy;
pub mod mutating_admission_policy_binding;
pub mod mutating_webhook_configuration;
pub mod validating_admission_policy;
pub mod validating_admission_policy_binding;
pub mod validating_webhook_configuration;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[
    &mutating_admission_policy::MUTATING_ADMISSION_POLICY,
    &mutating_admission_policy_binding::MUTATING_ADMISSION_POLICY_BINDING,
    &mutating_webhook_configuration::MUTATING_WEBHOOK_CONFIGURATION,
    &validating_admission_policy::VALIDATING_ADMISSION_POLICY,
    &validating_admission_policy_binding::VALIDATING_ADMISSION_POLICY_BINDING,
    &validating_webhook_configuration::VALIDATING_WEBHOOK_CONFIGURATION,
];
