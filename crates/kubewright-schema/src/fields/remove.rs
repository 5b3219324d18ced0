//! Taking fields out of an object (`sigs.k8s.io/structured-merge-diff/v6/typed`, `remove.go`).

use kubewright_meta::cost::{self, copied};
use serde_json::{Map, Value};

use super::item;
use super::set::Set;
use super::shape::{Form, List, ListKind, Object, Shape};

/// The object without the fields of a set; null when nothing is left of it.
#[must_use]
pub fn remove(shape: Shape<'_>, value: &Value, fields: &Set) -> Value {
    cost::step();
    if fields.is_empty() {
        return copied(value);
    }
    match shape.form(Some(value)) {
        Some(Form::Scalar(_)) => value.clone(),
        Some(Form::Object(object)) if !object.atomic => match value {
            Value::Object(members) => without_members(&object, members, fields),
            _ => Value::Null,
        },
        Some(Form::List(list)) if list.kind != ListKind::Atomic => match value {
            Value::Array(items) => without_items(&list, items, fields),
            _ => Value::Null,
        },
        _ => Value::Null,
    }
}

fn without_members(object: &Object<'_>, members: &Map<String, Value>, fields: &Set) -> Value {
    let mut left = Map::new();
    for (name, value) in members {
        match (fields.field(name), object.field(name)) {
            (Some(step), _) if step.member => {}
            (Some(step), Some(shape)) => drop(left.insert(name.clone(), remove(shape, value, &step.below))),
            _ => drop(left.insert(name.clone(), copied(value))),
        }
    }
    if left.is_empty() { Value::Null } else { Value::Object(left) }
}

fn without_items(list: &List<'_>, items: &[Value], fields: &Set) -> Value {
    let mut left = Vec::with_capacity(items.len());
    for value in items {
        let step = item::element(list, value).ok().and_then(|element| fields.step(&element));
        match step {
            Some(step) if step.member => {}
            Some(step) => left.push(remove(list.items, value, &step.below)),
            None => left.push(copied(value)),
        }
    }
    if left.is_empty() { Value::Null } else { Value::Array(left) }
}
