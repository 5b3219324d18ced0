//! The group `policy`.

pub mod pod_disruption_budget;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&pod_disruption_budget::POD_DISRUPTION_BUDGET];
