//! What plugins read of the store: built-in objects, as they are stored.

use kubewright_kinds::Summary;
use kubewright_store::{Entry, Snapshot};
use serde_json::Value;

/// The object at a key of a collection.
pub(super) fn object(snapshot: &Snapshot<Summary>, collection: &str, key: &str) -> Option<Value> {
    snapshot.get(collection, key).map(|entry| decode(entry))
}

/// The objects of a collection that are in a namespace, by name.
pub(super) fn in_namespace(snapshot: &Snapshot<Summary>, collection: &str, namespace: &str) -> Vec<Value> {
    if snapshot.len(collection) == 0 {
        return Vec::new();
    }
    let prefix = format!("{namespace}/");
    snapshot.range(collection, &prefix, None).map(|entry| decode(entry)).collect()
}

/// The objects of a collection whose bytes hold this text, by name: few enough are decoded to look for a mark that few
/// have.
pub(super) fn mentioning(snapshot: &Snapshot<Summary>, collection: &str, text: &str) -> Vec<Value> {
    let text = text.as_bytes();
    // Most places differ in the first byte.
    let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part[0] == text[0] && part == text);
    snapshot
        .range(collection, "", None)
        .filter(|entry| holds(&entry.bytes))
        .map(|entry| decode(entry))
        .collect()
}

fn decode(entry: &Entry<Summary>) -> Value {
    serde_json::from_slice(&entry.bytes).unwrap_or_default()
}
