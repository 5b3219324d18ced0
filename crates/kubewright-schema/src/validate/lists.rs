//! Lists of type set and map have no element twice (`apiextensions-apiserver/pkg/apiserver/schema/listtype`).

use std::collections::BTreeMap;

use kubewright_meta::{FieldError, cost};
use serde_json::{Map, Value};

use super::super::node::{Additional, ListType, Node};
use super::child;

/// The elements that stand in their list twice, each told once.
pub(super) fn check(node: &Node, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(node, value, path, &mut errors);
    errors
}

fn walk(node: &Node, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    cost::step();
    match value {
        Value::Object(fields) => {
            for (name, one) in fields {
                if let Additional::Of(values) = &node.additional {
                    walk(values, one, &format!("{path}[{name}]"), errors);
                }
                if let Some(field) = node.properties.get(name.as_str()) {
                    walk(field, one, &child(path, name), errors);
                }
            }
        }
        Value::Array(list) => {
            match node.list_type() {
                Some(ListType::Set) => duplicates(list.to_vec(), path, errors),
                Some(ListType::Map) => map(node.list_map_keys(), list, path, errors),
                Some(ListType::Atomic) | None => {}
            }
            if let Some(items) = &node.items {
                for (index, one) in list.iter().enumerate() {
                    walk(items, one, &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn map(keys: &[Box<str>], list: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    if let Some((index, wrong)) = list.iter().enumerate().find(|(_, one)| !one.is_object() && !one.is_null())
    {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(format!("{path}[{index}]"), wrong.clone(), detail));
        return;
    }
    let key = |element: &Value| {
        let parts = keys.iter().filter_map(|key| Some((key.to_string(), element.get(&**key)?.clone())));
        Value::Object(parts.collect::<Map<_, _>>())
    };
    duplicates(list.iter().map(key).collect(), path, errors);
}

fn duplicates(values: Vec<Value>, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, value) in values.into_iter().enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), value));
        }
    }
}
