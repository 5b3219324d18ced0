//! Schemas made structural: what `apiextensions.k8s.io/v1` asks of them (`pkg/apiserver/schema/structural.go` there).

use serde_json::{Value, json};

use super::object::{Members, Note};

/// What a schema must not have any more.
const FORBIDDEN: [&str; 8] = [
    "$ref",
    "$schema",
    "id",
    "definitions",
    "dependencies",
    "patternProperties",
    "additionalItems",
    "deprecated",
];
/// What combines schemas: inside of these nothing but values is looked at.
const JUNCTORS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// What only the schema itself may say, not those that are combined into it.
const STRUCTURE: [&str; 6] = [
    "type",
    "description",
    "default",
    "additionalProperties",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
];

/// Changes a schema so that it is structural; `place` says where it is.
pub(super) fn make_structural(schema: &mut Value, place: &str, notes: &mut Vec<Note>) {
    let Some(members) = schema.as_object_mut() else { return };
    for forbidden in FORBIDDEN {
        if members.remove(forbidden).is_some() {
            notes.push(Note::Lost(format!("{forbidden} in the {place}")));
        }
    }
    if members.get("uniqueItems") == Some(&json!(true)) {
        members.remove("uniqueItems");
        notes.push(Note::Lost(format!("uniqueItems in the {place}")));
    }
    int_or_string(members);
    whole_schema_of_items(members, place, notes);
    if members.contains_key("properties") && members.remove("additionalProperties").is_some() {
        notes.push(Note::Lost(format!("additionalProperties beside properties in the {place}")));
    }
    let is_int_or_string = members.contains_key("x-kubernetes-int-or-string");
    if !members.contains_key("type") && !is_int_or_string {
        let guessed = match () {
            () if members.contains_key("items") => Some("array"),
            () if members.contains_key("properties") || members.contains_key("additionalProperties") => {
                Some("object")
            }
            () => members.get("enum").and_then(|all| all.get(0)).and_then(type_of),
        };
        match guessed {
            Some(guessed) => members.insert("type".to_owned(), json!(guessed)),
            None if place.contains('.') => {
                members.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true))
            }
            None => members.insert("type".to_owned(), json!("object")),
        };
    }
    for junctor in JUNCTORS {
        for part in members.get_mut(junctor).and_then(Value::as_array_mut).into_iter().flatten() {
            if !is_int_or_string {
                values_only(part, &format!("{junctor} in the {place}"), notes);
            }
        }
    }
    if let Some(not) = members.get_mut("not") {
        values_only(not, &format!("not in the {place}"), notes);
    }
    for (name, property) in members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        make_structural(property, &format!("{place}.{name}"), notes);
    }
    for within in ["items", "additionalProperties"] {
        if let Some(inner) = members.get_mut(within) {
            make_structural(inner, &format!("{place}.{within}"), notes);
        }
    }
}

/// A number or a text, as v1beta1 says it in three ways.
fn int_or_string(members: &mut Members) {
    let by_format = members.get("format") == Some(&json!("int-or-string"));
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let by_choice = !members.contains_key("type")
        && members.get("anyOf").or_else(|| members.get("oneOf")).is_some_and(|of| {
            let types = |value: &Value| -> Option<Vec<String>> {
                let mut types: Vec<String> = value
                    .as_array()?
                    .iter()
                    .filter_map(|part| Some(part["type"].as_str()?.to_owned()))
                    .collect();
                types.sort();
                Some(types)
            };
            types(of) == types(&either)
        });
    if by_format || by_choice {
        for gone in ["type", "format", "anyOf", "oneOf"] {
            members.remove(gone);
        }
        members.insert("x-kubernetes-int-or-string".to_owned(), json!(true));
    }
}

/// One schema for each place of a list: there is one for all.
fn whole_schema_of_items(members: &mut Members, place: &str, notes: &mut Vec<Note>) {
    if let Some(Value::Array(all)) = members.get_mut("items") {
        let any = json!({"x-kubernetes-preserve-unknown-fields": true});
        let first = if all.len() == 1 { all.remove(0) } else { any };
        members.insert("items".to_owned(), first);
        notes.push(Note::Lost(format!("a schema for each item in the {place}: all have one")));
    }
}

/// Takes what only the schema around may say.
fn values_only(schema: &mut Value, place: &str, notes: &mut Vec<Note>) {
    let Some(members) = schema.as_object_mut() else { return };
    for structure in STRUCTURE.iter().chain(&FORBIDDEN) {
        if members.remove(*structure).is_some() && !["description", "type"].contains(structure) {
            notes.push(Note::Lost(format!("{structure} inside of {place}")));
        }
    }
    for (name, property) in members.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        values_only(property, &format!("{name} of {place}"), notes);
    }
    for junctor in JUNCTORS {
        for part in members.get_mut(junctor).and_then(Value::as_array_mut).into_iter().flatten() {
            values_only(part, place, notes);
        }
    }
    for within in ["items", "not"] {
        if let Some(inner) = members.get_mut(within) {
            values_only(inner, place, notes);
        }
    }
}

fn type_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("boolean"),
        Value::Number(number) if number.is_i64() => Some("integer"),
        Value::Number(_) => Some("number"),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
