//! The kind `IPAddress` of `networking.k8s.io/v1`.

use kubewright_table as table;

use crate::BuiltIn;
use crate::rules;

/// All that is known of it.
pub static IP_ADDRESS: BuiltIn = BuiltIn {
    short_names: &["ip"],
    columns: table::network::IP_ADDRESSES,
    rules: rules::networking::ip_addresses(),
    ..BuiltIn::cluster_scoped("io.k8s.api.networking.v1.IPAddress", "networking.k8s.io/ipaddresses")
};
