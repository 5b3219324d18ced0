//! Objects of built-in kinds: what becomes of one that is created, or that replaces another, or whose status does; what is wrong with it,
//! and what it is warned of. The strategies of kube-apiserver say so in Go, without a cluster and without admission.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use kubewright_kinds::{Kind, Kinds, Role, encode};
use kubewright_meta::{FieldError, object};
use kubewright_schema::{Additional, Encoding, Node, Type};
use serde_json::{Value, json};

use super::schemas::VERSION;
use super::text;
use crate::dice::Dice;

static KINDS: LazyLock<Kinds> = LazyLock::new(|| Kinds::of_version(VERSION));

/// Objects that a real API server took.
static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let of = |text: &str| serde_json::from_str::<Vec<Value>>(text).expect("a list of objects");
    let mut all = of(include_str!("../../../differ/src/corpus.json"));
    all.extend(of(include_str!("../../../differ/src/sweep/objects.json")));
    all.retain(|object| kind_of(object).is_some());
    all
});

/// What stood in fields of a name.
static VALUES: LazyLock<BTreeMap<String, Vec<Value>>> = LazyLock::new(|| {
    let mut known = BTreeMap::new();
    OBJECTS.iter().for_each(|object| remember(&mut known, "", object));
    known
});

fn remember(known: &mut BTreeMap<String, Vec<Value>>, name: &str, value: &Value) {
    let values = known.entry(name.to_owned()).or_default();
    if !values.contains(value) {
        values.push(value.clone());
    }
    match value {
        Value::Object(members) => members.iter().for_each(|(key, member)| remember(known, key, member)),
        Value::Array(items) => items.iter().for_each(|item| remember(known, name, item)),
        _ => {}
    }
}

fn kind_of(object: &Value) -> Option<&'static Arc<Kind>> {
    KINDS
        .iter()
        .find(|kind| kind.kind == text(object, "kind") && kind.api_version() == text(object, "apiVersion"))
}

/// When every object was made, and what time it is.
const NOW: &str = "2025-06-07T08:09:10Z";

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
    "..",
    "/a",
    "https://a.b/c",
    "cpu",
    "self == 1",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];
const NUMBERS: &[i64] = &[0, 1, -1, 2, 3, 5, 30, 80, 8080, 65535, 65536, 100, 101, 2_147_483_647, -5];

/// An object of a built-in kind, changed in one place or several; sometimes one that replaces another.
pub(super) fn write(dice: &mut Dice) -> Value {
    let base = &OBJECTS[dice.below(OBJECTS.len())];
    let kind = kind_of(base).expect("it is of a kind");
    let mut new = base.clone();
    new["metadata"]["name"] = base["metadata"]["name"].as_str().unwrap_or("a").into();
    match dice.below(100) {
        0..45 => {
            change(dice, kind, &mut new, &|key| key != "status");
            json!({"new": new})
        }
        45..60 if kind.has_status() => {
            let old = new.clone();
            change(dice, kind, &mut new, &|key| key == "status");
            json!({"new": new, "old": old, "status": true})
        }
        _ => {
            if dice.chance(40) {
                change(dice, kind, &mut new, &|key| key != "status");
            }
            let old = new.clone();
            change(dice, kind, &mut new, &|key| key != "status");
            json!({"new": new, "old": old})
        }
    }
}

/// Changes an object in up to four places below those of its fields.
fn change(dice: &mut Dice, kind: &Kind, object: &mut Value, is_wanted: &dyn Fn(&str) -> bool) {
    let schema = kind.schema();
    let root = schema.root().target();
    for _ in 0..=dice.below(4) {
        let fields: Vec<&str> = root
            .properties
            .keys()
            .map(AsRef::as_ref)
            .filter(|key| !matches!(*key, "apiVersion" | "kind" | "metadata") && is_wanted(key))
            .collect();
        if fields.is_empty() || !is_wanted("status") && dice.chance(4) {
            object["metadata"][dice.word(&["labels", "annotations"])] =
                json!({dice.word(&["a", "x/y", "Bad Key", "a/b/c"]): dice.word(TEXTS)});
            continue;
        }
        // What there is is changed more often than what there is not.
        let there: Vec<&str> = fields.iter().copied().filter(|field| object.get(field).is_some()).collect();
        let is_new = there.is_empty() || dice.chance(8);
        let field = dice.one(if is_new { &fields } else { &there });
        let node = &root.properties[field];
        match object.get_mut(field) {
            Some(value) => change_in(dice, node, field, value, 0),
            None => object[field] = made(dice, node, field, 3),
        }
    }
}

/// Changes a value, or one below it.
fn change_in(dice: &mut Dice, node: &Node, name: &str, value: &mut Value, depth: usize) {
    let node = node.target();
    match value {
        Value::Object(members) if !members.is_empty() && dice.chance(if depth == 0 { 90 } else { 72 }) => {
            let keys: Vec<String> = members.keys().cloned().collect();
            let key = &keys[dice.below(keys.len())];
            if let (Some(below), Some(member)) = (node.field(key), members.get_mut(key)) {
                if dice.chance(10) {
                    members.remove(key);
                } else {
                    change_in(dice, below, key, member, depth + 1);
                }
            }
        }
        Value::Object(members) => {
            let fields: Vec<&str> = node.properties.keys().map(AsRef::as_ref).collect();
            if fields.is_empty() {
                if let Additional::Of(values) = &node.additional {
                    members.insert(dice.word(TEXTS), made(dice, values, name, 2));
                }
            } else {
                let field = dice.one(&fields);
                members.insert(field.to_owned(), made(dice, &node.properties[field], field, 3));
            }
        }
        Value::Array(items) => {
            let Some(of) = &node.items else { return };
            let at = dice.below(items.len() + 1);
            match dice.below(10) {
                0 if at < items.len() => drop(items.remove(at)),
                1 | 2 if at < items.len() => items.insert(at, items[at].clone()),
                3 | 4 => items.insert(at, made(dice, of, name, 3)),
                _ if at < items.len() => change_in(dice, of, name, &mut items[at], depth + 1),
                _ => items.insert(at, made(dice, of, name, 3)),
            }
        }
        _ => *value = made(dice, node, name, 2),
    }
}

/// A value of a schema, in a field of that name.
fn made(dice: &mut Dice, node: &Node, name: &str, depth: usize) -> Value {
    let node = node.target();
    if dice.chance(45) {
        let known = VALUES.get(name).map_or(&[][..], Vec::as_slice);
        let fitting: Vec<&Value> = known.iter().filter(|value| fits(node, value)).collect();
        if !fitting.is_empty() {
            return dice.one(&fitting).clone();
        }
    }
    if !node.enumeration.is_empty() {
        return node.enumeration[dice.below(node.enumeration.len())].clone();
    }
    if node.int_or_string {
        return match dice.chance(50) {
            true => NUMBERS[dice.below(NUMBERS.len())].into(),
            false => dice.word(&["50%", "http", "1", "100m", "150%", ""]).into(),
        };
    }
    match (node.kind, node.format.as_deref()) {
        (Some(Type::String), Some("date-time")) => "2026-01-01T00:00:00Z".into(),
        (Some(Type::String), Some("byte")) => dice.word(&["YQ==", "", "AAEC"]).into(),
        (Some(Type::String), _) if node.name.as_deref().is_some_and(|name| name.ends_with("Quantity")) => {
            dice.word(&["1", "100m", "1Gi", "0", "-1", "1.5", "1e3"]).into()
        }
        (Some(Type::String), _) => dice.word(TEXTS).into(),
        (Some(Type::Integer), _) => NUMBERS[dice.below(NUMBERS.len())].into(),
        (Some(Type::Number), _) => json!(0.5),
        (Some(Type::Boolean), _) => dice.chance(50).into(),
        (Some(Type::Array), _) => match &node.items {
            Some(of) if depth > 0 => (0..dice.below(3)).map(|_| made(dice, of, name, depth - 1)).collect(),
            _ => json!([]),
        },
        _ => {
            let mut object = json!({});
            let many = node.properties.len().max(2);
            for (field, below) in &node.properties {
                let is_required = node.required.contains(field);
                if is_required || depth > 0 && dice.below(many) < 2 {
                    object[&**field] = made(dice, below, field, depth.saturating_sub(1));
                }
            }
            if let Additional::Of(values) = &node.additional {
                for _ in 0..dice.below(3) {
                    object[dice.word(TEXTS)] = made(dice, values, "", depth.saturating_sub(1));
                }
            }
            object
        }
    }
}

/// Whether a value may be what a schema means, by its type and the names of its members.
fn fits(node: &Node, value: &Value) -> bool {
    let node = node.target();
    match (node.kind, value) {
        (Some(Type::Object), Value::Object(members)) => {
            members.iter().all(|(name, member)| node.field(name).is_some_and(|below| fits(below, member)))
        }
        (Some(Type::Array), Value::Array(items)) => {
            node.items.as_ref().is_some_and(|of| items.iter().all(|item| fits(of, item)))
        }
        (Some(Type::String), Value::String(_))
        | (Some(Type::Boolean), Value::Bool(_))
        | (Some(Type::Integer | Type::Number), Value::Number(_)) => true,
        (None, Value::String(_) | Value::Number(_)) => node.int_or_string,
        _ => false,
    }
}

/// What we say of it.
pub(super) fn judged(case: &Value) -> Value {
    let Some(kind) = kind_of(&case["new"]) else { return json!({"none": "no such kind"}) };
    let Some(new) = decoded(kind, &case["new"]) else { return json!({"undecodable": true}) };
    if case["old"].is_null() {
        return answer(kind, created(kind, new));
    }
    let old = decoded(kind, &case["old"]).and_then(|old| created(kind, old).ok());
    let Some(old) = old else { return json!({"none": "the old one is not good"}) };
    let mut old = old.object;
    // What has no entries is not stored, and no update is compared with it.
    kind.schema().leave_out(&mut old, Encoding::Protobuf);
    read_back(kind, &mut old);
    let old: Value = serde_json::from_slice(&encode::bytes(kind, &old)).unwrap_or_default();
    let Some(mut old) = decoded(kind, &old) else { return json!({"none": "the old one is not read"}) };
    object::set_meta(&mut old, "resourceVersion", Some("1".into()));
    answer(kind, replaced(kind, new, &old, case["status"] == true))
}

fn answer(kind: &Kind, outcome: Result<Made, Vec<String>>) -> Value {
    match outcome {
        Ok(made) => made.told(kind),
        Err(errors) => json!({"errors": errors}),
    }
}

/// An error, without what is different between two pods, which is told of structs.
fn told(error: &FieldError) -> String {
    let text = error.to_string();
    text.split_once("\n@@").map_or(text.as_str(), |(told, _)| told).to_owned()
}

/// A good object, and what it is warned of.
struct Made {
    object: Value,
    warnings: Vec<String>,
}

impl Made {
    fn told(mut self, kind: &Kind) -> Value {
        for field in ["uid", "creationTimestamp", "managedFields"] {
            object::set_meta(&mut self.object, field, None);
        }
        if let Some(complete) = kind.rules.complete {
            complete(&mut self.object);
        }
        kind.schema().leave_out(&mut self.object, Encoding::Json);
        read_back(kind, &mut self.object);
        let object: Value = serde_json::from_slice(&encode::bytes(kind, &self.object)).unwrap_or_default();
        json!({"object": timeless(object), "warnings": self.warnings})
    }
}

/// A value without the times of now, as Go says them.
fn timeless(value: Value) -> Value {
    match value {
        Value::Object(members) => members.into_iter().map(|(key, member)| (key, timeless(member))).collect(),
        Value::Array(items) => items.into_iter().map(timeless).collect(),
        Value::String(text) if text == NOW => "now".into(),
        other => other,
    }
}

/// Takes an object through the version that it is stored in.
fn read_back(kind: &Kind, object: &mut Value) {
    if !kind.is_storage() {
        kind.to_storage(object);
        kind.to_served(object);
    }
}

/// An object as it is read: typed and defaulted.
fn decoded(kind: &Kind, object: &Value) -> Option<Value> {
    let mut object = object.clone();
    kind.schema().decode(&mut object).ok()?;
    kind.schema().default(&mut object);
    kind.rules.default(&mut object);
    kind.schema().settle(&mut object);
    Some(object)
}

fn created(kind: &Kind, mut object: Value) -> Result<Made, Vec<String>> {
    if kind.namespaced() {
        object::set_meta(&mut object, "namespace", Some("default".into()));
    }
    object::set_meta(&mut object, "creationTimestamp", Some(NOW.into()));
    object::set_meta(&mut object, "uid", Some("u".into()));
    let generation = kind.rules.generation.counts().then(|| 1.into());
    object::set_meta(&mut object, "generation", generation);
    if kind.has_status() && !kind.behaviour.born_with_status && kind.behaviour.role != Role::Pod {
        object::as_map(&mut object).remove("status");
    }
    let mut warnings = Vec::new();
    kind.rules.early_warnings(&object, &mut warnings);
    kind.rules.prepare_create(&mut object);
    kind.rules.stamp(&mut object, None, NOW);
    let found = kind.rules.errors_on_create(&object, kind.namespaced());
    if !found.is_empty() {
        return Err(found.iter().map(told).collect());
    }
    warnings.extend(kind.rules.warnings(&object, None));
    if let Some(complete) = kind.rules.complete {
        complete(&mut object);
    }
    Ok(Made { object, warnings })
}

fn replaced(kind: &Kind, mut next: Value, old: &Value, is_status: bool) -> Result<Made, Vec<String>> {
    if let Some(complete) = kind.rules.complete {
        complete(&mut next);
    }
    if kind.namespaced() {
        object::set_meta(&mut next, "namespace", Some("default".into()));
    }
    for field in ["creationTimestamp", "resourceVersion", "generation", "uid"] {
        object::copy_meta(&mut next, old, field);
    }
    let mut warnings = Vec::new();
    let found = if is_status {
        let written = std::mem::replace(&mut next, old.clone());
        object::copy_member(&mut next, &written, "status");
        for field in kind.behaviour.metadata_of_status_writes {
            object::copy_meta(&mut next, &written, field);
        }
        kind.rules.prepare_status(&mut next, old);
        kind.rules.stamp(&mut next, Some(old), NOW);
        kind.rules.errors_on_status(&next, old, kind.namespaced())
    } else {
        if kind.has_status() {
            object::copy_member(&mut next, old, "status");
        }
        kind.rules.prepare_update(&mut next, old);
        kind.rules.stamp(&mut next, Some(old), NOW);
        kind.rules.errors_on_update(&next, old, kind.namespaced())
    };
    if !found.is_empty() {
        return Err(found.iter().map(told).collect());
    }
    if !is_status {
        warnings.extend(kind.rules.warnings(&next, Some(old)));
        if kind.rules.generation.raised(&next, old) {
            object::set_meta(&mut next, "generation", Some((object::generation(old) + 1).into()));
        }
    }
    Ok(Made { object: next, warnings })
}
