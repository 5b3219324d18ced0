//! Who owns which fields after several writes.

use std::sync::LazyLock;

use kubewright_kinds::{Conversions, Kinds, KnownVersions};
use kubewright_meta::object;
use kubewright_schema::fields::Write;
use kubewright_schema::{Encoding, Maker};
use serde_json::{Map, Value, json};

use super::schemas::VERSION;
use super::{patches, text};
use crate::dice::Dice;

static KINDS: LazyLock<Kinds> = LazyLock::new(|| Kinds::of_version(VERSION));

/// Types, by their resources, with an object each.
const TYPES: &[(&str, &str, &str)] = &[
    ("v1", "Pod", "pods"),
    ("v1", "Service", "services"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "ServiceAccount", "serviceaccounts"),
    ("v1", "Node", "nodes"),
    ("apps/v1", "Deployment", "deployments"),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings"),
];

/// A type, and one to six writes of it by three managers.
pub(super) fn writes(dice: &mut Dice) -> Value {
    let at = dice.below(TYPES.len());
    let (api_version, kind, _) = TYPES[at];
    let base: Value = serde_json::from_str(patches::TYPES[at].1).expect("it is JSON");
    let mut steps = Vec::new();
    for _ in 0..=dice.below(6) {
        let applies = dice.chance(60);
        let mut object = part(dice, &base, 0);
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        if object["metadata"].is_null() {
            object["metadata"] = json!({});
        }
        object["metadata"]["name"] = "a".into();
        if dice.chance(30) {
            object["metadata"]["labels"] = json!({"l": dice.word(&["1", "2"])});
        }
        steps.push(json!({"manager": dice.word(&["m1", "m2", "m3"]), "apply": applies, "force": applies && dice.chance(40), "object": object}));
    }
    json!({"apiVersion": api_version, "kind": kind, "steps": steps})
}

/// A value with some of its members and items, some of them others.
fn part(dice: &mut Dice, value: &Value, depth: usize) -> Value {
    match value {
        Value::Object(members) => {
            let mut made = Map::new();
            for (key, member) in members {
                let is_key = matches!(
                    key.as_str(),
                    "name" | "port" | "containerPort" | "protocol" | "type" | "uid" | "mountPath" | "key"
                );
                if dice.chance(if is_key || depth < 2 { 95 } else { 65 }) {
                    made.insert(
                        key.clone(),
                        if is_key && dice.chance(85) {
                            member.clone()
                        } else {
                            part(dice, member, depth + 1)
                        },
                    );
                }
            }
            Value::Object(made)
        }
        Value::Array(items) => {
            let mut made = Vec::new();
            for item in items {
                if dice.chance(75) {
                    made.push(part(dice, item, depth + 1));
                }
                if dice.chance(4) {
                    made.push(item.clone());
                }
            }
            if dice.chance(15) {
                made.reverse();
            }
            Value::Array(made)
        }
        Value::String(_) if dice.chance(25) => dice.word(&["x", "y"]).into(),
        Value::Number(_) if dice.chance(25) => dice.below(3).into(),
        _ if dice.chance(3) => Value::Null,
        other => other.clone(),
    }
}

pub(super) fn owned(case: &Value) -> Value {
    let known = TYPES
        .iter()
        .find(|(api_version, kind, _)| *api_version == case["apiVersion"] && *kind == case["kind"]);
    let Some((api_version, kind_name, plural)) = known else { return json!({"none": true}) };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = KINDS.get(group, version, plural).expect("it is a built-in kind");
    let conversions = Conversions::default();
    let versions = KnownVersions { kinds: &KINDS, kind, conversions: &conversions };
    let mut live: Option<Value> = None;
    let mut after = Vec::new();
    for step in case["steps"].as_array().into_iter().flatten() {
        let write = Write {
            versions: &versions,
            manager: text(step, "manager"),
            subresource: "",
            now: "2026-01-01T00:00:00Z",
        };
        let mut object = step["object"].clone();
        object["apiVersion"] = (*api_version).into();
        object["kind"] = (*kind_name).into();
        let applies = step["apply"] == true;
        if applies {
            object = match write.apply(live.as_ref(), &object, step["force"] == true) {
                Ok(applied) => applied,
                Err(why) => {
                    after.push(json!({"error": why.message}));
                    continue;
                }
            };
        }
        let maker = if applies { Maker::Merge } else { Maker::Client };
        if kind.schema().decode_made(&mut object, maker).is_err() {
            after.push(json!({"undecodable": true}));
            continue;
        }
        kind.schema().settle(&mut object);
        if !applies {
            let mut written = object.clone();
            kind.schema().leave_out(&mut written, Encoding::Owned);
            if let Some(complete) = kind.rules.complete.filter(|_| live.is_none()) {
                complete(&mut written);
            }
            write.update(live.as_ref(), &mut written);
            object::copy_meta(&mut object, &written, "managedFields");
        }
        kind.schema().leave_out(&mut object, Encoding::Json);
        after.push(owning(&object));
        live = Some(object);
    }
    json!({"after": after})
}

/// The owners of an object, without since when they are.
fn owning(object: &Value) -> Value {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entry = |entry: &Value| json!({"manager": entry["manager"], "operation": entry["operation"], "fields": entry["fieldsV1"]});
    entries.into_iter().flatten().map(entry).collect()
}
