//! Resources inside of custom resources (`x-kubernetes-embedded-resource`) say what they are
//! (`apiextensions-apiserver/pkg/apiserver/schema/objectmeta/validation.go`).

use kubewright_meta::FieldError;
use kubewright_meta::rules::metadata::{self, NameRule};
use serde_json::{Map, Value, json};

use super::super::names::label_1035;
use super::super::node::{Additional, Node};
use super::child;

/// What is wrong with the `apiVersion` and `kind` of embedded resources.
pub fn check(node: &Node, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(node, value, path, &mut errors);
    errors
}

fn walk(node: &Node, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            if node.embedded_resource {
                resource(fields, path, errors);
            }
            for (name, one) in fields {
                match (node.properties.get(name.as_str()), &node.additional) {
                    (Some(field), _) => walk(field, one, &child(path, name), errors),
                    (None, Additional::Of(values)) => walk(values, one, &format!("{path}[{name}]"), errors),
                    _ => {}
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for (index, one) in list.iter().enumerate() {
                    walk(items, one, &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn resource(fields: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let at = child(path, name);
        match fields.get(name) {
            None => errors.push(FieldError::required(at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(at, "", "must not be empty"));
            }
            Some(Value::String(text)) if name == "apiVersion" => {
                if text.matches('/').count() > 1 {
                    let detail = format!("unexpected GroupVersion string: {text}");
                    errors.push(FieldError::invalid(at, text.as_str(), detail));
                }
            }
            Some(Value::String(text)) => {
                if let Some(why) = label_1035(&text.to_lowercase()) {
                    let detail = format!("may have mixed case, but should otherwise match: {why}");
                    errors.push(FieldError::invalid(at, text.as_str(), detail));
                }
            }
            Some(other) => errors.push(FieldError::invalid(at, other.clone(), "must be a string")),
        }
    }
    if let Some(metadata) = fields.get("metadata") {
        own_metadata(metadata, &child(path, "metadata"), errors);
    }
}

/// The metadata of an embedded resource follows the rules of any; it needs no name.
fn own_metadata(given: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut named = given.clone();
    let Some(fields) = named.as_object_mut() else { return };
    let is_text = |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if !is_text(fields.get("name")) {
        fields.insert("name".into(), "fakename".into());
    }
    let namespaced = is_text(fields.get("namespace"));
    let found = metadata::validate(&json!({"metadata": named}), NameRule::PathSegment, namespaced);
    errors.extend(found.into_iter().map(|mut error| {
        metadata::as_before_v1_37(&mut error);
        let below = error.field.strip_prefix("metadata").unwrap_or_default();
        FieldError { field: format!("{path}{below}"), ..error }
    }));
}
