//! Events: the same facts under other names.

use serde_json::{Value, json};

use super::super::fill;

/// The fields of core events, and what `events.k8s.io/v1` calls them.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// From `events.k8s.io/v1` to core.
pub(crate) fn to_core(event: &mut Value) {
    rename(event, "v1", NAMES.map(|(core, new)| (new, core)));
    for key in ["involvedObject", "source"] {
        fill::absent(event, key, json!({}));
    }
    for key in ["firstTimestamp", "lastTimestamp", "eventTime"] {
        fill::absent(event, key, Value::Null);
    }
    for key in ["reportingComponent", "reportingInstance"] {
        fill::absent(event, key, "");
    }
}

/// From core to `events.k8s.io/v1`, which leaves empty texts out.
pub(crate) fn from_core(event: &mut Value) {
    rename(event, "events.k8s.io/v1", NAMES);
    for key in ["reportingController", "reportingInstance"] {
        if event.get(key) == Some(&json!("")) {
            fill::remove(event, key);
        }
    }
    for key in ["regarding", "deprecatedSource"] {
        fill::absent(event, key, json!({}));
    }
    for key in ["deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime"] {
        fill::absent(event, key, Value::Null);
    }
}

fn rename(event: &mut Value, version: &str, names: [(&str, &str); 7]) {
    let Some(fields) = event.as_object_mut() else { return };
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
    if fields.contains_key("apiVersion") {
        fields.insert("apiVersion".to_owned(), version.into());
    }
}
