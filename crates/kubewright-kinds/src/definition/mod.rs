//! CustomResourceDefinitions (`apiextensions.k8s.io/v1`): their defaults, their validation, and the kinds that they make.

mod approval;
mod cel;
mod conversion;
mod defaults;
mod go;
mod history;
mod kinds;
mod parts;
mod path;
mod rules;
mod same;
mod schema;
mod selectable;
mod spec;
mod status;
mod structure;
mod versions;
mod warnings;

use kubewright_meta::FieldError;
use path::Path;
use serde_json::{Value, json};

pub use kinds::kinds;
pub use same::same_content;
pub use spec::{validate, validate_status};
pub use status::status;
pub use versions::{Reading, Versions};
pub use warnings::warnings;

/// Fills in what the author of a definition left out (`pkg/apis/apiextensions/v1/defaults.go`): the singular and the kind
/// of lists, the conversion strategy, and the port of a conversion webhook.
pub fn default(definition: &mut Value) {
    let Some(object) = definition.as_object_mut() else { return };
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
        if let Some(service) = spec
            .get_mut("conversion")
            .and_then(|conversion| conversion.pointer_mut("/webhook/clientConfig/service"))
            .and_then(Value::as_object_mut)
        {
            service.entry("port").or_insert_with(|| 443.into());
        }
        // Kubernetes knows no webhook that says neither how it is called nor in which versions.
        if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
            let says = |webhook: &Value| {
                !webhook["clientConfig"].is_null()
                    || webhook["conversionReviewVersions"]
                        .as_array()
                        .is_some_and(|versions| !versions.is_empty())
            };
            if conversion.get("webhook").is_some_and(|webhook| webhook.is_object() && !says(webhook)) {
                conversion.remove("webhook");
            }
        }
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
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.entry("conditions").or_insert(Value::Null);
        status.entry("acceptedNames").or_insert_with(|| json!({"kind": "", "plural": ""}));
        let stored = status.entry("storedVersions").or_insert(Value::Null);
        if stored.as_array().is_none_or(Vec::is_empty) {
            *stored = Value::Null;
            store(definition);
        }
    }
}

/// The status of a new definition (`pkg/registry/customresourcedefinition/strategy.go`, `PrepareForCreate`).
pub fn begin(definition: &mut Value) {
    if let Some(object) = definition.as_object_mut() {
        let status = json!({
            "conditions": null, "acceptedNames": {"kind": "", "plural": ""}, "storedVersions": null
        });
        object.insert("status".into(), status);
    }
    store(definition);
}

/// The storage version is one that objects may be stored in from now on (`PrepareForUpdate`).
pub fn store(definition: &mut Value) {
    let Some(storage) = storage_version(definition).map(str::to_owned) else { return };
    let Some(status) = definition.get_mut("status").and_then(Value::as_object_mut) else { return };
    let stored = status.entry("storedVersions").or_insert(Value::Null);
    match stored {
        Value::Array(stored) if stored.contains(&storage.as_str().into()) => {}
        Value::Array(stored) => stored.push(storage.into()),
        _ => *stored = json!([storage]),
    }
}

/// The collection of the store that holds the objects of a definition.
#[must_use]
pub fn collection(definition: &Value) -> String {
    let spec = &definition["spec"];
    format!("{}/{}", text(spec, "group"), text(&spec["names"], "plural"))
}

/// The name of the version that objects are stored in.
fn storage_version(definition: &Value) -> Option<&str> {
    versions(definition).find(|version| flag(version, "storage")).map(|version| text(version, "name"))
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    list(&definition["spec"], "versions")
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A text that must be there, and must be one of those that are allowed.
fn one_of(value: &str, allowed: &[&str], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if value.is_empty() {
        errors.push(FieldError::required(*path, ""));
    } else if !allowed.contains(&value) {
        errors.push(FieldError::not_supported(*path, value, allowed.iter().copied()));
    }
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

/// What a schema says of the items of lists. A list of such, without entries, says nothing.
fn items(schema: &Value) -> Option<&Value> {
    part(schema, "items").filter(|items| items.as_array().is_none_or(|all| !all.is_empty()))
}

fn fields<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flatten()
}

#[cfg(test)]
mod tests;
