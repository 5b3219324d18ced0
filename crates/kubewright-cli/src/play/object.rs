//! Recorded objects as they are written into another cluster. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Metadata that whoever writes an object says; all else is the server's.
const SAID: [&str; 6] = ["name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"];

/// The uids that objects have here, by those that they had.
pub(crate) type Uids = BTreeMap<String, String>;

/// An object as it is written: without what only a server sets, and with owners that are here. Gives how many owners it
/// lost, as they are not: the garbage collector would remove it for them.
pub(crate) fn written(object: &Value, uids: &Uids) -> (Value, usize) {
    let mut object = object.clone();
    let mut lost = 0;
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| SAID.contains(&name.as_str()));
        lost = map_owners(metadata, uids);
    }
    (object, lost)
}

fn map_owners(metadata: &mut Map<String, Value>, uids: &Uids) -> usize {
    let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) else { return 0 };
    let before = owners.len();
    owners.retain_mut(|owner| match owner["uid"].as_str().and_then(|uid| uids.get(uid)) {
        Some(uid) => {
            owner["uid"] = uid.as_str().into();
            true
        }
        None => false,
    });
    let lost = before - owners.len();
    if owners.is_empty() {
        metadata.remove("ownerReferences");
    }
    lost
}

/// Whether an object is as it is to be, but for its status.
pub(crate) fn is_as_written(current: &Value, wanted: &Value) -> bool {
    let as_written = |object: &Value| {
        let mut object = object.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, value| SAID.contains(&name.as_str()) && !is_empty(value));
        }
        object
    };
    as_written(current) == as_written(wanted)
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// The node that a pod is to be bound to: it has one, and the pod that is here has none.
pub(crate) fn node_to_bind<'a>(collection: &str, current: &Value, wanted: &'a Value) -> Option<&'a str> {
    let node = |object: &'a Value| object["spec"]["nodeName"].as_str().filter(|node| !node.is_empty());
    let has_none = current["spec"]["nodeName"].as_str().is_none_or(str::is_empty);
    if collection == "/pods" && has_none { node(wanted) } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_sets_is_not_written_and_owners_have_the_uids_that_they_have_here() {
        let uids = Uids::from([("old".to_owned(), "new".to_owned())]);
        let recorded = json!({"kind": "Pod", "metadata": {"name": "a", "uid": "x", "resourceVersion": "7", "managedFields": [],
            "ownerReferences": [{"uid": "old", "name": "o"}, {"uid": "unknown", "name": "u"}]}, "spec": {"a": 1}, "status": {}});
        let (object, lost) = written(&recorded, &uids);
        assert_eq!(
            object,
            json!({"kind": "Pod", "metadata": {"name": "a", "ownerReferences": [{"uid": "new", "name": "o"}]}, "spec": {"a": 1}})
        );
        assert_eq!(lost, 1);
    }

    #[test]
    fn what_is_as_it_is_to_be_is_not_written_again() {
        let wanted = json!({"metadata": {"name": "a"}, "spec": 1});
        let current = json!({"metadata": {"name": "a", "uid": "x", "labels": {}}, "spec": 1, "status": 3});
        assert!(is_as_written(&current, &wanted));
        assert!(!is_as_written(&current, &json!({"metadata": {"name": "a"}, "spec": 2})));
    }

    #[test]
    fn a_pod_is_bound_once() {
        let (none, some) = (json!({"spec": {}}), json!({"spec": {"nodeName": "n"}}));
        assert_eq!(node_to_bind("/pods", &none, &some), Some("n"));
        assert_eq!(node_to_bind("/pods", &some, &some), None);
        assert_eq!(node_to_bind("apps/deployments", &none, &some), None);
    }
}
