//! The final state of a namespace as both sides can have it: without what a side chooses by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::compare::{Difference, differ};
use crate::controllers::mirror::Room;
use crate::ordered::Ordered;

/// Objects by kind and masked name; several of one name are sorted.
pub(crate) type State = BTreeMap<(String, String), Vec<Value>>;

/// What is never compared of an object's metadata.
const UNTOLD: &[&str] = &["uid", "resourceVersion", "managedFields", "selfLink", "creationTimestamp"];
/// Values of a side's own, by the key.
const OWN: &[&str] = &[
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "healthCheckNodePort",
    "podIP",
    "podIPs",
    "hostIP",
    "hostIPs",
    "pod-template-hash",
    "controller-revision-hash",
    "controller.kubernetes.io/hash",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "endpoints.kubernetes.io/hash",
    "certificate",
    "request",
    "ca.crt",
    "token",
    "batch.kubernetes.io/controller-uid",
    "controller-uid",
    "nodeName",
    "volume.kubernetes.io/selected-node",
    "terminationMessagePath",
    "podCIDR",
    "podCIDRs",
    "cronjob-scheduled-timestamp",
    "startTime",
    "finishedAt",
    "startedAt",
    "resourceVersion",
    "service-account.uid",
    "kubernetes.io/service-account.uid",
];
/// Reasons of events whose message quotes the client library, values of Go, or the nodes of a side.
const QUOTING: &[&str] = &[
    "FailedScheduling",
    "UnmanagedPods",
    "FailedGetResourceMetric",
    "FailedComputeMetricsReplicas",
    "FailedGetContainerResourceMetric",
    "FailedGetPodsMetric",
    "FailedGetObjectMetric",
    "FailedGetExternalMetric",
    "Scheduled",
];

#[expect(clippy::expect_used, reason = "a constant")]
static STEPS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r" from \d+ to \d+").expect("a pattern"));

/// What is there, masked.
pub(crate) fn state(room: &Room, run: &str) -> State {
    let mut state = State::new();
    let failed = room.objects.iter().any(|((kind, _), object)| {
        *kind == "Pod" && ["Failed", "Succeeded"].iter().any(|phase| object["status"]["phase"] == *phase)
    });
    for ((kind, name), object) in &room.objects {
        // An Endpoints object keeps a pod that ended for a while.
        if *kind == "Endpoints" && failed {
            continue;
        }
        let told = match *kind {
            "Event" if is_by_chance(object) => continue,
            "Event" => event(room, run, object),
            "CertificateSigningRequest" => masked(room, run, "", &request(object)),
            "EndpointSlice" | "Endpoints" | "ReplicaSet" => masked(room, run, "", &settled(object)),
            "Pod" => masked(room, run, "", &pod(object)),
            "Node" => masked(room, run, "", &node(object)),
            _ => masked(room, run, "", object),
        };
        let name = if *kind == "Event" { String::new() } else { room.names.text(run, name) };
        state.entry(((*kind).to_owned(), name)).or_default().push(told);
    }
    for list in state.values_mut() {
        list.sort_by_key(Value::to_string);
        list.dedup_by(|one, other| one == other && one["kind"] == "Event");
    }
    state
}

/// A message to where it begins to tell structs, as Go prints them.
pub(crate) fn without_structs(message: String) -> String {
    let begins = ["pod updates may not change fields", "Invalid value: {"];
    match begins.iter().filter_map(|text| message.find(text)).min() {
        Some(at) => message.chars().take(message[..at].chars().count()).collect(),
        None => message,
    }
}

fn event(room: &Room, run: &str, object: &Value) -> Value {
    let text = |value: &Value| room.names.text(run, value.as_str().unwrap_or_default());
    let reason = text(&object["reason"]);
    let message = if reason == "ScalingReplicaSet" {
        // In how many steps depends on which pods were ready first.
        STEPS.replace(&text(&object["message"]), "").into_owned()
    } else if QUOTING.contains(&reason.as_str()) {
        "<message>".into()
    } else {
        without_structs(text(&object["message"]))
    };
    let component = [&object["source"]["component"], &object["reportingComponent"]]
        .into_iter()
        .find_map(|value| value.as_str().filter(|text| !text.is_empty()));
    json!({
        "kind": "Event",
        "about": format!("{} {}", text(&object["involvedObject"]["kind"]), text(&object["involvedObject"]["name"])),
        "type": object["type"], "reason": reason, "message": message, "component": component,
    })
}

/// Addresses are repaired by what other stories do; whose write comes first is chance.
fn is_by_chance(object: &Value) -> bool {
    let modified =
        object["message"].as_str().is_some_and(|text| text.contains("the object has been modified"));
    let by = |component: &Value| component == "ipallocator-repair-controller";
    // kube-scheduler drops events when it has many to write; where a pod is says the same.
    let scheduled = object["reason"] == "Scheduled";
    modified || scheduled || by(&object["reportingComponent"]) || by(&object["source"]["component"])
}

/// What an event is about and its reason, where it stands for several: their messages differ, and which of them are left depends
/// on when they were.
fn combined(event: &Value) -> Option<(&Value, &Value)> {
    let is_combined = event["message"].as_str()?.starts_with("(combined from similar events)");
    is_combined.then_some((&event["about"], &event["reason"]))
}

/// Of what is written in as many steps as pods change in: not how many these were, and what the last one was due to.
fn settled(object: &Value) -> Value {
    let mut told = object.clone();
    if object["kind"] != "ReplicaSet" || object["metadata"]["ownerReferences"].is_array() {
        told["metadata"]["generation"] = Value::Null;
        if told["status"].is_object() {
            told["status"]["observedGeneration"] = Value::Null;
        }
    }
    if let Some(annotations) = told["metadata"]["annotations"].as_object_mut() {
        annotations.remove("endpoints.kubernetes.io/last-change-trigger-time");
        if annotations.is_empty() {
            told["metadata"]["annotations"] = Value::Null;
        }
    }
    if told["metadata"]["annotations"].is_null()
        && let Some(metadata) = told["metadata"].as_object_mut()
    {
        metadata.remove("annotations");
    }
    told
}

/// Of a request all but who made it.
fn request(object: &Value) -> Value {
    let mut told = object.clone();
    if let Some(spec) = told["spec"].as_object_mut() {
        spec.retain(|key, _| !["uid", "username", "groups", "extra"].contains(&key.as_str()));
    }
    told
}

/// Of a pod all that controllers write; of its status what says how it is.
fn pod(object: &Value) -> Value {
    let mut told = object.clone();
    // How containers ended is the kubelet's.
    let ended = ["Failed", "Succeeded"].iter().any(|phase| object["status"]["phase"] == *phase);
    let compared: &[&str] =
        if ended { &["DisruptionTarget"] } else { &["Ready", "PodScheduled", "DisruptionTarget"] };
    let conditions: Vec<Value> = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|condition| {
            compared.iter().any(|kind| condition["type"] == *kind)
        })
        .map(|condition| {
            let message = if condition["type"] == "PodScheduled" { &Value::Null } else { &condition["message"] };
            json!({"type": condition["type"], "status": condition["status"], "reason": condition["reason"], "message": message})
        })
        .collect();
    let node = object["spec"]["nodeName"].clone();
    told["status"] = json!({"phase": object["status"]["phase"], "conditions": conditions, "nominated": object["status"]["nominatedNodeName"]});
    if node.is_null() && !object["metadata"]["deletionTimestamp"].is_null() {
        // The collector of pods ends it at some moment within twenty seconds.
        told["status"] = Value::Null;
    }
    told["on"] = node;
    told
}

/// Of a node its taints and labels.
fn node(object: &Value) -> Value {
    json!({"kind": "Node", "taints": object["spec"]["taints"], "unschedulable": object["spec"]["unschedulable"]})
}

fn masked(room: &Room, run: &str, key: &str, value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut told = Map::new();
            for (name, value) in members {
                if key == "metadata" && UNTOLD.contains(&name.as_str()) {
                    continue;
                }
                let value = if OWN.contains(&name.as_str())
                    && !value.is_null()
                    && value != "None"
                    && value != ""
                    && value != &json!(["None"])
                {
                    json!("<own>")
                } else {
                    masked(room, run, name, value)
                };
                told.insert(room.names.text(run, name), value);
            }
            Value::Object(told)
        }
        Value::Array(items) => {
            let mut told: Vec<Value> = items.iter().map(|item| masked(room, run, key, item)).collect();
            if [
                "conditions",
                "ownerReferences",
                "finalizers",
                "endpoints",
                "addresses",
                "notReadyAddresses",
                "subsets",
                "ports",
                "taints",
                "secrets",
            ]
            .contains(&key)
            {
                told.sort_by_key(Value::to_string);
            }
            Value::Array(told)
        }
        Value::String(text) => Value::String(room.names.text(run, text)),
        other => other.clone(),
    }
}

/// What differs, by the kind it differs in.
pub(crate) fn compare(reference: &State, ours: &State) -> Vec<(String, Difference)> {
    let keys: BTreeSet<&(String, String)> = reference.keys().chain(ours.keys()).collect();
    let mut found = Vec::new();
    let none = Vec::new();
    let of_both = reference.iter().chain(ours);
    let events = of_both.filter(|((kind, _), _)| kind == "Event").flat_map(|(_, list)| list);
    let combined: Vec<(&Value, &Value)> = events.filter_map(combined).collect();
    for key in keys {
        let (mut left, mut right) =
            (reference.get(key).unwrap_or(&none).clone(), ours.get(key).unwrap_or(&none).clone());
        for list in [&mut left, &mut right] {
            list.retain(|object| {
                !combined.contains(&(&object["about"], &object["reason"])) || key.0 != "Event"
            });
        }
        left.retain(|object| match right.iter().position(|other| other == object) {
            Some(at) => {
                right.remove(at);
                false
            }
            None => true,
        });
        let (kind, name) = key;
        let pairs = left.len().min(right.len());
        if kind != "Event" {
            for (one, other) in left.iter().zip(&right) {
                let mut differences = Vec::new();
                differ("", &ordered(one), &ordered(other), &mut differences);
                found.extend(differences.into_iter().map(|difference| (kind.clone(), difference)));
            }
            left.drain(..pairs);
            right.drain(..pairs);
        }
        let only = |object: &Value| {
            if kind == "Event" { brief_event(object) } else { format!("{name} {}", ordered(object).short()) }
        };
        let path = if kind == "Event" { String::new() } else { name.clone() };
        found.extend(left.iter().map(|object| {
            (
                kind.clone(),
                Difference { path: path.clone(), reference: only(object), ours: "(absent)".into() },
            )
        }));
        found.extend(right.iter().map(|object| {
            (
                kind.clone(),
                Difference { path: path.clone(), reference: "(absent)".into(), ours: only(object) },
            )
        }));
    }
    // An object says more than the events about it.
    found.sort_by_key(|(kind, _)| kind == "Event");
    found
}

fn brief_event(object: &Value) -> String {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    format!(
        "{} {} of {} by {}: {}",
        text("type"),
        text("reason"),
        text("about"),
        text("component"),
        text("message")
    )
}

fn ordered(value: &Value) -> Ordered {
    serde_json::from_str(&value.to_string()).unwrap_or(Ordered::Null)
}
