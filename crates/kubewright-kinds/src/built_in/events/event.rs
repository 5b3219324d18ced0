//! The kind `Event` of `events.k8s.io/v1`.

use kubewright_table as table;

use crate::built_in::core::event;
use crate::rules;
use crate::rules::convert::events;
use crate::selector::{Called, Field, Fields};
use crate::{Behaviour, BuiltIn, Counted, StoredAs};

/// All that is known of it.
pub static EVENT: BuiltIn = BuiltIn {
    short_names: &["ev"],
    columns: table::events::EVENTS,
    rules: rules::events::rules(),
    behaviour: Behaviour {
        create_on_update: true,
        has_dependents: false,
        is_cached: false,
        ..Behaviour::BUILT_IN
    },
    stored_as: Some(StoredAs {
        kind: &event::EVENT,
        to_storage: events::to_core,
        from_storage: events::from_core,
    }),
    fields: Fields::of(&FIELDS),
    counted: Counted::Uncharged,
    ..BuiltIn::namespaced("io.k8s.api.events.v1.Event", "events.k8s.io/events")
};

/// What events of this group call the fields of [`event::FIELDS`].
const NAMES: [Called; 11] = [
    Called::Only("regarding.kind"),
    Called::Only("regarding.namespace"),
    Called::Only("regarding.name"),
    Called::Only("regarding.uid"),
    Called::Only("regarding.apiVersion"),
    Called::Only("regarding.resourceVersion"),
    Called::Only("regarding.fieldPath"),
    Called::Name,
    Called::Only("reportingController"),
    Called::Nothing,
    Called::Name,
];

const FIELDS: [Field; 11] = {
    let mut fields = event::FIELDS;
    let mut at = 0;
    while at < fields.len() {
        fields[at].called = NAMES[at];
        at += 1;
    }
    fields
};
