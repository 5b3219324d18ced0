//! The kind `Event` of `v1`.

use kubewright_table as table;

use crate::rules;
use crate::selector::{Field, Fields};
use crate::{Behaviour, BuiltIn, Counted};

/// All that is known of it.
pub static EVENT: BuiltIn = BuiltIn {
    short_names: &["ev"],
    columns: table::events::EVENTS,
    rules: rules::events::core_rules(),
    behaviour: Behaviour {
        create_on_update: true,
        has_dependents: false,
        is_cached: false,
        ..Behaviour::BUILT_IN
    },
    fields: Fields::of(&FIELDS),
    counted: Counted::Uncharged,
    ..BuiltIn::namespaced("io.k8s.api.core.v1.Event", "/events")
};

/// The fields that events of both groups can be selected by, wherever those of each have them.
pub(crate) const FIELDS: [Field; 11] = [
    Field { paths: Some(&["involvedObject.kind", "regarding.kind"]), ..Field::of("involvedObject.kind") },
    Field {
        paths: Some(&["involvedObject.namespace", "regarding.namespace"]),
        ..Field::of("involvedObject.namespace")
    },
    Field { paths: Some(&["involvedObject.name", "regarding.name"]), ..Field::of("involvedObject.name") },
    Field { paths: Some(&["involvedObject.uid", "regarding.uid"]), ..Field::of("involvedObject.uid") },
    Field {
        paths: Some(&["involvedObject.apiVersion", "regarding.apiVersion"]),
        ..Field::of("involvedObject.apiVersion")
    },
    Field {
        paths: Some(&["involvedObject.resourceVersion", "regarding.resourceVersion"]),
        ..Field::of("involvedObject.resourceVersion")
    },
    Field {
        paths: Some(&["involvedObject.fieldPath", "regarding.fieldPath"]),
        ..Field::of("involvedObject.fieldPath")
    },
    Field::of("reason"),
    Field { paths: Some(&["reportingComponent", "reportingController"]), ..Field::of("reportingComponent") },
    Field {
        paths: Some(&[
            "source.component",
            "deprecatedSource.component",
            "reportingComponent",
            "reportingController",
        ]),
        ..Field::of("source")
    },
    Field::of("type"),
];
