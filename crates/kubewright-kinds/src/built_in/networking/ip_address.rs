//! The kind `IPAddress` of `networking.k8s.io/v1`.

use k8s_openapi::api::networking::v1::IPAddress;
use kubewright_table as table;

use crate::BuiltIn;
use crate::rules;

/// All that is known of it.
pub static IP_ADDRESS: BuiltIn = BuiltIn {
    short_names: &["ip"],
    columns: table::network::IP_ADDRESSES,
    rules: rules::networking::ip_addresses(),
    ..BuiltIn::of::<IPAddress>()
};
