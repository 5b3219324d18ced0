//! Values and edits out of dice: what a schema allows, and what it does not.

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

use crate::corpus::Corpus;
use crate::edit::{Change, Edit, Step};
use crate::schema::Served;

/// Texts that some rule or other stumbles over.
const TEXTS: &[&str] = &[
    "a",
    "web",
    "",
    "A_b",
    "-bad",
    "example.com/x",
    "10.0.0.1",
    "1",
    "100m",
    "true",
    "a.b.c",
    "x y",
    "http",
    "ü",
    "1Gi",
    "*",
    "0",
    "example.com",
    "a/b/c",
    "64",
    "50%",
    "2026-01-01T00:00:00Z",
    "fd00::1",
    "UDP",
    "None",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];
const NUMBERS: &[i64] =
    &[0, 1, -1, 2, 3, 5, 30, 80, 8080, 65535, 65536, 100, 101, 2_147_483_647, 2_147_483_648, -5];

/// What values are made of.
pub(crate) struct Maker<'a> {
    pub(crate) served: &'a Served,
    pub(crate) corpus: &'a Corpus,
}

impl Maker<'_> {
    /// A value of a schema, in a field of that name.
    pub(crate) fn value(&self, rng: &mut ChaCha8Rng, schema: &Value, field: &str, depth: usize) -> Value {
        let schema = self.served.resolve(schema);
        if rng.random_bool(0.5)
            && let Some(known) = self.corpus.values(field).choose(rng)
            && fits(schema, known)
        {
            return known.clone();
        }
        if let Some(options) = schema["enum"].as_array()
            && let Some(option) = options.choose(rng)
        {
            return option.clone();
        }
        let format = schema["format"].as_str().unwrap_or_default();
        if format == "int-or-string" || schema["x-kubernetes-int-or-string"] == true {
            return if rng.random_bool(0.5) {
                json!(NUMBERS.choose(rng))
            } else {
                json!(["50%", "http", "1", "100m", "150%", ""].choose(rng))
            };
        }
        if schema["oneOf"].is_array() {
            return json!(["1", "100m", "1Gi", "0", "-1", "1.5", "abc", "1e3"].choose(rng));
        }
        match schema["type"].as_str() {
            Some("string") if format == "date-time" => {
                json!(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456Z", "2026-01-01"].choose(rng))
            }
            Some("string") if format == "byte" => json!(["YQ==", "", "a", "AAEC"].choose(rng)),
            Some("string") => json!(TEXTS.choose(rng)),
            Some("integer") => json!(NUMBERS.choose(rng)),
            Some("number") => json!([0.5, 1.0, -2.25, 100.0].choose(rng)),
            Some("boolean") => json!(rng.random_bool(0.5)),
            Some("array") if depth > 0 => Value::Array(
                (0..rng.random_range(0..3))
                    .map(|_| self.value(rng, &schema["items"], field, depth - 1))
                    .collect(),
            ),
            Some("array") => json!([]),
            _ => self.object(rng, schema, depth),
        }
    }

    fn object(&self, rng: &mut ChaCha8Rng, schema: &Value, depth: usize) -> Value {
        let mut members = Map::new();
        if let Some(properties) = schema["properties"].as_object() {
            let required: Vec<&str> =
                schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let more = if depth > 0 { (2.0 / properties.len().max(2) as f64).min(1.0) } else { 0.0 };
            for (name, property) in properties {
                if required.contains(&name.as_str()) || rng.random_bool(more) {
                    members.insert(name.clone(), self.value(rng, property, name, depth.saturating_sub(1)));
                }
            }
        } else if schema["additionalProperties"].is_object() {
            for _ in 0..rng.random_range(0..3) {
                let key = TEXTS.choose(rng).copied().unwrap_or("a");
                members.insert(
                    key.to_owned(),
                    self.value(rng, &schema["additionalProperties"], "", depth.saturating_sub(1)),
                );
            }
        }
        Value::Object(members)
    }

    /// An edit of an object's own fields (all but type and metadata) that its schema may allow, or not if it is to be broken.
    pub(crate) fn edit(
        &self,
        rng: &mut ChaCha8Rng,
        schema: Option<&Value>,
        object: &Value,
        broken: bool,
    ) -> Edit {
        let mut places = Vec::new();
        let nothing = Value::Null;
        let schema = schema.map_or(&nothing, |schema| self.served.resolve(schema));
        for (key, value) in object
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| !["apiVersion", "kind", "metadata"].contains(&key.as_str()))
        {
            self.walk(
                &mut vec![Step::Key(key.clone())],
                value,
                &schema["properties"][key.as_str()],
                &mut places,
            );
        }
        if places.is_empty() || rng.random_bool(0.08) {
            let names: Vec<&String> = schema["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name)
                .filter(|name| !["apiVersion", "kind", "metadata"].contains(&name.as_str()))
                .collect();
            if let Some(name) = names.choose(rng) {
                let value = self.value(rng, &schema["properties"][name.as_str()], name, 3);
                return Edit { path: vec![Step::Key((*name).clone())], change: Change::Set(value) };
            }
        }
        let Some((path, value, schema)) = places.choose(rng) else { return metadata_edit(rng) };
        if broken { self.break_at(rng, path, value) } else { self.change_at(rng, path, value, schema) }
    }

    fn walk<'v>(
        &'v self,
        path: &mut Vec<Step>,
        value: &'v Value,
        schema: &'v Value,
        places: &mut Vec<(Vec<Step>, &'v Value, &'v Value)>,
    ) {
        let schema = self.served.resolve(schema);
        places.push((path.clone(), value, schema));
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    let inner = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
                    path.push(Step::Key(key.clone()));
                    self.walk(path, value, inner, places);
                    path.pop();
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    path.push(Step::Index(index));
                    self.walk(path, value, &schema["items"], places);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    fn change_at(&self, rng: &mut ChaCha8Rng, path: &[Step], value: &Value, schema: &Value) -> Edit {
        let mut path = path.to_vec();
        let field = path
            .iter()
            .rev()
            .find_map(|step| if let Step::Key(key) = step { Some(key.clone()) } else { None })
            .unwrap_or_default();
        match value {
            Value::Object(_) if schema["properties"].is_object() => {
                let names: Vec<&String> =
                    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
                if let Some(name) = names.choose(rng) {
                    path.push(Step::Key((*name).clone()));
                    let value = self.value(rng, &schema["properties"][name.as_str()], name, 3);
                    return Edit { path, change: Change::Set(value) };
                }
                Edit { path, change: Change::Remove }
            }
            Value::Object(members) => {
                let known = members.keys().next().filter(|_| rng.random_bool(0.5));
                path.push(Step::Key(known.map_or_else(|| "added".to_owned(), Clone::clone)));
                let change = if rng.random_bool(0.3) {
                    Change::Remove
                } else {
                    Change::Set(self.value(rng, &schema["additionalProperties"], &field, 2))
                };
                Edit { path, change }
            }
            Value::Array(items) => {
                let index = rng.random_range(0..=items.len());
                let item = match items.first() {
                    Some(item) if rng.random_bool(0.5) => {
                        let mut item = item.clone();
                        if let Some(name) = item.get_mut("name") {
                            *name = json!("other");
                        }
                        item
                    }
                    _ => self.value(rng, &schema["items"], &field, 3),
                };
                path.push(Step::Index(index));
                Edit {
                    path,
                    change: if index < items.len() && rng.random_bool(0.4) {
                        Change::Remove
                    } else {
                        Change::Insert(item)
                    },
                }
            }
            _ if rng.random_bool(0.15) => Edit { path, change: Change::Remove },
            _ => Edit { path, change: Change::Set(self.value(rng, schema, &field, 2)) },
        }
    }

    fn break_at(&self, rng: &mut ChaCha8Rng, path: &[Step], value: &Value) -> Edit {
        let mut path = path.to_vec();
        let change = match (value, rng.random_range(0..4)) {
            (Value::Object(_), 0 | 1) => {
                path.push(Step::Key("unknownField".into()));
                Change::Set(json!(1))
            }
            (Value::Array(items), 0 | 1) if !items.is_empty() => {
                path.push(Step::Index(0));
                Change::Insert(items[0].clone())
            }
            (_, 0) => Change::Remove,
            (_, 1) => Change::Set(Value::Null),
            _ => Change::Set(
                [
                    json!("text"),
                    json!(7),
                    json!(true),
                    json!({}),
                    json!([]),
                    json!({"a": "b"}),
                    json!(["a"]),
                    json!(1.5),
                    json!(""),
                ]
                .choose(rng)
                .cloned()
                .unwrap_or_default(),
            ),
        };
        Edit { path, change }
    }
}

/// Whether a value may be what a schema means, by its type and the names of its members.
pub(crate) fn fits(schema: &Value, value: &Value) -> bool {
    match (schema["type"].as_str(), value) {
        (Some("object"), Value::Object(members)) => match schema["properties"].as_object() {
            Some(properties) => members.iter().all(|(name, value)| {
                properties.get(name).is_some_and(|schema| {
                    schema.get("$ref").is_some() || schema.get("allOf").is_some() || fits(schema, value)
                })
            }),
            None => {
                schema["additionalProperties"].is_object()
                    && members.values().all(|value| fits(&schema["additionalProperties"], value))
            }
        },
        (Some("array"), Value::Array(items)) => items.iter().all(|item| {
            schema["items"].get("$ref").is_some()
                || schema["items"].get("allOf").is_some()
                || fits(&schema["items"], item)
        }),
        (Some("string"), Value::String(_))
        | (Some("boolean"), Value::Bool(_))
        | (Some("integer" | "number"), Value::Number(_)) => true,
        (None, Value::String(_) | Value::Number(_)) => schema.get("properties").is_none(),
        _ => false,
    }
}

/// An edit of metadata.
pub(crate) fn metadata_edit(rng: &mut ChaCha8Rng) -> Edit {
    let set = |path: &str, value: Value| Edit::at(path, Change::Set(value));
    match rng.random_range(0..24) {
        0 | 1 => set("metadata.labels.a", json!(["b", "c", "bad value", ""].choose(rng))),
        2 => set("metadata.labels", json!({"x/y": "z"})),
        3 => set("metadata.labels", json!({"Bad Key": "z"})),
        4 | 5 => set("metadata.annotations.note", json!(["1", "2", ""].choose(rng))),
        6 => set("metadata.annotations", Value::Null),
        7 => set("metadata.finalizers", json!(["example.com/hold"])),
        8 => set("metadata.finalizers", json!(["bad"])),
        9 => set("metadata.finalizers", json!([])),
        10 => set(
            "metadata.ownerReferences",
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-2222-3333-4444-555555555555"}]),
        ),
        11 => set(
            "metadata.ownerReferences",
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": ""}]),
        ),
        12 => set("metadata.uid", json!("11111111-2222-3333-4444-555555555555")),
        13 => set("metadata.resourceVersion", json!(["1", "abc", "", "0"].choose(rng))),
        14 => set("metadata.generation", json!(7)),
        15 => set("metadata.creationTimestamp", json!("2020-01-01T00:00:00Z")),
        16 => set("metadata.deletionTimestamp", json!("2020-01-01T00:00:00Z")),
        17 => set("metadata.managedFields", json!([])),
        18 => set("metadata.name", json!("another")),
        19 => set("metadata.namespace", json!("another")),
        20 => set("metadata.generateName", json!("gen-")),
        21 => set("metadata.unknown", json!(1)),
        22 => set("metadata.deletionGracePeriodSeconds", json!(5)),
        _ => set("metadata.labels.b", Value::Null),
    }
}
