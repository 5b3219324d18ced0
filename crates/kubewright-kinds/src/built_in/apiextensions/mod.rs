//! The group `apiextensions.k8s.io`.

pub mod custom_resource_definition;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&custom_resource_definition::CUSTOM_RESOURCE_DEFINITION];
