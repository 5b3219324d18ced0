//! Whether two definitions, or parts of them, are the same to kube-apiserver, which compares its internal structs
//! (`k8s.io/apimachinery/pkg/api/equality`, `Semantic`): lists and maps without entries are as good as none, but structs are not.

use kubewright_meta::cost;
use serde_json::Value;

use super::part;

/// The members that are maps; other objects are structs.
const MAPS: [&str; 6] =
    ["annotations", "definitions", "dependencies", "labels", "patternProperties", "properties"];

/// The members whose values are the user's own.
const RAW: [&str; 3] = ["default", "enum", "example"];

/// Whether what two definitions ask for is the same.
pub fn same_content(one: &Value, other: &Value) -> bool {
    same_members(one, other, &|key| !matches!(key, "metadata" | "status"), false)
}

/// Whether two members of that name are the same. `None`: it is not there.
pub(super) fn same(key: &str, one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(alone), None) | (None, Some(alone)) => is_nothing(key, alone),
        (Some(one), Some(other)) if RAW.contains(&key) => one == other,
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| same("", Some(one), Some(other)))
        }
        (Some(one @ Value::Object(_)), Some(other @ Value::Object(_))) => {
            same_members(one, other, &|_| true, MAPS.contains(&key))
        }
        (one, other) => one == other,
    }
}

/// Each member is looked at once: the second look is for what only the other has. The keys of a map say nothing of what they stand for.
fn same_members(one: &Value, other: &Value, counts: &dyn Fn(&str) -> bool, is_map: bool) -> bool {
    cost::step();
    let field = |key| if is_map { "" } else { key };
    members(one)
        .filter(|(key, _)| counts(key))
        .all(|(key, value)| same(field(key), Some(value).filter(|value| !value.is_null()), part(other, key)))
        && members(other)
            .filter(|(key, _)| counts(key) && one.get(*key).is_none())
            .all(|(key, value)| value.is_null() || !is_map && is_nothing(key, value))
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Whether a value says as much as none. What `items` names is a struct, which may hold a list without entries, and an example may be
/// one.
fn is_nothing(key: &str, value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() && !["default", "example", "items"].contains(&key),
        Value::Object(members) => members.is_empty() && MAPS.contains(&key),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn are_same(one: Value, other: Value) -> bool {
        let definition = |schema: Value| json!({"metadata": {"name": schema}, "spec": {"schema": schema}});
        same_content(&definition(one), &definition(other))
    }

    #[test]
    fn lists_and_maps_without_entries_are_as_good_as_none() {
        assert!(are_same(json!({"required": [], "properties": {}, "title": null}), json!({})));
        assert!(!are_same(json!({"externalDocs": {}}), json!({})));
        assert!(!are_same(json!({"default": {}}), json!({})));
        assert!(!are_same(json!({"example": []}), json!({})));
        assert!(!are_same(json!({"allOf": [{"type": "string"}]}), json!({"allOf": [{}]})));
    }

    #[test]
    fn a_property_may_have_the_name_of_a_field() {
        let of = |part: Value| json!({"properties": {"default": part, "properties": {"type": "object"}}});
        assert!(are_same(of(json!({"anyOf": []})), of(json!({}))));
        assert!(!are_same(of(json!({})), json!({"properties": {"properties": {"type": "object"}}})));
    }

    #[test]
    fn items_without_entries_are_a_struct_that_is_there() {
        assert!(!are_same(json!({"items": []}), json!({})));
        assert!(are_same(json!({"items": []}), json!({"items": []})));
    }
}
