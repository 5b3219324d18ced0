//! Schemas as OpenAPI v3: those of built-in kinds from the tables of Kubernetes' types, those of custom kinds
//! from what their author wrote.

mod custom;

use std::collections::BTreeMap;

use kubewright_spec::Version;
use serde_json::{Map, Value, json};

use super::built_in::OBJECT_META;
use super::definitions;
use super::facts::Facts;
use super::zeros::Zeros;

pub use custom::type_meta;
pub(crate) use custom::{Grammar, of as published};

const COMPONENTS: &str = "#/components/schemas/";

/// A reference to a built-in type; it and all that it refers to are put into `components`.
pub(crate) fn built_in(version: Version, name: &str, components: &mut BTreeMap<String, Value>) -> Value {
    let mut asked = vec![name.to_owned()];
    while let Some(name) = asked.pop() {
        // What is there already need not be made again.
        if components.contains_key(&name) {
            continue;
        }
        let Some(mut definition) = definitions::of(version, &name) else { continue };
        refer(&mut definition, &mut asked);
        add_facts(version, &name, &mut definition);
        components.insert(name, definition);
    }
    json!({"$ref": format!("{COMPONENTS}{name}")})
}

/// What is published of a custom kind, whose metadata is put into `components`.
pub(crate) fn custom(version: Version, source: &str, components: &mut BTreeMap<String, Value>) -> Value {
    built_in(version, OBJECT_META, components);
    custom::of(version, source, Grammar::V3)
}

/// Turns references of OpenAPI v2 into those of v3, which have nothing beside them: what stands beside goes around them. The names of
/// the types are put into `asked`.
fn refer(schema: &mut Value, asked: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref") {
                let name = reference.rsplit('/').next().unwrap_or_default().to_owned();
                *reference = format!("{COMPONENTS}{name}");
                asked.push(name);
                if fields.len() > 1
                    && let Some(reference) = fields.remove("$ref")
                {
                    fields.insert("allOf".into(), json!([{"$ref": reference}]));
                }
                return;
            }
            fields.values_mut().for_each(|field| refer(field, asked));
        }
        Value::Array(list) => list.iter_mut().for_each(|item| refer(item, asked)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What the table of facts says of a type.
fn add_facts(version: Version, name: &str, definition: &mut Value) {
    let facts = Facts::of(version, name);
    let Some(fields) = definition.as_object_mut() else { return };
    if let Some((group, version, kind)) = facts.served_as() {
        fields.insert(
            "x-kubernetes-group-version-kind".into(),
            json!([{"group": group, "version": version, "kind": kind}]),
        );
    }
    if facts.atomic() {
        fields.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
    let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) else { return };
    Zeros::of(version, name).document(properties);
    for (field, schema) in properties {
        if let Some(schema) = schema.as_object_mut() {
            add_field_facts(facts.field(field), schema);
        }
    }
}

fn add_field_facts(facts: super::facts::FieldFacts, schema: &mut Map<String, Value>) {
    if schema.contains_key("$ref")
        && let Some(reference) = schema.remove("$ref")
    {
        schema.insert("allOf".into(), json!([{"$ref": reference}]));
    }
    if let Some(merge) = facts.merge {
        let mut say = |key: &str, value: Option<Value>| value.map(|value| schema.insert(key.into(), value));
        say("x-kubernetes-list-type", merge.list.map(|kind| kind.name().into()));
        say("x-kubernetes-map-type", merge.map.map(|kind| kind.name().into()));
        say("x-kubernetes-list-map-keys", (!merge.keys.is_empty()).then(|| json!(merge.keys)));
        say("x-kubernetes-patch-strategy", merge.patch_strategy.map(|text| json!(text)));
        say("x-kubernetes-patch-merge-key", merge.patch_key.map(|text| json!(text)));
    }
    if !facts.enumeration.is_empty() {
        schema.insert("enum".into(), json!(facts.enumeration));
    }
    if let Some(default) = facts.default {
        schema.insert("default".into(), default);
    }
}
