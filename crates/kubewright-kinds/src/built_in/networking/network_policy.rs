//! The kind `NetworkPolicy` of `networking.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::BuiltIn;
use crate::rules::declared::{Declared, Mistake};
use crate::rules::{self, Again, Rules, warnings};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] = &[
    ("spec.ingress[*].from[*].ipBlock.cidr", Mistake::Required),
    ("spec.egress[*].to[*].ipBlock.cidr", Mistake::Required),
];

/// All that is known of it.
pub static NETWORK_POLICY: BuiltIn = BuiltIn {
    short_names: &["netpol"],
    columns: table::network::NETWORK_POLICIES,
    rules: Rules { warn: warnings::addresses::of_policy, ..rules::networking::policies() },
    since: &[
        (Version::V1_36, |kind| kind.rules.again = Again::Nothing),
        (Version::V1_37, |kind| kind.rules.declared = DECLARED),
    ],
    ..BuiltIn::namespaced("io.k8s.api.networking.v1.NetworkPolicy", "networking.k8s.io/networkpolicies")
};
