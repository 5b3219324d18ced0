//! What is written, read back by the same table: nothing of a document is left out. That the table is gnostic's own is told by
//! `tests/envtest-go/suite/openapi_test.go`.

use kubewright_codec::protobuf::wire::{Reader, Wire};
use kubewright_kinds::Kinds;
use serde_json::json;

use super::*;
use crate::openapi;

fn decode(of: &Message, bytes: &[u8]) -> Value {
    let mut reader = Reader::new(bytes);
    let (mut object, mut list) = (Map::new(), Vec::new());
    while let Some((number, wire)) = reader.field().expect("a field") {
        match of.fields() {
            Fields::OneOf(cases) => {
                let case = cases.iter().find(|case| case.number == number).expect("a case");
                return decoded(case.of, wire);
            }
            Fields::All(fields) => {
                match fields.iter().find(|field| field.number == number).expect("known").from {
                    From::Member(name, of) => drop(object.insert(name.to_owned(), decoded(of, wire))),
                    From::List(name, of) => {
                        let items = object.entry(name).or_insert_with(|| json!([])).as_array_mut();
                        items.expect("a list").push(decoded(of, wire));
                    }
                    From::Itself(of) => list.push(decoded(of, wire)),
                    From::Members(_, of) => {
                        let mut pair = Reader::new(wire.bytes("pair").expect("a message"));
                        let (_, name) = pair.field().expect("a name").expect("a name");
                        let value =
                            pair.field().expect("a value").map_or(json!(null), |(_, wire)| decoded(of, wire));
                        object.insert(name.text("name").expect("text"), value);
                    }
                }
            }
        }
    }
    match (of.fields(), list.len()) {
        (Fields::OneOf(_), _) => Value::Null,
        (_, 0) => object.into(),
        (_, 1) => list.remove(0),
        _ => list.into(),
    }
}

fn decoded(of: Type, wire: Wire<'_>) -> Value {
    match of {
        Type::Text => wire.text("x").expect("text").into(),
        Type::Bool => (wire.varint("x").expect("a bool") != 0).into(),
        Type::Int64 => wire.varint("x").expect("a number").cast_signed().into(),
        Type::Double => json!(wire.double("x").expect("a double")),
        Type::Any => {
            let mut any = Reader::new(wire.bytes("x").expect("a message"));
            let (number, yaml) = any.field().expect("a field").expect("a field");
            assert_eq!(number, 2);
            serde_json::from_str(&yaml.text("yaml").expect("text")).expect("JSON")
        }
        Type::Message(of) => decode(of, wire.bytes("x").expect("a message")),
    }
}

/// Without what the messages do not tell from nothing: zeros, empty lists, and in v3 a default that is no scalar.
fn without_zeros(value: &Value, version: OpenApi) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().map(|(name, member)| (name.clone(), without_zeros(member, version)));
            let is_kept = |(name, member): &(String, Value)| {
                let default =
                    version == OpenApi::V3 && name == "default" && (member.is_object() || member.is_array());
                let scalar = !matches!(&**name, "default" | "additionalProperties") && is_zero(member);
                !default
                    && !scalar
                    && !member.is_null()
                    && member.as_array().is_none_or(|list| !list.is_empty())
            };
            kept.filter(is_kept).collect::<Map<_, _>>().into()
        }
        Value::Array(list) => list.iter().map(|item| without_zeros(item, version)).collect(),
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}

fn round(version: OpenApi, document: &Value) {
    let root = if version == OpenApi::V2 { "2.Document" } else { "3.Document" };
    let read = decode(Message::named(root).expect("a message"), &encode(version, document));
    let (read, whole) = (without_zeros(&read, version), without_zeros(document, version));
    // The whole of it would fill the terminal.
    if read != whole {
        let difference = json_patch::diff(&whole, &read).to_string();
        panic!("{}", &difference[..difference.floor_char_boundary(4000)]);
    }
}

#[test]
fn nothing_of_the_documents_of_built_in_kinds_is_left_out() {
    let kinds = Kinds::built_in();
    round(OpenApi::V2, &openapi::swagger(&kinds));
    for (group, version) in [("", "v1"), ("apps", "v1"), ("apiextensions.k8s.io", "v1"), ("batch", "v1")] {
        round(OpenApi::V3, &openapi::document(&kinds, group, version).expect("it is served"));
    }
}

#[test]
fn what_a_schema_may_say_is_written_as_gnostic_has_it() {
    let schema = json!({
        "type": "object", "required": ["a"], "minProperties": 1, "maxProperties": 9,
        "properties": {
            "a": {"type": "string", "default": "x", "enum": ["x", "y"], "pattern": "^x", "minLength": 1, "maxLength": 9},
            "b": {"type": "integer", "format": "int64", "default": -3, "minimum": -4.5, "maximum": 9, "multipleOf": 0.5},
            "c": {"type": "array", "items": {"type": "boolean", "default": true}, "maxItems": 3, "uniqueItems": true},
            "x-d": {"type": "object", "additionalProperties": {"$ref": "#/y"}, "x-kubernetes-map-type": "atomic"},
            "$ref": {"type": "object", "additionalProperties": true, "example": {"any": [1, null, "\u{85}"]}},
            "e": {"type": "object", "additionalProperties": false},
            "h": {"type": "string", "default": ""},
            "i": {"type": "boolean", "default": false},
            "j": {"type": "number", "default": 0},
            "f": {"x-kubernetes-int-or-string": true, "title": "f", "externalDocs": {"url": "u"}},
        },
        "x-kubernetes-validations": [{"rule": "self.a != ''"}],
    });
    round(OpenApi::V3, &json!({"openapi": "3.0.0", "components": {"schemas": {"s": schema.clone()}}}));
    let mut schema = schema;
    schema["properties"]["g"] = json!({"type": "object", "default": {"a": [1]}});
    let parameters = json!([
        {"name": "a", "in": "query", "type": "integer", "uniqueItems": true},
        {"name": "b", "in": "path", "type": "string", "required": true},
        {"name": "c", "in": "header", "type": "string"},
        {"name": "d", "in": "body", "schema": {"$ref": "#/s"}},
        {"$ref": "#/parameters/e"},
    ]);
    let operation = json!({"operationId": "o", "responses": {"200": {"description": "OK", "schema": {"type": "string"}}}});
    round(
        OpenApi::V2,
        &json!({
            "swagger": "2.0", "definitions": {"s": schema},
            "paths": {"/a": {"get": operation, "parameters": parameters, "x-of-path": 1}, "x-of-paths": {}},
            "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
            "security": [{"BearerToken": ["a", "b"]}],
        }),
    );
}

#[test]
fn what_is_no_document_is_no_danger() {
    for nonsense in
        [json!(null), json!(7), json!([[[]]]), json!({"definitions": 3, "paths": {"/a": [], "b": 1}})]
    {
        assert!(encode(OpenApi::V2, &nonsense).len() < 50);
        assert!(encode(OpenApi::V3, &nonsense).len() < 50);
    }
}
