//! CustomResourceDefinitions (`apiextensions.k8s.io/v1`): their defaults, their validation, and the kinds that they make.

mod defaults;
mod history;
mod kinds;
mod parts;
mod path;
mod rules;
mod schema;
mod selectable;
mod spec;
mod status;
mod structure;
mod warnings;

use serde_json::{Value, json};

pub use kinds::kinds;
pub use spec::validate;
pub use status::status;
pub use warnings::warnings;

/// Fills in what the author of a definition left out (`pkg/apis/apiextensions/v1/defaults.go`): the singular and the kind
/// of lists, the conversion strategy, and the status of a new definition.
pub fn default(definition: &mut Value) {
    let storage = storage_version(definition).map(str::to_owned);
    let Some(object) = definition.as_object_mut() else { return };
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
        if let Some(names) = spec.entry("names").or_insert_with(|| json!({})).as_object_mut() {
            let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
            let absent = |value: Option<&Value>| value.and_then(Value::as_str).is_none_or(str::is_empty);
            if !kind.is_empty() && absent(names.get("singular")) {
                names.insert("singular".into(), kind.to_lowercase().into());
            }
            if !kind.is_empty() && absent(names.get("listKind")) {
                names.insert("listKind".into(), format!("{kind}List").into());
            }
        }
    }
    if let Some(status) = object.entry("status").or_insert_with(|| json!({})).as_object_mut() {
        status.entry("conditions").or_insert(Value::Null);
        status.entry("acceptedNames").or_insert_with(|| json!({"kind": "", "plural": ""}));
        let stored = status.entry("storedVersions").or_insert(Value::Null);
        if stored.as_array().is_none_or(Vec::is_empty) {
            *stored = storage.map_or(Value::Null, |storage| json!([storage]));
        }
    }
}

/// The name of the version that objects are stored in.
fn storage_version(definition: &Value) -> Option<&str> {
    versions(definition).find(|version| flag(version, "storage")).map(|version| text(version, "name"))
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    list(&definition["spec"], "versions")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key) == Some(&Value::Bool(true))
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    list(value, key).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A part of a value that is there.
fn part<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|part| !part.is_null())
}

fn fields<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flatten()
}

#[cfg(test)]
mod tests;
