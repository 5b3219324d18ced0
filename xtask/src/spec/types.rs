//! The types of a version, from its OpenAPI documents: `definitions.txt`, a line of JSON for each type, and `facts.txt`, what
//! the documents say by extensions, enumerations and defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::resources::Resource;

/// Types that no resource has, and requests and answers do.
const SHARED: [&str; 4] = ["DeleteOptions", "ListMeta", "ObjectMeta", "Status"];
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const PREFIX: &str = "io.k8s.";

pub(super) struct Types {
    pub(super) definitions: String,
    pub(super) facts: String,
}

/// Reads the document of OpenAPI v2, and the schemas of v3, which have the defaults.
///
/// # Errors
/// When a kind that is served has no type.
pub(super) fn read(v2: &Value, v3: &Map<String, Value>, resources: &[Resource]) -> Result<Types> {
    let all = v2["definitions"].as_object().context("the document has no definitions")?;
    let mut wanted: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut lists: BTreeMap<&str, [String; 3]> = BTreeMap::new();
    for (name, schema) in all {
        let Some(kinds) = schema["x-kubernetes-group-version-kind"].as_array() else { continue };
        for kind in kinds {
            let kind =
                ["group", "version", "kind"].map(|key| kind[key].as_str().unwrap_or_default().to_owned());
            if resources.iter().any(|resource| resource.kind == kind) {
                open.push(name);
            }
            if kind[2].ends_with("List") {
                lists.insert(name, kind);
            }
        }
    }
    let shared: Vec<String> = SHARED.iter().map(|name| format!("{META}{name}")).collect();
    open.extend(shared.iter().filter_map(|name| all.get_key_value(name)).map(|(name, _)| name.as_str()));
    while let Some(name) = open.pop() {
        if wanted.insert(name) {
            let schema = all.get(name).with_context(|| format!("{name} is referred to and not defined"))?;
            references(schema, &mut open);
        }
    }
    let mut types = Types { definitions: String::new(), facts: String::new() };
    for name in wanted.iter().copied().filter(|name| !lists.contains_key(name)) {
        writeln!(types.definitions, "{name} {}", plain(&all[name])).expect("a String takes it");
    }
    let known = wanted.iter().copied().chain(lists.keys().copied()).collect::<BTreeSet<_>>();
    for name in known {
        let facts = facts(&all[name], v3.get(name).unwrap_or(&Value::Null));
        if let Some(short) = name.strip_prefix(PREFIX).filter(|_| !facts.is_empty()) {
            write!(types.facts, "[{short}]\n{facts}").expect("a String takes it");
        }
    }
    Ok(types)
}

fn references<'a>(schema: &'a Value, open: &mut Vec<&'a str>) {
    match schema {
        Value::Object(map) => {
            open.extend(map.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next()));
            map.values().for_each(|value| references(value, open));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, open)),
        _ => {}
    }
}

/// The schema without what `facts.txt` says.
fn plain(schema: &Value) -> Value {
    let Value::Object(map) = schema else { return schema.clone() };
    let mut made = Map::new();
    for (key, value) in map {
        let value = match key.as_str() {
            "enum" | "default" => continue,
            key if key.starts_with("x-kubernetes-") => continue,
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                Value::Object(fields.map(|(name, field)| (name.clone(), plain(field))).collect())
            }
            "items" | "additionalProperties" => plain(value),
            _ => value.clone(),
        };
        made.insert(key.clone(), value);
    }
    Value::Object(made)
}

fn facts(schema: &Value, defaulted: &Value) -> String {
    let mut text = String::new();
    for kind in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
        let part = |key: &str| kind[key].as_str().unwrap_or_default();
        // Types of meta/v1 are said to be of every group: they are of their own.
        if schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|all| all.len() == 1) {
            writeln!(text, "@kind {}/{}/{}", part("group"), part("version"), part("kind"))
                .expect("a String takes it");
        }
    }
    if schema["x-kubernetes-map-type"] == "atomic" {
        text.push_str("@atomic\n");
    }
    let fields: BTreeMap<&String, &Value> = schema["properties"].as_object().into_iter().flatten().collect();
    for (name, field) in fields {
        let facts = facts_of_field(field, &defaulted["properties"][name]["default"]);
        if !facts.is_empty() {
            writeln!(text, "{name}{facts}").expect("a String takes it");
        }
    }
    text
}

fn facts_of_field(field: &Value, default: &Value) -> String {
    let mut text = String::new();
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            write!(text, " {key}={value}").expect("a String takes it");
        }
    };
    let word = |key: &str| field[key].as_str().unwrap_or_default();
    add("list", word("x-kubernetes-list-type"));
    add("keys", &texts(&field["x-kubernetes-list-map-keys"]).join(","));
    add("map", word("x-kubernetes-map-type"));
    add("strategy", word("x-kubernetes-patch-strategy"));
    add("key", word("x-kubernetes-patch-merge-key"));
    add("enum", &texts(&field["enum"]).join("|"));
    // An empty default says that Go's value is no pointer: fields.txt has that.
    let is_zero = match default {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    if !is_zero {
        add("default", &default.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_type_is_told_once_and_what_it_refers_to_with_it() {
        let kind = json!([{"group": "", "version": "v1", "kind": "Thing"}]);
        let port = json!({"$ref": "#/definitions/io.k8s.api.core.v1.Port"});
        let v2 = json!({"definitions": {
            "io.k8s.api.core.v1.Thing": {"type": "object", "x-kubernetes-group-version-kind": kind, "properties": {
                "ports": {"type": "array", "items": port, "x-kubernetes-list-type": "map",
                          "x-kubernetes-list-map-keys": ["port", "protocol"]}}},
            "io.k8s.api.core.v1.Port": {"properties": {"protocol": {"type": "string", "enum": ["SCTP", "TCP"]}}},
            "io.k8s.api.core.v1.Other": {},
        }});
        let v3 = json!({"io.k8s.api.core.v1.Port": {"properties": {"protocol": {"default": "TCP"}}}});
        let discovered = json!({"items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [
            {"resource": "things", "responseKind": {"kind": "Thing"}}]}]}]});
        let resources = super::super::resources::read(&discovered, &json!({})).unwrap();
        let types = read(&v2, v3.as_object().unwrap(), &resources).unwrap();
        assert_eq!(
            types.facts,
            "[api.core.v1.Port]\nprotocol enum=SCTP|TCP default=\"TCP\"\n\
             [api.core.v1.Thing]\n@kind /v1/Thing\nports list=map keys=port,protocol\n"
        );
        let names: Vec<_> = types.definitions.lines().filter_map(|line| line.split_once(' ')).collect();
        assert_eq!(names[0], ("io.k8s.api.core.v1.Port", r#"{"properties":{"protocol":{"type":"string"}}}"#));
        assert_eq!((names.len(), names[1].0), (2, "io.k8s.api.core.v1.Thing"));
    }
}
