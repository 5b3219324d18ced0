//! The group `coordination.k8s.io`.

pub mod lease;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&lease::LEASE];
