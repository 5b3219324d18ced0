//! The kind `IPAddress` of `networking.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::BuiltIn;
use crate::rules;
use crate::rules::declared::{Declared, Mistake};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] = &[
    ("spec.parentRef", Mistake::Required),
    ("spec.parentRef", Mistake::Immutable),
    ("spec.parentRef.resource", Mistake::Required),
    ("spec.parentRef.name", Mistake::Required),
];

/// All that is known of it.
pub static IP_ADDRESS: BuiltIn = BuiltIn {
    short_names: &["ip"],
    columns: table::network::IP_ADDRESSES,
    rules: rules::networking::ip_addresses(),
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::cluster_scoped("io.k8s.api.networking.v1.IPAddress", "networking.k8s.io/ipaddresses")
};
