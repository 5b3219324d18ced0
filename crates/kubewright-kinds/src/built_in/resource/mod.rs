//! The group `resource.k8s.io`: devices, and claims of them.

pub mod device_class;
pub mod device_taint_rule;
pub mod resource_claim;
pub mod resource_claim_template;
pub mod resource_slice;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[
    &device_class::DEVICE_CLASS,
    &device_taint_rule::DEVICE_TAINT_RULE,
    &resource_claim::RESOURCE_CLAIM,
    &resource_claim_template::RESOURCE_CLAIM_TEMPLATE,
    &resource_slice::RESOURCE_SLICE,
];
