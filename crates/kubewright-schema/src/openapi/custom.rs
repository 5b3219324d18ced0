//! What is published of the schema of a custom kind: what its author wrote, in the older grammar or the newer, with what every
//! object has (`k8s.io/apiextensions-apiserver/pkg/controller/openapi/{builder,v2}`).

use kubewright_meta::cost;
use kubewright_spec::Version;
use serde_json::{Map, Value, json};

use super::super::built_in::OBJECT_META;
use super::super::definitions;

/// A type with `apiVersion` and `kind`, which are told in the same words everywhere.
const TYPED: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const EMBEDDED_API_VERSION: &str = "apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND: &str = "kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const UNKNOWN_FIELDS: &str = "x-kubernetes-preserve-unknown-fields";

/// The grammar of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grammar {
    /// OpenAPI v2, as kubectl reads it: a value has one type or none, and what may have unknown fields has no others.
    V2,
    /// OpenAPI v3.
    V3,
}

type Fields = Map<String, Value>;

/// The schema of a kind whose `openAPIV3Schema` is this text.
pub(crate) fn of(version: Version, source: &str, grammar: Grammar) -> Value {
    cost::steps(source.len());
    let Ok(Value::Object(mut schema)) = serde_json::from_str(source) else {
        return json!({"type": "object"});
    };
    if grammar == Grammar::V2 && is(&schema, UNKNOWN_FIELDS) {
        return json!({"type": "object"});
    }
    each(&mut schema, &unfold);
    if grammar == Grammar::V2 {
        each(&mut schema, &older);
    }
    each(&mut schema, &|inner| embed(inner, version, grammar));
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert("metadata".into(), metadata(grammar));
        properties.extend(type_meta(version));
    }
    Value::Object(schema)
}

/// The properties `apiVersion` and `kind` of an object, as OpenAPI documents have them.
#[must_use]
pub fn type_meta(version: Version) -> [(String, Value); 2] {
    let typed = definitions::of(version, TYPED).unwrap_or_default();
    ["apiVersion", "kind"].map(|field| (field.to_owned(), typed["properties"][field].clone()))
}

fn metadata(grammar: Grammar) -> Value {
    match grammar {
        Grammar::V2 => json!({"$ref": format!("#/definitions/{OBJECT_META}"), "description": METADATA}),
        Grammar::V3 => {
            json!({"allOf": [{"$ref": format!("{}{OBJECT_META}", super::COMPONENTS)}], "description": METADATA})
        }
    }
}

fn is(schema: &Fields, flag: &str) -> bool {
    schema.get(flag) == Some(&Value::Bool(true))
}

/// Changes a schema, then those in it that are of values (not what must hold besides, in `allOf` and the like).
fn each(schema: &mut Fields, change: &dyn Fn(&mut Fields)) {
    change(schema);
    for inner in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(inner) {
            each(inner, change);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().filter_map(Value::as_object_mut).for_each(|inner| each(inner, change));
    }
}

/// What is a number or a text says so in the words of JSON schema, too (`Structural.Unfold`).
fn unfold(schema: &mut Fields) {
    if !is(schema, "x-kubernetes-int-or-string") {
        return;
    }
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let first_of_all = schema.get("allOf").and_then(|all| all.get(0)?.get("anyOf"));
    if schema.get("anyOf") == Some(&either) || first_of_all == Some(&either) {
        return;
    }
    if schema.contains_key("anyOf") {
        let all = schema.entry("allOf").or_insert_with(|| json!([]));
        if let Some(all) = all.as_array_mut() {
            all.insert(0, json!({"anyOf": either}));
        }
    } else {
        schema.insert("anyOf".into(), either);
    }
}

/// Without what the older grammar does not have, and what kubectl cannot read in it (`ToStructuralOpenAPIV2`).
fn older(schema: &mut Fields) {
    for dropped in ["allOf", "oneOf", "anyOf", "not", "default"] {
        schema.remove(dropped);
    }
    let nullable = is(schema, "nullable");
    let keeps_unknown = is(schema, UNKNOWN_FIELDS);
    schema.remove("nullable");
    if nullable || keeps_unknown {
        schema.remove("items");
        schema.remove("properties");
    }
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let list_of_anything = kind == "array" && !schema.contains_key("items");
    if nullable || list_of_anything || (keeps_unknown && kind == "object") {
        schema.remove("type");
    }
    let may_be_null =
        |inner: Option<&Value>| inner.and_then(Value::as_object).is_some_and(|inner| is(inner, "nullable"));
    if may_be_null(schema.get("additionalProperties")) {
        schema.remove("required");
    }
    let properties = schema.get("properties").cloned().unwrap_or_default();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !may_be_null(name.as_str().and_then(|name| properties.get(name))));
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

/// What is an object of its own has what every object has (`addEmbeddedProperties`).
fn embed(schema: &mut Fields, version: Version, grammar: Grammar) {
    let open = grammar == Grammar::V2 && is(schema, UNKNOWN_FIELDS);
    if open || !is(schema, "x-kubernetes-embedded-resource") {
        return;
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        let described = type_meta(version).into_iter().zip([EMBEDDED_API_VERSION, EMBEDDED_KIND]);
        for ((field, mut typed), description) in described {
            typed["description"] = description.into();
            properties.insert(field, typed);
        }
        properties.insert("metadata".into(), metadata(grammar));
    }
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        for field in ["kind", "apiVersion"] {
            if !required.iter().any(|name| name == field) {
                required.push(field.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(schema: &Value, grammar: Grammar) -> Value {
        of(Version::DEFAULT, &schema.to_string(), grammar)
    }

    #[test]
    fn what_every_object_has_is_told_in_the_words_of_kubernetes() {
        for grammar in [Grammar::V2, Grammar::V3] {
            let schema = published(&json!({"type": "object"}), grammar);
            let words = |field: &str| {
                schema["properties"][field]["description"].as_str().unwrap_or_default().to_owned()
            };
            assert!(
                words("apiVersion")
                    .starts_with("APIVersion defines the versioned schema of this representation")
            );
            assert!(words("kind").starts_with("Kind is a string value representing the REST resource"));
            assert_eq!(words("metadata"), METADATA);
        }
    }

    #[test]
    fn a_kind_that_keeps_unknown_fields_is_any_object_in_the_older_grammar() {
        let schema =
            json!({"type": "object", UNKNOWN_FIELDS: true, "properties": {"spec": {"type": "object"}}});
        assert_eq!(published(&schema, Grammar::V2), json!({"type": "object"}));
        assert!(published(&schema, Grammar::V3)["properties"]["spec"].is_object());
    }

    #[test]
    fn the_older_grammar_says_nothing_of_what_it_cannot_say() {
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "required": ["a", "b"],
            "anyOf": [{"required": ["a"]}],
            "properties": {
                "a": {"type": "string", "nullable": true},
                "b": {"type": "integer", "default": 3},
                "list": {"type": "array"},
                "open": {"type": "object", UNKNOWN_FIELDS: true, "properties": {"x": {"type": "string"}}},
                "port": {"x-kubernetes-int-or-string": true},
            },
        }}});
        let spec = &published(&schema, Grammar::V2)["properties"]["spec"];
        assert_eq!(
            spec,
            &json!({"type": "object", "required": ["b"], "properties": {
                "a": {},
                "b": {"type": "integer"},
                "list": {},
                "open": {UNKNOWN_FIELDS: true},
                "port": {"x-kubernetes-int-or-string": true},
            }})
        );
        let spec = &published(&schema, Grammar::V3)["properties"]["spec"];
        assert_eq!(spec["properties"]["port"]["anyOf"], json!([{"type": "integer"}, {"type": "string"}]));
        assert_eq!(spec["required"], json!(["a", "b"]));
    }

    #[test]
    fn an_object_in_an_object_has_what_every_object_has() {
        let schema = json!({"type": "object", "properties": {"inner": {
            "type": "object", "x-kubernetes-embedded-resource": true, "required": ["kind", "spec"],
        }}});
        let inner = &published(&schema, Grammar::V3)["properties"]["inner"];
        assert_eq!(inner["required"], json!(["kind", "spec", "apiVersion"]));
        assert_eq!(inner["properties"]["kind"]["description"], EMBEDDED_KIND);
    }
}
