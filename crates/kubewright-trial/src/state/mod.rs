//! State: what an operator has made of what it was asked for, without what differs from run to run.

mod differences;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use differences::{Difference, Volatile, differences};

use crate::{
    record, stable,
    story::{Did, ObjectId, Who, Write},
};

/// What the trial adds to objects: a label and an annotation of this name.
pub const ADDITION: &str = "trial.kubewright.dev/note";
/// How the names of what the trial writes into metadata begin.
const DOMAIN: &str = "trial.kubewright.dev/";
/// The owner that the trial gives to objects.
pub const OWNER: &str = "trial-owner";

/// Claims of StatefulSets: what was kept in them is what users miss most.
pub(crate) const CLAIMS: &str = "/persistentvolumeclaims";
/// Is there in a claim that a built-in controller has made.
pub(crate) const OF_CLUSTER: &str = "<made by the cluster>";
/// Stands behind a number that is a resource version of one of the samples.
const VERSION: &str = "<resourceVersion>";
/// Stands, with the object, for the uid of one that went and came again.
const EARLIER: &str = "<uid of an earlier ";
/// What a claim asks for.
const STORAGE: &str = "/spec/resources/requests/storage";

/// The objects that the program wrote, the samples, and claims, each as it is at a moment. Generated names are numbers.
pub type State = BTreeMap<ObjectId, Value>;

/// The state after writes, of which the first is the first of the run. Of objects of built-in kinds the status is left out, as nobody
/// but built-in controllers writes it; of others it is kept if the program wrote it.
#[must_use]
pub fn state(writes: &[Write], samples: &[ObjectId]) -> State {
    let mut last: BTreeMap<&ObjectId, &Write> = BTreeMap::new();
    let mut uids: BTreeMap<&str, &ObjectId> = BTreeMap::new();
    let (mut theirs, mut reported) = (BTreeSet::new(), BTreeSet::new());
    let versions: BTreeSet<&str> = writes
        .iter()
        .filter(|write| samples.contains(&write.id))
        .filter_map(|write| write.object["metadata"]["resourceVersion"].as_str())
        .collect();
    for write in writes {
        last.insert(&write.id, write);
        if let Some(uid) = write.object["metadata"]["uid"].as_str() {
            uids.insert(uid, &write.id);
        }
        if write.by != Who::Program && write.did == Did::Create {
            // What somebody else has made again is that one's, whoever deleted what was there before.
            theirs.remove(&write.id);
            reported.remove(&write.id);
        }
        if write.by == Who::Program && !crate::story::is_upkeep(&write.id.collection) {
            theirs.insert(&write.id);
            if write.subresource == "status" {
                reported.insert(&write.id);
            }
        }
    }
    theirs.extend(samples);
    let generated: BTreeMap<&str, &str> =
        writes.iter().filter_map(|write| stable::generated_name(&write.object)).collect();
    let is_there = |write: &Write| write.did != Did::Delete;
    let current = |uid: &str| {
        let id = uids.get(uid)?;
        let write = last.get(*id).filter(|write| is_there(write))?;
        // Of an object that went and came again under its name, the old uid leads nowhere.
        Some(
            (write.object["metadata"]["uid"] == *uid)
                .then_some(*id)
                .map_or_else(|| format!("{EARLIER}{id}>"), |id| format!("<uid of {id}>")),
        )
    };
    let there = last
        .iter()
        .filter(|(id, write)| (theirs.contains(*id) || id.collection == CLAIMS) && is_there(write));
    let mut objects: Vec<(String, Value)> = there
        .map(|(id, write)| {
            let is_sample = samples.contains(*id);
            let has_status = reported.contains(*id) || is_sample && !is_built_in(&id.collection);
            let mut object = stable::without_volatile(&write.object, has_status, &current);
            relate_generations(&mut object, write.object["metadata"]["generation"].as_i64());
            sort_conditions(&mut object);
            sort_maps(&mut object);
            if object["metadata"]["annotations"].is_object() {
                let of_object = writes.iter().filter(|write| write.id == **id);
                record::mark_records(&mut object, &of_object.map(|write| &write.object).collect::<Vec<_>>());
            }
            remove_additions(&mut object);
            mark_versions(&mut object, &versions);
            stable::same_generated_names(&mut object, &generated);
            if is_sample {
                remove_zeros(&mut object["spec"]);
            }
            if !theirs.contains(*id) {
                object[OF_CLUSTER] = true.into();
            }
            (id.collection.clone(), object)
        })
        .collect();
    stable::rename_generated(&mut objects);
    let named =
        objects.into_iter().map(|(collection, object)| (ObjectId::new(collection, key(&object)), object));
    named.collect()
}

fn key(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match (text("namespace"), text("name")) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// Whether a collection is one of Kubernetes' own, whose statuses its controllers write: by its group.
fn is_built_in(collection: &str) -> bool {
    let group = collection.split_once('/').map_or("", |(group, _)| group);
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// What stands before the last part of a name, where that looks like a hash.
pub(crate) fn before_hash(id: &ObjectId) -> Option<&str> {
    let (stem, end) = id.key.rsplit_once('-')?;
    let is_hash = end.len() >= 5
        && end.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
        && end.chars().any(|letter| letter.is_ascii_digit());
    is_hash.then_some(stem)
}

/// How often something was changed differs by the way to it: an `observedGeneration` is the current one, or behind.
fn relate_generations(value: &mut Value, generation: Option<i64>) {
    let Some(generation) = generation else { return };
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match generation_of(field).filter(|_| name == "observedGeneration") {
                    Some(observed) if observed == generation => *field = "<current>".into(),
                    Some(_) => *field = "<not current>".into(),
                    None => relate_generations(field, Some(generation)),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| relate_generations(item, Some(generation))),
        _ => {}
    }
}

/// A generation: a number, which some kinds write as a text.
pub(crate) fn generation_of(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// Marks the texts that are resource versions of samples, which some programs write into labels, annotations and statuses: which number
/// it is says nothing.
fn mark_versions(value: &mut Value, versions: &BTreeSet<&str>) {
    match value {
        Value::String(text) if versions.contains(text.as_str()) => text.push_str(VERSION),
        Value::Array(items) => items.iter_mut().for_each(|item| mark_versions(item, versions)),
        Value::Object(fields) => fields.values_mut().for_each(|field| mark_versions(field, versions)),
        _ => {}
    }
}

/// Whether two values stand for uids of which one is not known: that of what was there before the story, and was not written in it.
fn are_uids(one: &Value, other: &Value) -> bool {
    let is_unknown = |value: &Value| value == stable::UID;
    let is_known = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("<uid of "));
    let is_earlier = |value: &Value| value.as_str().is_some_and(|text| text.starts_with(EARLIER));
    let is_one = |one: &Value, other: &Value| is_unknown(one) && is_known(other) && !is_earlier(other);
    is_one(one, other) || is_one(other, one)
}

/// Whether two values are resource versions of samples, each in its own story; or one of them is, and the other the same number.
fn are_versions(one: &Value, other: &Value) -> bool {
    match (one.as_str(), other.as_str()) {
        (Some(one), Some(other)) => match (one.strip_suffix(VERSION), other.strip_suffix(VERSION)) {
            (Some(_), Some(_)) => true,
            (Some(number), None) => number == other,
            (None, Some(number)) => one == number,
            (None, None) => false,
        },
        _ => false,
    }
}

/// Removes what a program in Go leaves out when it writes a sample back: `false`, `0` and `""`.
fn remove_zeros(value: &mut Value) {
    let is_zero = |value: &Value| {
        *value == Value::Bool(false) || value.as_i64() == Some(0) || value.as_str() == Some("")
    };
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !is_zero(field));
            fields.values_mut().for_each(remove_zeros);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_zeros),
        _ => {}
    }
}

/// What the trial itself has added is no work of the operator: neither in the object, nor in templates that it was handed on to, nor in a
/// record of the object as it was last handled or applied, which is a text.
fn remove_additions(object: &mut Value) {
    if let Some(owners) = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) {
        owners.retain(|owner| owner["name"] != OWNER);
    }
    remove_notes(object);
}

/// Removes labels and annotations of the trial, however deep.
fn remove_notes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for map in ["labels", "annotations"] {
                let Some(entries) = fields.get_mut(map).and_then(Value::as_object_mut) else { continue };
                let count = entries.len();
                entries.retain(|name, _| !name.starts_with(DOMAIN));
                entries.values_mut().for_each(remove_from_record);
                if entries.is_empty() && count > 0 {
                    fields.remove(map);
                }
            }
            fields.values_mut().for_each(remove_notes);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_notes),
        _ => {}
    }
}

/// The same in an object that is written down as a text.
fn remove_from_record(text: &mut Value) {
    let record = text.as_str().filter(|text| text.starts_with('{')).map(serde_json::from_str::<Value>);
    if let Some(Ok(mut record)) = record {
        remove_additions(&mut record);
        *text = record.to_string().into();
    }
}

/// Whether a status says that all is done: by a condition, or by a field of its own, of a generation that is the current one.
pub(crate) fn is_ready(status: &Value, is_current: impl Fn(&Value) -> bool) -> bool {
    let is_of_now = |observed: &Value| observed.is_null() || is_current(observed);
    let is_true = |condition: &Value| {
        matches!(condition["type"].as_str(), Some("Ready" | "Available"))
            && condition["status"] == "True"
            && is_of_now(&condition["observedGeneration"])
    };
    is_of_now(&status["observedGeneration"])
        && (status["ready"] == true
            || status["conditions"].as_array().is_some_and(|all| all.iter().any(is_true)))
}

/// Whether a status says that what was asked for has been done once and for all: by its phase, or by the condition that Jobs have. (Others,
/// such as `Succeeded` and `Completed`, some operators say of a state that goes on.)
pub(crate) fn is_completed(status: &Value) -> bool {
    let phase = status["phase"].as_str().map(str::to_lowercase);
    phase.is_some_and(|phase| ["complete", "completed", "done", "finished"].contains(&phase.as_str()))
        || status["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["status"] == "True" && one["type"] == "Complete"))
}

/// Conditions are a map by their type, in whatever order they came.
fn sort_conditions(object: &mut Value) {
    if let Some(conditions) = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
        conditions.sort_by_key(|condition| condition["type"].to_string());
    }
}

/// Lists that the API calls maps or sets (`x-kubernetes-list-type`), and by what their items are known.
const MAPS: [(&str, &[&str]); 8] = [
    ("ports", &["port", "containerPort", "protocol"]),
    ("volumes", &["name"]),
    ("volumeMounts", &["mountPath"]),
    ("imagePullSecrets", &["name"]),
    ("ownerReferences", &["kind", "name"]),
    ("hostAliases", &["ip"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("finalizers", &[]),
];

/// Sorts the lists whose order says nothing: some programs make them of maps of theirs.
fn sort_maps(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let (Some((_, keys)), Some(items)) =
                    (MAPS.iter().find(|(known, _)| known == name), field.as_array_mut())
                {
                    let key = |item: &Value| match keys {
                        [] => item.to_string(),
                        keys => keys.iter().map(|key| format!("{:>9} ", item[*key].to_string())).collect(),
                    };
                    items.sort_by_cached_key(key);
                }
                sort_maps(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(sort_maps),
        _ => {}
    }
}
