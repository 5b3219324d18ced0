//! The kind `EndpointSlice` of `discovery.k8s.io/v1`.

use kubewright_table as table;

use crate::BuiltIn;
use crate::rules::{self, Rules, warnings};

/// All that is known of it.
pub static ENDPOINT_SLICE: BuiltIn = BuiltIn {
    columns: table::network::ENDPOINT_SLICES,
    rules: Rules { warn: warnings::addresses::of_slice, ..rules::services::endpoint_slices() },
    ..BuiltIn::namespaced("io.k8s.api.discovery.v1.EndpointSlice", "discovery.k8s.io/endpointslices")
};
