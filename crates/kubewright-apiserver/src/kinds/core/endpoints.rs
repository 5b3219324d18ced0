//! The kind `Endpoints` of `v1`.

use k8s_openapi::api::core::v1::Endpoints;

use crate::kinds::BuiltIn;
use crate::kinds::rules::{self, Rules, warnings};
use crate::table;

/// All that is known of it.
pub static ENDPOINTS: BuiltIn = BuiltIn {
    short_names: &["ep"],
    columns: table::network::ENDPOINTS,
    rules: Rules { warn: warnings::addresses::of_endpoints, ..rules::services::endpoints() },
    ..BuiltIn::of::<Endpoints>()
};
