//! Any JSON, and any structural schema: for the tests of this crate and of those that make kinds of definitions.

use proptest::prelude::*;
use serde_json::{Value, json};

/// Any JSON, with names that schemas and resources use.
pub(crate) fn json() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        4 => prop::sample::select(vec![
            "a", "b", "c", "type", "properties", "items", "additionalProperties", "required", "default", "enum", "anyOf",
            "allOf", "not", "pattern", "format", "spec", "metadata", "status", "names", "versions", "schema",
            "openAPIV3Schema", "conditions", "kind", "group", "labels", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
            "template", "containers", "replicas", "acceptedNames", "storedVersions", "subresources", "scale",
        ]).prop_map(str::to_owned),
        1 => ".{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300).prop_map(Value::from),
        (0..5_i64).prop_map(Value::from),
        prop::sample::select(vec!["object", "array", "string", "integer", "map", "set", "v1", "x", ""])
            .prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A structural schema.
pub(crate) fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "default": "d"})),
        Just(json!({"type": "string", "nullable": true, "maxLength": 3, "pattern": "^[a-z]*$"})),
        Just(json!({"type": "string", "format": "date-time", "enum": ["2024-01-01T00:00:00Z", "x"]})),
        Just(json!({"type": "integer", "format": "int32", "minimum": 0, "multipleOf": 2})),
        Just(json!({"type": "number", "maximum": 1.5, "exclusiveMaximum": true, "default": 0})),
        Just(json!({"type": "boolean"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        Just(
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true})
        ),
        Just(
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "maxItems": 2})
        ),
        Just(
            json!({"type": "array", "items": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]})
        ),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let field = prop::sample::select(vec!["a", "b", "c", "spec"]).prop_map(str::to_owned);
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.clone().prop_map(|values| json!({"type": "object", "additionalProperties": values})),
            (prop::collection::btree_map(field, inner, 1..4), any::<bool>()).prop_map(
                |(fields, demanding)| {
                    let mut schema = json!({"type": "object", "properties": fields});
                    if demanding {
                        schema["required"] = json!(["a"]);
                        schema["anyOf"] = json!([{"required": ["b"]}, {"not": {"minProperties": 2}}]);
                    }
                    schema
                }
            ),
        ]
    })
}
