//! The kind `Event` of `v1`.

use k8s_openapi::api::core::v1::Event;

use crate::kinds::rules;
use crate::kinds::{Behaviour, BuiltIn};
use crate::table;

/// All that is known of it.
pub static EVENT: BuiltIn = BuiltIn {
    short_names: &["ev"],
    columns: table::events::EVENTS,
    rules: rules::events::core_rules(),
    behaviour: Behaviour { create_on_update: true, ..Behaviour::BUILT_IN },
    ..BuiltIn::of::<Event>()
};
