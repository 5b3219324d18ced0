//! Defaults (`apiextensions-apiserver/pkg/apiserver/schema/defaulting`).

use kubewright_meta::cost;
use serde_json::Value;

use super::node::{Additional, Node};

/// Removes the nulls that no schema allows and no default replaces, as Kubernetes does with custom resources before it
/// sets defaults. Where nothing is said of a value, it stays.
pub(super) fn drop_nulls(node: &Node, value: &mut Value) {
    cost::step();
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| match node.field(name) {
                Some(field) if value.is_null() => field.nullable || field.default.is_some(),
                _ => true,
            });
            for (name, value) in fields {
                if let Some(field) = node.field(name) {
                    drop_nulls(field, value);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                list.iter_mut().for_each(|one| drop_nulls(items, one));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Sets the defaults of fields that are absent (or null, where that is no value) in objects that are there.
pub(crate) fn set(node: &Node, value: &mut Value) {
    cost::step();
    let node = node.target();
    match value {
        Value::Object(fields) => {
            for (name, field) in &node.properties {
                if let Some(default) = &field.default
                    && fields.get(&**name).is_none_or(|value| value.is_null() && !field.nullable)
                {
                    fields.insert(name.to_string(), default.clone());
                }
            }
            for (name, value) in fields {
                match (node.properties.get(name.as_str()), &node.additional) {
                    (Some(field), _) => set(field, value),
                    (None, Additional::Of(values)) => element(values, value),
                    _ => {}
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                list.iter_mut().for_each(|one| element(items, one));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn element(node: &Node, value: &mut Value) {
    if value.is_null() && !node.nullable {
        *value = node.default.clone().unwrap_or_default();
    }
    set(node, value);
}

/// Whether nothing is left to do for [`drop_nulls`] and [`set`].
pub(crate) fn is_done(node: &Node, value: &Value) -> bool {
    let node = node.target();
    match value {
        Value::Object(fields) => {
            let mut known = node.properties.iter();
            known.all(|(name, field)| field.default.is_none() || fields.contains_key(&**name))
                && fields.iter().all(|(name, value)| {
                    match (node.properties.get(name.as_str()), &node.additional) {
                        (Some(field), _) | (None, Additional::Of(field)) => is_done_in(field, value),
                        _ => true,
                    }
                })
        }
        Value::Array(list) => match &node.items {
            Some(items) => list.iter().all(|one| is_done_in(items, one)),
            None => true,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn is_done_in(node: &Node, value: &Value) -> bool {
    if value.is_null() { node.nullable } else { is_done(node, value) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::structural;
    use super::*;

    fn defaulted(schema: &Value, mut object: Value) -> Value {
        let node = structural::node(schema);
        drop_nulls(&node, &mut object);
        set(&node, &mut object);
        object
    }

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "text": {"type": "string", "default": "d"},
            "list": {"type": "array", "items": {"type": "string"}, "default": ["x"]},
            "inner": {"type": "object", "default": {}, "properties": {
                "a": {"type": "string", "default": "i"}, "b": {"type": "string"}}},
            "absent": {"type": "object", "properties": {"a": {"type": "string", "default": "i"}}},
            "items": {"type": "array", "items": {"type": "object", "properties": {
                "proto": {"type": "string", "default": "TCP"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {
                "v": {"type": "integer", "default": 1}}}},
            "nullable": {"type": "string", "nullable": true, "default": "nd"},
            "plain": {"type": "string"}}})
    }

    #[test]
    fn defaults_fill_what_is_absent() {
        assert_eq!(
            defaulted(&schema(), json!({})),
            json!({"text": "d", "list": ["x"], "inner": {"a": "i"}, "nullable": "nd"})
        );
    }

    #[test]
    fn what_is_there_stays_and_what_is_in_it_gets_defaults() {
        let given = json!({"text": "", "list": [], "inner": {"b": "x"}, "absent": {}, "items": [{}, {"proto": "UDP"}],
            "map": {"k": {}, "l": {"v": 2}}});
        assert_eq!(
            defaulted(&schema(), given),
            json!({"text": "", "list": [], "inner": {"a": "i", "b": "x"}, "absent": {"a": "i"},
                "items": [{"proto": "TCP"}, {"proto": "UDP"}], "map": {"k": {"v": 1}, "l": {"v": 2}}, "nullable": "nd"})
        );
    }

    #[test]
    fn what_has_its_defaults_is_known_without_setting_them() {
        let schema = schema();
        let node = structural::node(&schema);
        let whole = defaulted(&schema, json!({}));
        assert!(is_done(&node, &whole));
        for (path, change) in [
            ("", json!({})),
            ("/inner", json!({})),
            ("/plain", Value::Null),
            ("/text", Value::Null),
            ("/absent", json!({})),
            ("/items", json!([{"proto": "UDP"}, {}])),
            ("/map", json!({"k": {}})),
        ] {
            let mut lacking = whole.clone();
            match (path.strip_prefix('/'), lacking.as_object_mut()) {
                (Some(field), Some(fields)) => drop(fields.insert(field.to_owned(), change)),
                _ => lacking = change,
            }
            assert!(!is_done(&node, &lacking), "{lacking}");
        }
        assert!(is_done(
            &node,
            &defaulted(&schema, json!({"nullable": null, "unknown": null, "items": [{}]}))
        ));
    }

    #[test]
    fn null_is_a_value_only_where_it_is_allowed() {
        let given = json!({"text": null, "nullable": null, "plain": null, "inner": null, "unknown": null});
        assert_eq!(
            defaulted(&schema(), given),
            json!({"text": "d", "list": ["x"], "inner": {"a": "i"}, "nullable": null, "unknown": null})
        );
    }
}
