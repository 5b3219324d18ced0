//! Reading and writing the parts of an object that every kind has, on its JSON value.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{ApiError, text};

/// The finalizer by which a deletion waits for the dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer by which a deletion lets its dependents live.
pub const ORPHAN: &str = "orphan";

/// A time as Kubernetes writes it: RFC 3339 in whole seconds, UTC.
#[must_use]
pub fn time(at: Timestamp) -> Value {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

/// `metadata`, made when it is not there (or is no object).
#[inline]
pub fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    member_mut(object, "metadata")
}

/// A member that is an object, made when it is not there (or is none).
pub fn member_mut<'a>(object: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    let map = as_map(object);
    as_map(map.entry(name).or_insert_with(|| Value::Object(Map::new())))
}

/// The value as an object; what is none becomes an empty one.
#[inline]
pub fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("it was made an object"),
    }
}

/// A text of `metadata`; empty when it is not there.
#[inline]
#[must_use]
pub fn meta_text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Whether a name can be that of the key of an object (`k8s.io/apiserver/pkg/registry/generic/registry/store.go`).
///
/// # Errors
/// 400 for none, and for one that is no segment of a path.
pub fn check_key(name: &str) -> Result<(), ApiError> {
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    match text::path_segment(name).as_slice() {
        [] => Ok(()),
        wrong => Err(ApiError::bad_request(format!("Name parameter invalid: {name:?}: {}", wrong.join(";")))),
    }
}

/// `metadata.name`.
#[inline]
#[must_use]
pub fn name(object: &Value) -> &str {
    meta_text(object, "name")
}

/// `metadata.namespace`.
#[inline]
#[must_use]
pub fn namespace(object: &Value) -> &str {
    meta_text(object, "namespace")
}

/// `metadata.uid`.
#[inline]
#[must_use]
pub fn uid(object: &Value) -> &str {
    meta_text(object, "uid")
}

/// `metadata.resourceVersion`.
#[inline]
#[must_use]
pub fn resource_version(object: &Value) -> &str {
    meta_text(object, "resourceVersion")
}

/// Whether somebody has asked for it to be deleted.
#[must_use]
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// `metadata.finalizers`.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Whether a namespace is kept by what may still be in it: `spec.finalizers`.
#[must_use]
pub fn holds_content(namespace: &Value) -> bool {
    namespace["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

/// `metadata.generation`; 0 when it is not there.
#[must_use]
pub fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or_default()
}

/// `metadata.labels`.
#[must_use]
pub fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Sets a member of `metadata`, or removes it where there is no value.
pub fn set_meta(object: &mut Value, field: &str, value: Option<Value>) {
    let meta = meta_mut(object);
    match value {
        Some(value) => drop(meta.insert(field.to_owned(), value)),
        None => drop(meta.remove(field)),
    }
}

/// Copies a member of `metadata` from another object, its absence too.
pub fn copy_meta(object: &mut Value, from: &Value, field: &str) {
    set_meta(object, field, from["metadata"].get(field).cloned());
}

/// Copies a top-level member from another object, its absence too.
pub fn copy_member(object: &mut Value, from: &Value, field: &str) {
    let map = as_map(object);
    match from.get(field) {
        Some(value) => drop(map.insert(field.to_owned(), value.clone())),
        None => drop(map.remove(field)),
    }
}

/// Adds a finalizer, once.
pub fn add_finalizer(object: &mut Value, finalizer: &str) {
    if finalizers(object).all(|one| one != finalizer) {
        let list = meta_mut(object).entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
        match list {
            Value::Array(list) => list.push(finalizer.into()),
            other => *other = Value::Array(vec![finalizer.into()]),
        }
    }
}

/// Removes a finalizer; the list goes with its last member.
pub fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let left: Vec<Value> = finalizers(object).filter(|one| *one != finalizer).map(Value::from).collect();
    set_meta(object, "finalizers", (!left.is_empty()).then_some(Value::Array(left)));
}

/// Makes of whole doubles (`100.0`) the integers that Go reads when it has written them as JSON: without a fraction below 10^21,
/// and as integers where they have 64 bits.
pub fn read_doubles_back(value: &mut Value) {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole =
                number.as_f64().filter(|double| double.fract() == 0.0 && (-BOUND..BOUND).contains(double));
            if let Some(whole) = whole {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole, and in range")]
                let integer = whole as i64;
                *value = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(read_doubles_back),
        Value::Object(members) => members.values_mut().for_each(read_doubles_back),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_doubles_are_integers_where_they_have_64_bits() {
        let mut object = json!({"a": 100.0, "b": [1.5, -0.0, {"c": 1e18}], "d": 1e19, "e": 7});
        read_doubles_back(&mut object);
        assert_eq!(
            object,
            json!({"a": 100, "b": [1.5, 0, {"c": 1_000_000_000_000_000_000_i64}], "d": 1e19, "e": 7})
        );
    }
}
