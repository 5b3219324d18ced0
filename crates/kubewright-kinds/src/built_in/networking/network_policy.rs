//! The kind `NetworkPolicy` of `networking.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::BuiltIn;
use crate::rules::{self, Again, Rules, warnings};

/// All that is known of it.
pub static NETWORK_POLICY: BuiltIn = BuiltIn {
    short_names: &["netpol"],
    columns: table::network::NETWORK_POLICIES,
    rules: Rules { warn: warnings::addresses::of_policy, ..rules::networking::policies() },
    since: &[(Version::V1_36, |kind| kind.rules.again = Again::Nothing)],
    ..BuiltIn::namespaced("io.k8s.api.networking.v1.NetworkPolicy", "networking.k8s.io/networkpolicies")
};
