//! The group `certificates.k8s.io`.

pub mod certificate_signing_request;
pub mod cluster_trust_bundle;
pub mod pod_certificate_request;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[
    &certificate_signing_request::CERTIFICATE_SIGNING_REQUEST,
    &cluster_trust_bundle::CLUSTER_TRUST_BUNDLE,
    &pod_certificate_request::POD_CERTIFICATE_REQUEST,
];
