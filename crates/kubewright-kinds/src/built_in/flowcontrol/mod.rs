//! The group `flowcontrol.apiserver.k8s.io`.

pub mod flow_schema;
pub mod priority_level_configuration;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] =
    &[&flow_schema::FLOW_SCHEMA, &priority_level_configuration::PRIORITY_LEVEL_CONFIGURATION];
