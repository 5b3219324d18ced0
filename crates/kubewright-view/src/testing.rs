//! Writes for tests.

use jiff::Timestamp;
use kubewright_control_plane::recording::{Did, Revision, Write, Writer};
use serde_json::json;

/// A write of a ConfigMap.
pub(crate) fn write(revision: u64, did: Did, key: &str) -> Write {
    config_map(revision, did, key, "text")
}

/// A write of a ConfigMap with this text.
pub(crate) fn config_map(revision: u64, did: Did, key: &str, text: &str) -> Write {
    let object = json!({"kind": "ConfigMap", "data": {"text": text},
        "metadata": {"name": key, "uid": key, "resourceVersion": revision.to_string()}});
    Write {
        revision: Revision(revision),
        time: Timestamp::UNIX_EPOCH,
        by: Writer { user: "anna".to_owned(), program: "kubectl".to_owned() },
        did,
        collection: "/configmaps".into(),
        key: key.into(),
        bytes: object.to_string().into(),
    }
}
