//! The kind `Endpoints` of `v1`.

use kubewright_table as table;

use crate::rules::{self, Rules, warnings};
use crate::{Behaviour, BuiltIn};

/// All that is known of it.
pub static ENDPOINTS: BuiltIn = BuiltIn {
    short_names: &["ep"],
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    columns: table::network::ENDPOINTS,
    rules: Rules { warn: warnings::addresses::of_endpoints, ..rules::services::endpoints() },
    behaviour: Behaviour { create_on_update: true, ..Behaviour::BUILT_IN },
    storage_prefix: Some("services/endpoints"),
    ..BuiltIn::namespaced("io.k8s.api.core.v1.Endpoints", "/endpoints")
};
