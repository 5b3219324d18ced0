//! The group `networking.k8s.io`.

pub mod ingress;
pub mod ingress_class;
pub mod ip_address;
pub mod network_policy;
pub mod service_cidr;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[
    &ingress_class::INGRESS_CLASS,
    &ingress::INGRESS,
    &ip_address::IP_ADDRESS,
    &network_policy::NETWORK_POLICY,
    &service_cidr::SERVICE_CIDR,
];
