//! The kind `EndpointSlice` of `discovery.k8s.io/v1`.

use kubewright_spec::Version;
use kubewright_table as table;

use crate::BuiltIn;
use crate::rules::declared::{Declared, Mistake};
use crate::rules::{self, Rules, warnings};

/// What its types declare from v1.37 on.
const DECLARED: &[Declared] = &[
    ("addressType", Mistake::Required),
    ("addressType", Mistake::Immutable),
    ("addressType", Mistake::Other),
    ("endpoints[*].addresses", Mistake::Required),
];

/// All that is known of it.
pub static ENDPOINT_SLICE: BuiltIn = BuiltIn {
    columns: table::network::ENDPOINT_SLICES,
    rules: Rules { warn: warnings::addresses::of_slice, ..rules::services::endpoint_slices() },
    since: &[(Version::V1_37, |kind| kind.rules.declared = DECLARED)],
    ..BuiltIn::namespaced("io.k8s.api.discovery.v1.EndpointSlice", "discovery.k8s.io/endpointslices")
};
