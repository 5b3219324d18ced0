//! The group `apiregistration.k8s.io`.

pub mod api_service;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&api_service::API_SERVICE];
