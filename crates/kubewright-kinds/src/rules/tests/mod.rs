//! The rules of kinds, from the outside: good objects pass, and each mistake is told in Kubernetes' words.

mod config;
mod flow;
mod generation;
mod metadata;
mod networking;
mod pods;
mod properties;
mod samples;
mod small_groups;
mod storage;

mod versions;
mod warnings;
mod workloads;

use std::sync::Arc;

use kubewright_spec::Version;
use serde_json::{Value, json};

use super::Rules;

/// A kind: group, version, plural.
type Kind = (&'static str, &'static str, &'static str);

const CLUSTER_WIDE: [&str; 25] = [
    "clusterrolebindings",
    "clusterroles",
    "certificatesigningrequests",
    "clustertrustbundles",
    "csidrivers",
    "csinodes",
    "flowschemas",
    "ingressclasses",
    "ipaddresses",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "namespaces",
    "nodes",
    "persistentvolumes",
    "priorityclasses",
    "prioritylevelconfigurations",
    "runtimeclasses",
    "servicecidrs",
    "storageclasses",
    "storageversionmigrations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "volumeattachments",
];

fn rules(kind: Kind) -> Rules {
    served(kind).rules
}

fn served(kind: Kind) -> Arc<crate::Kind> {
    // The words are those of v1.36; what it does not have, v1.37 does.
    let of = |version| crate::Kinds::of_version(version).get(kind.0, kind.1, kind.2).cloned();
    of(Version::V1_36).or_else(|| of(Version::V1_37)).expect("a served kind")
}

fn is_namespaced(kind: Kind) -> bool {
    !CLUSTER_WIDE.contains(&kind.2) && kind.2 != "volumeattributesclasses"
}

/// The object as it would be stored: with defaults and what the server gives it.
fn made(kind: Kind, object: &Value) -> Value {
    let mut object = object.clone();
    let rules = rules(kind);
    (rules.default)(&mut object);
    if object.get("metadata").is_none() {
        object["metadata"] = json!({"name": "a"});
    }
    if object["metadata"].get("name").is_none() {
        object["metadata"]["name"] = json!("a");
    }
    if is_namespaced(kind) && object["metadata"].get("namespace").is_none() {
        object["metadata"]["namespace"] = json!("default");
    }
    object["metadata"]["uid"] = json!("6b1e4f3c-0000-4000-8000-000000000001");
    (rules.prepare_create)(&mut object);
    if let Some(complete) = rules.complete {
        complete(&mut object);
    }
    if kind.2 == "services" {
        // As the server does where it gives addresses.
        super::services::list_cluster_ip(&mut object);
    }
    object
}

/// What is said when the object is created.
fn refused(kind: Kind, object: &Value) -> Vec<String> {
    messages(&rules(kind).errors_on_create(&made(kind, object), is_namespaced(kind)))
}

/// What is said when a stored object is changed; each sentence once.
fn change_refused(kind: Kind, object: &Value, change: impl FnOnce(&mut Value)) -> Vec<String> {
    let old = made(kind, object);
    let mut new = old.clone();
    change(&mut new);
    let rules = rules(kind);
    (rules.default)(&mut new);
    (rules.prepare_update)(&mut new, &old);
    let mut said = messages(&rules.errors_on_update(&new, &old, is_namespaced(kind)));
    let mut seen = Vec::new();
    said.retain(|sentence| {
        let first = !seen.contains(sentence);
        seen.push(sentence.clone());
        first
    });
    said
}

fn messages(errors: &[kubewright_meta::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// The object with the value at a JSON pointer replaced (or, by `null`, removed).
fn with(object: &Value, pointer: &str, value: Value) -> Value {
    let mut object = object.clone();
    set(&mut object, pointer, value);
    object
}

fn set(object: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    match object.pointer_mut(parent) {
        Some(Value::Array(items)) => {
            let index: usize = key.parse().unwrap_or(usize::MAX);
            if index < items.len() { items[index] = value } else { items.push(value) }
        }
        Some(parent) if value.is_null() => super::fill::remove(parent, key),
        Some(parent) => parent[key] = value,
        None => panic!("nothing at {parent} in {object}"),
    }
}

/// Checks that each change of a good object is refused with exactly these words.
fn each_is_refused(kind: Kind, good: &Value, cases: &[(&str, Value, &[&str])]) {
    assert_eq!(refused(kind, good), Vec::<String>::new(), "the good {} itself", kind.2);
    for (pointer, value, words) in cases {
        assert_eq!(
            refused(kind, &with(good, pointer, value.clone())),
            *words,
            "{} {pointer} = {value}",
            kind.2
        );
    }
}

/// Checks that each change of a stored object is refused with exactly these words.
fn each_change_is_refused(kind: Kind, good: &Value, cases: &[(&str, Value, &[&str])]) {
    assert_eq!(change_refused(kind, good, |_| {}), Vec::<String>::new(), "the unchanged {}", kind.2);
    for (pointer, value, words) in cases {
        let said = change_refused(kind, good, |object| set(object, pointer, value.clone()));
        let said: Vec<&str> = said.iter().map(|sentence| without_difference(sentence)).collect();
        assert_eq!(said, *words, "{} {pointer} = {value}", kind.2);
    }
}

/// What is said without the lines that show how two structs differ (`rules/structs.rs` has their tests).
fn without_difference(sentence: &str) -> &str {
    sentence.find("@@ -").map_or(sentence, |at| &sentence[..at])
}
