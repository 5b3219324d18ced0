//! What schemas can tell of built-in kinds.

use serde_json::Value;

use super::super::node::{Additional, Node};
use super::child;
use crate::field::FieldError;

/// Texts that are none of the values that a field allows, everywhere but in the status.
///
/// Kubernetes checks these by hand, kind by kind, in these words. (Missing fields are not told here: which ones Kubernetes
/// asks for, its schemas do not say.)
pub(in crate::schema) fn enumerations(root: &Node, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (root, Some(fields)) = (root.target(), object.as_object()) else { return errors };
    for (name, value) in fields.iter().filter(|(name, _)| *name != "status" && *name != "metadata") {
        if let Some(field) = root.field(name) {
            walk(field, value, name, &mut errors);
        }
    }
    errors
}

fn walk(node: &Node, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if node.target().name.as_deref().is_some_and(|name| name.ends_with(".JSONSchemaProps")) {
        // Schemas of definitions have a validation of their own, which names other paths.
        return;
    }
    match value {
        Value::String(text) => {
            if !text.is_empty() && !node.enumeration.is_empty() && !node.enumeration.contains(value) {
                let allowed = node.enumeration.iter().filter_map(Value::as_str);
                errors.push(FieldError::not_supported(path, text.as_str(), allowed));
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.target().items {
                for (index, one) in list.iter().enumerate() {
                    walk(items, one, &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Object(fields) => {
            let map = matches!(node.target().additional, Additional::Of(_));
            for (name, one) in fields {
                if let Some(field) = node.field(name) {
                    let path = if map { format!("{path}[{name}]") } else { child(path, name) };
                    walk(field, one, &path, errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
