//! The group `scheduling.k8s.io`.

pub mod priority_class;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&priority_class::PRIORITY_CLASS];
