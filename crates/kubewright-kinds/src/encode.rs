//! Objects as bytes. An object is serialised once, when it is committed; GET, LIST and every watcher share the bytes.
//!
//! Stored bytes begin with `kind`, `apiVersion` and `metadata`, in this order, as kube-apiserver writes them. So an item of
//! a list (which has no kind of its own for built-in kinds) and another served version are found by cutting the head off.

use std::ops::Range;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use kubewright_codec::protobuf;
use kubewright_codec::rope::Rope;
use kubewright_meta::cost;
use kubewright_store::{Draft, Entry};
use memchr::memmem;
use serde_json::{Map, Value};

use super::summary::Summary;
use crate::definition::{Reading, Versions};
use crate::{Custom, Kind};

/// The value of an entry in the version of `kind`: of a view of it where `is_to_be_converted` holds of it.
#[must_use]
pub fn value(kind: &Kind, entry: &Entry<Summary>) -> Value {
    cost::steps(entry.bytes.len());
    let mut value: Value = serde_json::from_slice(&entry.bytes).unwrap_or_default();
    if entry.tag.is_view() {
        return value;
    }
    if let Some(custom) = &kind.custom {
        custom.versions.read(&kind.version, is_as_read(custom, entry), &mut value);
    } else if !kind.is_storage() {
        kind.to_served(&mut value);
        set_type(kind, &mut value);
    }
    value
}

/// The value of a stored custom object in the version that it is stored in.
pub fn in_own_version(versions: &Versions, entry: &Entry<Summary>) -> Value {
    let mut value: Value = serde_json::from_slice(&entry.bytes).unwrap_or_default();
    let stored = stored_version(&entry.bytes);
    versions.read(stored, entry.tag.is_as_read(versions, stored), &mut value);
    value
}

/// An entry as it is answered to who reads or writes it: what is stored of a built-in kind may be more.
#[must_use]
pub fn shown(kind: &Kind, entry: Arc<Entry<Summary>>) -> Arc<Entry<Summary>> {
    let Some(hidden) = &kind.rules.hidden else { return entry };
    if memmem::find(&entry.bytes, hidden.mark.as_bytes()).is_none() {
        return entry;
    }
    let mut object = value(kind, &entry);
    if !(hidden.hide)(&mut object) {
        return entry;
    }
    Arc::new(Entry {
        key: entry.key.clone(),
        bytes: bytes(kind, &object),
        revision: entry.revision,
        tag: Arc::new(Summary::of_view(kind, &object)),
    })
}

/// Takes out of an object what is not shown of it: see [`shown`].
pub fn hide(kind: &Kind, object: &mut Value) {
    if let Some(hidden) = &kind.rules.hidden {
        (hidden.hide)(object);
    }
}

/// Sets `kind` and `apiVersion` to those of `kind`.
pub fn set_type(kind: &Kind, value: &mut Value) {
    if let Value::Object(map) = value {
        map.insert("kind".into(), kind.kind.clone().into());
        map.insert("apiVersion".into(), kind.api_version().into());
    }
}

/// What is committed for an object that is given in the version of `kind`.
#[must_use]
pub fn draft(kind: &Kind, mut object: Value) -> Draft<Summary> {
    if let Some(custom) = &kind.custom {
        custom.versions.store(&mut object);
        whole_numbers(&mut object);
    } else if !kind.is_storage() {
        kind.to_storage(&mut object);
    }
    let tag = Arc::new(Summary::of(kind, &object));
    kubewright_meta::object::set_meta(&mut object, "resourceVersion", Some(String::new().into()));
    let mut bytes = Vec::with_capacity(1024);
    bytes.extend_from_slice(head(&kind.kind, &kind.storage_api_version()).as_bytes());
    let revision_at = write_rest(&mut bytes, &object);
    Draft { bytes, revision_at, tag }
}

/// The same of a new object of which less is stored than is read (`Rules::lacks_defaults`).
#[must_use]
pub fn lacking(kind: &Kind, object: Value) -> Draft<Summary> {
    let tag = Arc::new(Summary::lacking(kind, &object));
    Draft { tag, ..draft(kind, object) }
}

/// Writes numbers as Go's encoder does once it has read them: `5.0` is `5`, and what 64 bits with a sign do not hold is a
/// double (`k8s.io/apimachinery/pkg/util/json`).
pub fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.as_i64().is_none() => {
            // A double without an exponent, of as few digits as tell it from others.
            let digits = number.as_f64().map(|float| float.to_string()).unwrap_or_default();
            if let Ok(whole) = digits.parse::<i64>() {
                *value = whole.into();
            } else if let Ok(whole) = digits.parse::<u64>() {
                *value = whole.into();
            }
        }
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// An object's bytes as they would be stored and served, with the resource version it has (none for one never stored).
#[must_use]
pub fn bytes(kind: &Kind, object: &Value) -> Bytes {
    let mut bytes = Vec::with_capacity(1024);
    bytes.extend_from_slice(head(&kind.kind, &kind.api_version()).as_bytes());
    write_rest(&mut bytes, object);
    bytes.into()
}

/// What watchers are told of an entry that goes as it is: its own bytes, under the revision of the deletion.
#[must_use]
pub fn last_state(entry: &Entry<Summary>) -> Draft<Summary> {
    let mut bytes = entry.bytes.to_vec();
    let revision_at = version_of(&bytes).map(|digits| {
        let at = digits.start;
        bytes.drain(digits);
        at
    });
    Draft { bytes, revision_at, tag: Arc::clone(&entry.tag) }
}

/// Where the digits of `metadata.resourceVersion` stand in stored bytes.
fn version_of(bytes: &[u8]) -> Option<Range<usize>> {
    const KEY: &[u8] = b"resourceVersion";
    let mut at = bytes.len() - body(bytes).len();
    let mut depth = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            // The metadata are over.
            b'}' | b']' if depth == 1 => return None,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let text = at + 1..end_of_text(bytes, at + 1)?;
                at = text.end;
                let is_key = bytes.get(at + 1) == Some(&b':');
                if depth == 1 && is_key && bytes.get(text) == Some(KEY) {
                    let digits = at + 3;
                    return Some(digits..end_of_text(bytes, digits)?);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the quote stands that ends a text.
fn end_of_text(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// An entry's bytes as the object is served in the version of `kind`.
#[must_use]
pub fn object(kind: &Kind, entry: &Entry<Summary>) -> Bytes {
    let Some(custom) = &kind.custom else {
        return if kind.is_storage() { entry.bytes.clone() } else { bytes(kind, &value(kind, entry)) };
    };
    if entry.tag.is_view() {
        return entry.bytes.clone();
    }
    // Objects stay stored in the version that was the storage version when they were written.
    let stored = stored_version(&entry.bytes);
    match custom.versions.reading(stored, &kind.version, is_as_read(custom, entry)) {
        Reading::AsStored => entry.bytes.clone(),
        Reading::Renamed => with_head(&head(&kind.kind, &kind.api_version()), body(&entry.bytes)),
        Reading::Remade => bytes(kind, &value(kind, entry)),
    }
}

/// The protobuf message of an entry as it is served in the version of `kind`, without an envelope: made once, where that is the
/// version it is stored in. `None` for what has none, as custom objects.
#[must_use]
pub fn message(kind: &Kind, entry: &Entry<Summary>) -> Option<Bytes> {
    if kind.custom.is_some() {
        return None;
    }
    let make = || protobuf::message(&object(kind, entry)).map(Bytes::from);
    if kind.is_storage() { entry.tag.message(entry.revision, make) } else { make() }
}

/// The version (without its group) in which an entry's bytes are.
#[must_use]
pub fn stored_version(bytes: &[u8]) -> &str {
    let head = &bytes[..bytes.len() - body(bytes).len()];
    let text = std::str::from_utf8(head).unwrap_or_default();
    text.trim_end_matches("\",").rsplit(['/', '"']).next().unwrap_or_default()
}

/// Whether a webhook has to be asked for an entry in the version of `kind`.
pub fn is_to_be_converted(kind: &Kind, entry: &Entry<Summary>) -> bool {
    let by_webhook = kind.custom.as_ref().is_some_and(|custom| custom.versions.webhook().is_some());
    by_webhook && !entry.tag.is_view() && stored_version(&entry.bytes) != kind.version
}

/// Whether stored bytes are what is read of them in their own version.
pub(super) fn is_as_read(custom: &Custom, entry: &Entry<Summary>) -> bool {
    entry.tag.is_as_read(&custom.versions, stored_version(&entry.bytes))
}

/// Whether a write of what was read of a stored entry may make other bytes of it: it is stored in another version than objects
/// are today or than is written, or something was read that is not stored.
pub fn is_outdated(kind: &Kind, entry: &Entry<Summary>) -> bool {
    let Some(custom) = &kind.custom else { return entry.tag.is_lacking() };
    let stored = stored_version(&entry.bytes);
    stored != custom.versions.storage() || stored != kind.version || !is_as_read(custom, entry)
}

/// Whether a draft makes the bytes that are stored: a write of it is none
/// (`k8s.io/apiserver/pkg/storage/etcd3/store.go`, `GuaranteedUpdate`).
pub fn is_stored_as(draft: &Draft<Summary>, entry: &Entry<Summary>) -> bool {
    if entry.tag.is_lacking() != draft.tag.is_lacking() {
        return false;
    }
    let Some((before, after)) = draft.revision_at.and_then(|at| draft.bytes.split_at_checked(at)) else {
        return false;
    };
    let stored = entry.bytes.strip_prefix(before);
    let stored = stored.and_then(|rest| rest.strip_prefix(entry.revision.0.to_string().as_bytes()));
    stored == Some(after)
}

/// An entry's bytes as an item of a list: built-in kinds leave `kind` and `apiVersion` to the list.
pub fn write_item(out: &mut Rope, kind: &Kind, entry: &Entry<Summary>) {
    let object = object(kind, entry);
    if kind.custom.is_some() {
        return out.share(object);
    }
    out.copy(b"{");
    out.share(object.slice_ref(body(&object)));
}

/// `{"kind":…,"apiVersion":…,`: how stored bytes begin.
fn head(kind: &str, api_version: &str) -> String {
    format!("{{\"kind\":{},\"apiVersion\":{},", Value::from(kind), Value::from(api_version))
}

fn with_head(head: &str, body: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(head.len() + body.len());
    bytes.put_slice(head.as_bytes());
    bytes.put_slice(body);
    bytes.freeze()
}

/// What follows the head: `"metadata":{…`. Names of kinds and versions hold no comma, so the second comma ends the head.
fn body(bytes: &[u8]) -> &[u8] {
    let mut commas = bytes.iter().enumerate().filter(|(_, byte)| **byte == b',').map(|(at, _)| at);
    match (commas.next(), commas.next()) {
        (Some(_), Some(second)) => &bytes[second + 1..],
        _ => bytes,
    }
}

/// Writes `"metadata":{…},…}`; returns where an empty resource version stands.
fn write_rest(out: &mut Vec<u8>, object: &Value) -> Option<usize> {
    let empty = Map::new();
    let members = object.as_object().unwrap_or(&empty);
    let mut revision_at = None;
    out.extend_from_slice(b"\"metadata\":{");
    for (at, (key, value)) in object["metadata"].as_object().unwrap_or(&empty).iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_value(out, &Value::from(key.as_str()));
        out.push(b':');
        if key == "resourceVersion" && value == "" {
            revision_at = Some(out.len() + 1);
        }
        write_value(out, value);
    }
    out.push(b'}');
    for (key, value) in members {
        if !matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
            out.push(b',');
            write_value(out, &Value::from(key.as_str()));
            out.push(b':');
            write_value(out, value);
        }
    }
    out.push(b'}');
    revision_at
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    // A JSON value has text keys, and a vector takes all that is written: this cannot fail.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kinds;
    use kubewright_store::{Expect, Memory, Name, Store};
    use serde_json::json;

    async fn stored(kind: &Kind, object: Value) -> Arc<Entry<Summary>> {
        let store = Memory::new();
        let change = kubewright_store::Change::Put(draft(kind, object));
        store
            .commit(&kind.collection, &Name::from("a"), Expect::Absent, change)
            .await
            .expect("an empty store")
    }

    #[tokio::test]
    async fn stored_bytes_carry_their_own_version_and_begin_with_their_type() {
        let kinds = Kinds::built_in();
        let kind = kinds.get("", "v1", "configmaps").expect("a built-in kind");
        // Text in the object that looks like the place of the version is not taken for it.
        let decoy = json!({"resourceVersion": ""}).to_string();
        let entry = stored(kind, json!({"metadata": {"name": "a"}, "data": {"a": decoy}})).await;
        assert!(entry.bytes.starts_with(
            br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}"#
        ));
        assert_eq!(value(kind, &entry)["data"]["a"], decoy);
    }

    #[tokio::test]
    async fn a_draft_of_what_is_stored_is_known_for_it() {
        let kinds = Kinds::built_in();
        let kind = kinds.get("", "v1", "configmaps").expect("a built-in kind");
        let object = json!({"metadata": {"name": "a"}, "data": {"a": "b"}});
        let entry = stored(kind, object.clone()).await;
        assert!(is_stored_as(&draft(kind, value(kind, &entry)), &entry));
        for (pointer, changed) in [("/data/a", "c"), ("/metadata/name", "b")] {
            let mut other = object.clone();
            *other.pointer_mut(pointer).expect("it is there") = changed.into();
            assert!(!is_stored_as(&draft(kind, other), &entry), "{pointer}");
        }
    }

    #[tokio::test]
    async fn items_of_built_in_lists_leave_their_type_to_the_list() {
        let kinds = Kinds::built_in();
        let kind = kinds.get("apps", "v1", "deployments").expect("a built-in kind");
        let entry = stored(kind, json!({"metadata": {"name": "a"}, "spec": {"replicas": 1}})).await;
        let mut item = Rope::default();
        write_item(&mut item, kind, &entry);
        let item: Value = serde_json::from_slice(&item.take().expect("bytes")).expect("JSON");
        assert_eq!(item, json!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"replicas": 1}}));
    }

    #[tokio::test]
    async fn a_resource_of_two_versions_is_stored_once_and_served_as_both() {
        let kinds = Kinds::built_in();
        let (old, new) = (kinds.get("", "v1", "events"), kinds.get("events.k8s.io", "v1", "events"));
        let (old, new) = (old.expect("a built-in kind"), new.expect("a built-in kind"));
        let event = json!({
            "kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": {"name": "a"},
            "note": "hello", "regarding": {"name": "web"}
        });
        let entry = stored(new, event).await;
        let (as_old, as_new): (Value, Value) = (
            serde_json::from_slice(&object(old, &entry)).expect("JSON"),
            serde_json::from_slice(&object(new, &entry)).expect("JSON"),
        );
        assert_eq!((&as_old["apiVersion"], &as_old["message"]), (&json!("v1"), &json!("hello")));
        assert_eq!(as_old["involvedObject"]["name"], "web");
        assert_eq!((&as_new["apiVersion"], &as_new["note"]), (&json!("events.k8s.io/v1"), &json!("hello")));
    }
}
