//! The group `certificates.k8s.io`.

pub mod certificate_signing_request;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[&certificate_signing_request::CERTIFICATE_SIGNING_REQUEST];
