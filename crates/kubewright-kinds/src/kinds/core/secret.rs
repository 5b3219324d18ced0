//! The kind `Secret` of `v1`.

use k8s_openapi::api::core::v1::Secret;

use crate::kinds::rules::{self, Rules, warnings};
use crate::kinds::{BuiltIn, Counted};
use crate::selector::{Field, Fields};
use crate::table;

/// All that is known of it.
pub static SECRET: BuiltIn = BuiltIn {
    columns: table::config::SECRETS,
    rules: Rules { warn: warnings::of_secret, ..rules::config::secrets() },
    fields: Fields::of(&[Field::of("type")]),
    counted: Counted::Aliased,
    ..BuiltIn::of::<Secret>()
};
