//! The kind `NetworkPolicy` of `networking.k8s.io/v1`.

use k8s_openapi::api::networking::v1::NetworkPolicy;
use kubewright_table as table;

use crate::BuiltIn;
use crate::rules::{self, Rules, warnings};

/// All that is known of it.
pub static NETWORK_POLICY: BuiltIn = BuiltIn {
    short_names: &["netpol"],
    columns: table::network::NETWORK_POLICIES,
    rules: Rules { warn: warnings::addresses::of_policy, ..rules::networking::policies() },
    ..BuiltIn::of::<NetworkPolicy>()
};
