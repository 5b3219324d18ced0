//! The kind `Event` of `events.k8s.io/v1`.

use k8s_openapi::api::events::v1::Event;

use crate::kinds::BuiltIn;
use crate::kinds::rules;
use crate::table;

/// All that is known of it.
pub static EVENT: BuiltIn = BuiltIn {
    short_names: &["ev"],
    columns: table::events::EVENTS,
    rules: rules::events::rules(),
    ..BuiltIn::of::<Event>()
};
