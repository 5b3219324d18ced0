//! The group `autoscaling`, newest version first.

pub mod horizontal_pod_autoscaler;
pub mod horizontal_pod_autoscaler_v1;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[
    &horizontal_pod_autoscaler::HORIZONTAL_POD_AUTOSCALER,
    &horizontal_pod_autoscaler_v1::HORIZONTAL_POD_AUTOSCALER_V1,
];
