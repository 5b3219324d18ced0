//! The kind `Event` of `events.k8s.io/v1`.

use k8s_openapi::api::events::v1::Event;

use crate::kinds::core::event;
use crate::kinds::rules;
use crate::kinds::rules::convert::events;
use crate::kinds::{Behaviour, BuiltIn, StoredAs};
use crate::table;

/// All that is known of it.
pub static EVENT: BuiltIn = BuiltIn {
    short_names: &["ev"],
    columns: table::events::EVENTS,
    rules: rules::events::rules(),
    behaviour: Behaviour { create_on_update: true, ..Behaviour::BUILT_IN },
    stored_as: Some(StoredAs {
        kind: &event::EVENT,
        to_storage: events::to_core,
        from_storage: events::from_core,
    }),
    ..BuiltIn::of::<Event>()
};
