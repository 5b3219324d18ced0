//! The group `node.k8s.io`.

pub mod runtime_class;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&runtime_class::RUNTIME_CLASS];
