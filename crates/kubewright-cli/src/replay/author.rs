//! Who wrote what in a recording that was made from outside: it knows the field managers of objects alone. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kubewright_recording::{Author, Did, Write};
use serde_json::Value;

/// Finds the author of each write by what it changed: whose entry among the managed fields is another. A deletion is nobody's, but
/// that of an object with finalizers, which is of who has set them, and that of one whose owner is there, which is of who wrote it last.
pub(super) fn attribute(writes: &mut [Write]) {
    let mut before: BTreeMap<(String, String), Value> = BTreeMap::new();
    // Of objects that are gone or about to go: the garbage collector deletes what they own.
    let mut leaving: BTreeSet<String> = BTreeSet::new();
    for write in writes {
        let object: Value = serde_json::from_str(write.object.get()).unwrap_or_default();
        let place = (write.collection.clone(), write.key.clone());
        let old = before.remove(&place);
        let is_deleted = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        let author = match (&old, write.did) {
            (Some(old), Did::Delete) => deleter(old, &leaving, &write.by.program),
            (Some(old), _) if is_deleted(&object) && !is_deleted(old) => String::new(),
            (Some(old), _) => changer(old, &object).unwrap_or_else(|| write.by.program.clone()),
            (None, _) => write.by.program.clone(),
        };
        write.by = Author { user: String::new(), program: author };
        if (write.did == Did::Delete || is_deleted(&object))
            && let Some(uid) = object["metadata"]["uid"].as_str()
        {
            leaving.insert(uid.to_owned());
        }
        if write.did != Did::Delete {
            before.insert(place, object);
        }
    }
}

/// Who has removed an object.
fn deleter(old: &Value, leaving: &BTreeSet<String>, last: &str) -> String {
    let items = |field: &str| old["metadata"][field].as_array().map_or(&[][..], Vec::as_slice);
    if !items("finalizers").is_empty() {
        let has_set = |entry: &&Value| !entry["fieldsV1"]["f:metadata"]["f:finalizers"].is_null();
        let setter = items("managedFields").iter().rfind(has_set);
        return setter.and_then(|entry| entry["manager"].as_str()).unwrap_or(last).to_owned();
    }
    let is_leaving = |owner: &Value| owner["uid"].as_str().is_some_and(|uid| leaving.contains(uid));
    if items("ownerReferences").iter().any(is_leaving) { String::new() } else { last.to_owned() }
}

/// Whose entry among the managed fields is another; of several the last.
fn changer(old: &Value, new: &Value) -> Option<String> {
    let entries =
        |object: &Value| object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let before = entries(old);
    let mut changed: Vec<Value> = entries(new).into_iter().filter(|entry| !before.contains(entry)).collect();
    // Who takes a field from another changes that one's entry too, but not its time.
    changed.sort_by_key(|entry| entry["time"].as_str().unwrap_or_default().to_owned());
    let is_of_then = |entry: &&Value| {
        before.iter().all(|one| one["time"] != entry["time"] || one["manager"] != entry["manager"])
    };
    let last = changed.iter().rfind(is_of_then).or(changed.last());
    last.and_then(|entry| entry["manager"].as_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn write(did: Did, key: &str, last: &str, object: &Value) -> Write {
        Write {
            revision: 1,
            time: Timestamp::UNIX_EPOCH,
            by: Author { user: String::new(), program: last.to_owned() },
            did,
            inferred: false,
            collection: "/configmaps".to_owned(),
            key: key.to_owned(),
            object: to_raw_value(object).expect("JSON"),
        }
    }

    fn authors(mut writes: Vec<Write>) -> Vec<String> {
        attribute(&mut writes);
        writes.into_iter().map(|write| write.by.program).collect()
    }

    fn entry(manager: &str, time: &str, field: &str) -> Value {
        json!({"manager": manager, "time": time, "fieldsV1": {"f:metadata": {field: {}}}})
    }

    #[test]
    fn a_write_is_of_the_manager_whose_fields_it_changed() {
        let object = |entries: &[Value]| json!({"metadata": {"uid": "1", "managedFields": entries}});
        let (press, kubectl) = (entry("press", "1", "f:finalizers"), entry("kubectl", "1", "f:labels"));
        let changed = entry("kubectl", "2", "f:annotations");
        let writes = vec![
            write(Did::Create, "a", "kubectl", &object(std::slice::from_ref(&kubectl))),
            write(Did::Update, "a", "kubectl", &object(&[kubectl, press.clone()])),
            write(Did::Update, "a", "press", &object(&[changed, press])),
        ];
        assert_eq!(authors(writes), ["kubectl", "press", "kubectl"]);
    }

    #[test]
    fn a_deletion_is_of_who_has_set_the_finalizer_and_the_garbage_collectors_is_nobodys() {
        let page = |more: &Value| {
            let mut page = json!({"metadata": {"uid": "1", "finalizers": ["x"], "managedFields": [entry("press", "1", "f:finalizers")]}});
            page["metadata"]["deletionTimestamp"] = more.clone();
            page
        };
        let child = |uid: &str| json!({"metadata": {"uid": uid, "ownerReferences": [{"uid": "1"}]}});
        let writes = vec![
            write(Did::Create, "page", "press", &page(&Value::Null)),
            write(Did::Create, "pruned", "press", &child("2")),
            write(Did::Create, "collected", "press", &child("3")),
            write(Did::Delete, "pruned", "press", &child("2")),
            write(Did::Update, "page", "press", &page(&json!("now"))),
            write(Did::Delete, "page", "kubectl", &page(&json!("now"))),
            write(Did::Delete, "collected", "press", &child("3")),
        ];
        assert_eq!(authors(writes)[3..], ["press", "", "press", ""]);
    }
}
