//! The group `discovery.k8s.io`.

pub mod endpoint_slice;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&endpoint_slice::ENDPOINT_SLICE];
