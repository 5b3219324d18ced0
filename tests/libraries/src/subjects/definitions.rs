//! CustomResourceDefinitions: what is wrong with one, and what it is warned of.

use kubewright_kinds::definition;
use kubewright_schema::Schema;
use serde_json::{Map, Value, json};

use super::schemas::{self, VERSION};
use super::values;
use crate::dice::Dice;

const TYPE: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";

/// A definition, sometimes one that replaces another. About a third of them are good ones.
pub(super) fn definition(dice: &mut Dice) -> Value {
    let old = whole(dice);
    if dice.chance(65) {
        let mut new = old;
        spoil(dice, &mut new);
        return json!({"new": new});
    }
    let mut new = if dice.chance(60) { old.clone() } else { whole(dice) };
    for _ in 0..=dice.below(2) {
        spoil(dice, &mut new);
    }
    json!({"new": new, "old": old})
}

fn whole(dice: &mut Dice) -> Value {
    let names = ["v1", "v2", "v1beta1"];
    let count = 1 + dice.below(2);
    let versions: Vec<Value> =
        names[..count].iter().enumerate().map(|(at, name)| version(dice, name, at == 0)).collect();
    let mut spec = json!({
        "group": "example.com", "scope": dice.word(&["Namespaced", "Cluster"]), "versions": versions,
        "names": {"plural": "widgets", "kind": "Widget"},
    });
    if dice.chance(20) {
        spec["names"]["shortNames"] = json!(["w"]);
        spec["names"]["categories"] = json!(["all"]);
    }
    if dice.chance(15) {
        let client = if dice.chance(50) {
            json!({"service": {"name": "a", "namespace": "b", "path": "/c"}})
        } else {
            json!({"url": dice.word(&["https://a.b/c", "http://a.b", "https://a.b/c?d"])})
        };
        spec["conversion"] = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", "uid": "u", "resourceVersion": "1"}, "spec": spec,
    })
}

fn version(dice: &mut Dice, name: &str, is_storage: bool) -> Value {
    let mut made = json!({"name": name, "served": true, "storage": is_storage, "schema": {"openAPIV3Schema": schemas::schema(dice)}});
    if dice.chance(30) {
        made["subresources"] = json!({"status": {}});
    }
    if dice.chance(15) {
        made["subresources"]["scale"] =
            json!({"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"});
    }
    if dice.chance(20) {
        made["additionalPrinterColumns"] = json!([{"name": "A", "type": dice.word(&["string", "integer", "date", "x"]), "jsonPath": dice.word(&[".spec.a", ".spec.list[0]", "a", ".spec[", ""])}]);
    }
    if dice.chance(15) {
        made["selectableFields"] = json!([{"jsonPath": dice.word(&[".spec.a", ".spec.b", ".metadata.name", ".spec.list", "spec.a"])}]);
    }
    if dice.chance(8) {
        made["deprecated"] = dice.chance(70).into();
        made["deprecationWarning"] = dice.word(&["gone soon", "", "a\nb"]).into();
    }
    made
}

/// What stands nowhere in a good schema.
const ODD: &[(&str, &str)] = &[
    ("type", "\"object\""),
    ("type", "\"integer\""),
    ("type", "\"null\""),
    ("$ref", "\"#/a\""),
    ("uniqueItems", "true"),
    ("nullable", "true"),
    ("default", "{\"a\":1}"),
    ("default", "\"x\""),
    ("default", "null"),
    ("items", "{\"type\":\"string\"}"),
    ("properties", "{\"a\":{\"type\":\"string\"}}"),
    ("properties", "{\"a\":{}}"),
    ("additionalProperties", "true"),
    ("additionalProperties", "false"),
    ("additionalProperties", "{\"type\":\"string\"}"),
    ("maxLength", "-1"),
    ("minItems", "3"),
    ("maxItems", "2"),
    ("maxProperties", "1"),
    ("pattern", "\"[\""),
    ("pattern", "\"a{1001}\""),
    ("enum", "[]"),
    ("enum", "[\"a\",\"a\"]"),
    ("enum", "[1,null]"),
    ("required", "[\"a\"]"),
    ("required", "[]"),
    ("allOf", "[{\"type\":\"string\"}]"),
    ("anyOf", "[{\"properties\":{\"zz\":{\"minLength\":1}}}]"),
    ("oneOf", "[{\"description\":\"x\"}]"),
    ("not", "{\"default\":1}"),
    ("not", "{\"x-kubernetes-validations\":[{\"rule\":\"true\"}]}"),
    ("allOf", "[{\"x-kubernetes-validations\":[{\"rule\":\"self == oldSelf\"}]}]"),
    ("x-kubernetes-preserve-unknown-fields", "false"),
    ("x-kubernetes-preserve-unknown-fields", "true"),
    ("x-kubernetes-int-or-string", "true"),
    ("x-kubernetes-embedded-resource", "true"),
    ("x-kubernetes-list-type", "\"map\""),
    ("x-kubernetes-list-type", "\"set\""),
    ("x-kubernetes-list-type", "\"x\""),
    ("x-kubernetes-list-map-keys", "[\"a\"]"),
    ("x-kubernetes-list-map-keys", "[\"name\",\"name\"]"),
    ("x-kubernetes-map-type", "\"atomic\""),
    ("x-kubernetes-map-type", "\"x\""),
    ("x-kubernetes-validations", "[{\"rule\":\"\"}]"),
    ("x-kubernetes-validations", "[{\"rule\":\"self.a == 1\",\"message\":\"m\",\"fieldPath\":\".a\"}]"),
    ("x-kubernetes-validations", "[{\"rule\":\"oldSelf == self\",\"optionalOldSelf\":true}]"),
    ("x-kubernetes-validations", "[{\"rule\":\"true\",\"messageExpression\":\"1\"}]"),
    ("x-kubernetes-validations", "[{\"rule\":\"self.all(x, self.all(y, x == y))\"}]"),
    ("x-kubernetes-validations", "[{\"rule\":\"true\",\"optionalOldSelf\":true}]"),
    ("multipleOf", "0"),
    ("format", "\"int-or-string\""),
    ("id", "\"x\""),
    ("definitions", "{\"a\":{}}"),
    ("dependencies", "{\"a\":[\"b\"]}"),
    ("patternProperties", "{\"a\":{}}"),
    ("additionalItems", "true"),
    ("description", "\"d\""),
    ("example", "1"),
    ("externalDocs", "{\"url\":\"x\"}"),
    ("title", "\"t\""),
];

/// Breaks a definition at a place, or at none.
fn spoil(dice: &mut Dice, definition: &mut Value) {
    match dice.below(10) {
        0..=5 => {
            let Some(versions) = definition["spec"]["versions"].as_array_mut().filter(|all| !all.is_empty())
            else {
                return;
            };
            let at = dice.below(versions.len());
            if let Some(schema) = versions[at].pointer_mut("/schema/openAPIV3Schema") {
                spoil_schema(dice, schema);
            }
        }
        6 | 7 => spoil_place(dice, &mut definition["spec"], 0),
        _ => {}
    }
}

fn spoil_schema(dice: &mut Dice, schema: &mut Value) {
    if let Some(inner) = nested(schema).into_iter().rfind(|_| dice.chance(45)) {
        return spoil_schema(dice, inner);
    }
    let (key, value) = ODD[dice.below(ODD.len())];
    if let Some(members) = schema.as_object_mut() {
        if dice.chance(15) {
            if let Some(gone) = members.keys().next().cloned() {
                members.remove(&gone);
            }
        } else {
            members.insert(key.to_owned(), serde_json::from_str(value).expect("it is JSON"));
        }
    }
}

/// The schemas in a schema.
fn nested(schema: &mut Value) -> Vec<&mut Value> {
    let Some(members) = schema.as_object_mut() else { return Vec::new() };
    let mut found = Vec::new();
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => found.extend(properties.values_mut()),
            ("items" | "additionalProperties" | "not", value @ Value::Object(_)) => found.push(value),
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => found.extend(branches),
            _ => {}
        }
    }
    found.retain(|schema| schema.is_object());
    found
}

/// Changes, removes or adds something outside of schemas.
fn spoil_place(dice: &mut Dice, value: &mut Value, depth: usize) {
    const TEXTS: &[&str] = &[
        "",
        "v1",
        "v2",
        "v10alpha1",
        "A_b",
        "widgets",
        "Cluster",
        "None",
        "Webhook",
        "x.y",
        "a/b",
        ".spec.a",
        "autoscaling",
        "é",
        "k8s.io",
    ];
    match value {
        Value::Object(members) => {
            if depth > 0 && dice.chance(15) {
                let odd: Map<String, Value> = [
                    ("storage", json!(true)),
                    ("served", json!(false)),
                    ("deprecated", json!(true)),
                    ("preserveUnknownFields", json!(true)),
                    ("shortNames", json!(["w", "w"])),
                    ("singular", json!("X")),
                    ("listKind", json!("widget")),
                ]
                .map(|(key, value)| (key.to_owned(), value))
                .into_iter()
                .collect();
                let keys: Vec<&str> = odd.keys().map(String::as_str).collect();
                let key = dice.one(&keys).to_owned();
                members.insert(key.clone(), odd[&key].clone());
                return;
            }
            let keys: Vec<String> = members.keys().filter(|key| *key != "schema").cloned().collect();
            if keys.is_empty() {
                return;
            }
            let key = &keys[dice.below(keys.len())];
            if dice.chance(15) {
                members.remove(key);
            } else {
                spoil_place(dice, &mut members[key], depth + 1);
            }
        }
        Value::Array(items) => {
            if items.is_empty() || dice.chance(15) {
                if let Some(first) = items.first().cloned() {
                    items.push(first);
                }
                return;
            }
            if dice.chance(10) {
                items.pop();
                return;
            }
            let at = dice.below(items.len());
            spoil_place(dice, &mut items[at], depth + 1);
        }
        Value::Bool(truth) => *truth = !*truth,
        Value::String(text) => *text = dice.word(TEXTS),
        other => *other = values::any(dice, 0),
    }
}

pub(super) fn judged(case: &Value) -> Value {
    let schema = Schema::of_version(VERSION, TYPE).keeping_empty_maps();
    let read = |definition: &Value| {
        let mut definition = definition.clone();
        schema.decode(&mut definition).ok()?;
        definition::default(&mut definition);
        Some(definition)
    };
    let undecodable = || json!({"undecodable": true});
    let Some(mut new) = read(&case["new"]) else { return undecodable() };
    let old = match case.get("old").filter(|old| !old.is_null()) {
        None => {
            definition::begin(&mut new);
            None
        }
        Some(old) => {
            let Some(mut old) = read(old) else { return undecodable() };
            definition::begin(&mut old);
            new["status"] = old["status"].clone();
            definition::store(&mut new);
            Some(old)
        }
    };
    let errors: Vec<String> =
        definition::validate(&new, old.as_ref()).iter().map(ToString::to_string).collect();
    let warnings =
        if errors.is_empty() { definition::warnings(VERSION, &new, old.as_ref()) } else { Vec::new() };
    json!({"errors": errors, "warnings": warnings})
}
