//! Patches: RFC 6902 and strategic merge patches.

use std::sync::Arc;

use kubewright_meta::ApiError;
use kubewright_schema::Schema;
use kubewright_schema::patch::{JSON, Patch, STRATEGIC};
use serde_json::{Map, Value, json};

use super::{text, values};
use crate::dice::Dice;

pub(super) fn operations(dice: &mut Dice) -> Value {
    let object = json!({"a": values::any(dice, 3), "l": [values::any(dice, 2), 1, "x"], "m": {"b": values::any(dice, 2), "~/": 1}});
    let mut all = Vec::new();
    for _ in 0..=dice.below(4) {
        let mut operation = Map::new();
        operation.insert(
            "op".into(),
            dice.word(&["add", "remove", "replace", "move", "copy", "test", "add", "replace", "Add", ""])
                .into(),
        );
        operation.insert("path".into(), path(dice).into());
        if dice.chance(70) {
            operation.insert("value".into(), values::any(dice, 2));
        }
        if dice.chance(40) {
            operation.insert("from".into(), path(dice).into());
        }
        if dice.chance(3) {
            operation.remove("op");
        }
        if dice.chance(3) {
            operation.insert("path".into(), values::any(dice, 1));
        }
        all.push(Value::Object(operation));
    }
    json!({"patch": Value::Array(all).to_string(), "object": object})
}

fn path(dice: &mut Dice) -> String {
    const STEPS: &[&str] = &[
        "/a", "/l", "/m", "/b", "/0", "/1", "/-", "/2", "/3", "/-1", "/~0~1", "/~2", "/", "/01", "/x", "/c",
    ];
    let start = dice.word(&["", "", "", "/l", "/m", "x", "/a"]);
    start + &dice.text(3, STEPS)
}

pub(super) fn operated(case: &Value) -> Value {
    let patch = match Patch::parse(JSON, text(case, "patch").as_bytes(), None) {
        Ok(Patch::Change(change)) => change,
        Ok(Patch::Apply(_)) | Err(_) => return json!({"undecodable": true}),
    };
    patch.apply(&case["object"]).map_or_else(|_| json!({"refused": true}), |object| json!({"object": object}))
}

/// Types with lists that are merged by keys or as sets, maps, and what retains keys; what stands at some of their places.
pub(super) const TYPES: &[(&str, &str)] = &[
    (
        "io.k8s.api.core.v1.Pod",
        r#"{"spec":{"containers":[{"name":"a","image":"i","ports":[{"containerPort":1,"protocol":"TCP"}],"env":[{"name":"x","value":"1"}],"args":["1"]},{"name":"b"}],"volumes":[{"name":"v","emptyDir":{}}],"tolerations":[{"key":"k"}],"imagePullSecrets":[{"name":"s"}]}}"#,
    ),
    (
        "io.k8s.api.core.v1.Service",
        r#"{"spec":{"ports":[{"port":80,"name":"a"},{"port":81,"name":"b"}],"externalIPs":["1.2.3.4"],"selector":{"a":"b"}}}"#,
    ),
    (
        "io.k8s.api.core.v1.ConfigMap",
        r#"{"data":{"a":"1","b":"2"},"metadata":{"finalizers":["x/a","x/b"],"ownerReferences":[{"uid":"1","name":"n"}],"labels":{"l":"1"}}}"#,
    ),
    (
        "io.k8s.api.core.v1.ServiceAccount",
        r#"{"secrets":[{"name":"a"},{"name":"b"}],"imagePullSecrets":[{"name":"c"}]}"#,
    ),
    (
        "io.k8s.api.core.v1.Node",
        r#"{"spec":{"podCIDRs":["a"],"taints":[{"key":"a","effect":"x"}]},"status":{"addresses":[{"type":"A","address":"1"}],"conditions":[{"type":"Ready","status":"True"}]}}"#,
    ),
    (
        "io.k8s.api.apps.v1.Deployment",
        r#"{"spec":{"replicas":1,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}},"template":{"spec":{"containers":[{"name":"a","volumeMounts":[{"mountPath":"/a","name":"v"}]}]}}}}"#,
    ),
    (
        "io.k8s.api.networking.v1.NetworkPolicy",
        r#"{"spec":{"ingress":[{"from":[{"podSelector":{}}]}],"policyTypes":["Ingress"]}}"#,
    ),
    (
        "io.k8s.api.rbac.v1.ClusterRoleBinding",
        r#"{"subjects":[{"kind":"User","name":"a"}],"roleRef":{"name":"r"}}"#,
    ),
];

pub(super) fn strategic(dice: &mut Dice) -> Value {
    let (name, start) = TYPES[dice.below(TYPES.len())];
    let object: Value = serde_json::from_str(start).expect("it is JSON");
    // Of several mistakes Go tells one by chance: there is one directive, or two.
    let mut directives = 1 + dice.below(2);
    json!({"type": name, "patch": change(dice, &object, 0, &mut directives), "object": object})
}

/// Something that changes a value: part of it, with so many directives at most.
fn change(dice: &mut Dice, value: &Value, depth: usize, left: &mut usize) -> Value {
    match value {
        Value::Object(members) => {
            let mut made = Map::new();
            for (key, member) in members {
                if dice.chance(if depth < 2 { 80 } else { 60 }) {
                    made.insert(key.clone(), change(dice, member, depth + 1, left));
                }
                if member.is_array() && directs(dice, left, 12) {
                    made.insert(format!("$setElementOrder/{key}"), order(dice, member));
                }
                if member.is_array() && directs(dice, left, 8) {
                    made.insert(format!("$deleteFromPrimitiveList/{key}"), order(dice, member));
                }
            }
            if depth > 0 && directs(dice, left, 12) {
                made.insert("$patch".into(), dice.word(&["delete", "replace", "merge", "x"]).into());
            }
            if depth > 0 && directs(dice, left, 10) {
                let keys: Vec<Value> =
                    members.keys().filter(|_| dice.chance(60)).map(|key| key.clone().into()).collect();
                made.insert("$retainKeys".into(), Value::Array(keys));
            }
            if dice.chance(8) {
                made.insert(dice.word(&["added", "name", "type"]), values::any(dice, 1));
            }
            Value::Object(made)
        }
        Value::Array(items) => {
            let mut made: Vec<Value> = Vec::new();
            for item in items {
                if dice.chance(70) {
                    made.push(if dice.chance(30) {
                        item.clone()
                    } else {
                        change(dice, item, depth + 1, left)
                    });
                }
            }
            if directs(dice, left, 15) {
                made.push(json!({"$patch": dice.word(&["replace", "delete", "merge"])}));
            }
            if dice.chance(20) {
                made.push(items.first().map_or(Value::Null, |first| renamed(dice, first)));
            }
            if made.len() > 1 && dice.chance(20) {
                made.reverse();
            }
            Value::Array(made)
        }
        other if dice.chance(60) => match other {
            Value::String(_) => dice.word(&["x", "a", "b", ""]).into(),
            _ => 7.into(),
        },
        other if dice.chance(50) => other.clone(),
        _ if dice.chance(70) => Value::Null,
        _ => values::any(dice, 1),
    }
}

/// Whether there is one directive more.
fn directs(dice: &mut Dice, left: &mut usize, percent: u32) -> bool {
    let directs = *left > 0 && dice.chance(percent);
    *left -= usize::from(directs);
    directs
}

/// An item like another one, with another key.
fn renamed(dice: &mut Dice, item: &Value) -> Value {
    let mut made = item.clone();
    match &mut made {
        Value::Object(members) => {
            for value in members.values_mut() {
                if dice.chance(60) {
                    *value = match value {
                        Value::String(_) => dice.word(&["z", "b", "c"]).into(),
                        Value::Number(_) => dice.below(100).into(),
                        _ => continue,
                    };
                }
            }
        }
        other => *other = dice.word(&["z", "x/c"]).into(),
    }
    made
}

/// The keys of a list, in some order.
fn order(dice: &mut Dice, list: &Value) -> Value {
    let mut items = list.as_array().cloned().unwrap_or_default();
    items.retain(|_| dice.chance(80));
    if dice.chance(50) {
        items.reverse();
    }
    for item in &mut items {
        if let Value::Object(members) = item {
            members.retain(|key, _| {
                matches!(
                    key.as_str(),
                    "name" | "port" | "uid" | "type" | "containerPort" | "mountPath" | "key"
                )
            });
        }
    }
    if dice.chance(10) {
        items.push(json!({"name": "new"}));
    }
    Value::Array(items)
}

pub(super) fn merged(case: &Value) -> Value {
    let schema = Arc::new(Schema::built_in(text(case, "type").to_owned()));
    let refused = |error: ApiError| json!({"error": error.message});
    let change = match Patch::parse(STRATEGIC, case["patch"].to_string().as_bytes(), Some(&schema)) {
        Ok(Patch::Change(change)) => change,
        Ok(Patch::Apply(_)) => return json!({"error": "it is a configuration"}),
        Err(error) => return refused(error),
    };
    change.apply(&case["object"]).map_or_else(refused, |object| json!({"object": object}))
}
