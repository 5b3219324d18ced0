//! The objects of a store that a server of an older version of Kubernetes has written, as this version reads them.
//!
//! kube-apiserver decodes what etcd has with its own types and defaults, and writes it so with the next change; until then the
//! object has the revision that it had. Here stored bytes are served as they are, so they are made anew when the store is opened,
//! under the same revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_kinds::{Kind, Kinds, Summary, encode};
use kubewright_spec::Version;
use kubewright_store::{Name, Revision, Stored, StoredValue};
use serde_json::Value;

use crate::request::body;
use crate::tags::tags;

/// What makes an object and its [`Summary`] of what is stored of it: its collection, its revision and its bytes. Those up to the
/// revision `written_before` are of an older version than `version`.
///
/// # Errors
/// The function that it gives says why bytes are no object.
pub fn reopened(
    version: Version,
    written_before: Revision,
    stored: &Stored<'_>,
) -> impl FnMut(&str, Revision, Vec<u8>) -> Result<StoredValue<Summary>, String> + use<> {
    let mut tag = tags(version, stored);
    let reader = Reader::new(&Kinds::of_version(version));
    move |collection, revision, bytes| {
        let is_older = revision <= written_before;
        let bytes = is_older.then(|| reader.read(collection, &bytes)).flatten().unwrap_or(bytes);
        let tag = tag(collection, &bytes)?;
        Ok((bytes, tag))
    }
}

/// Reads stored objects as a version of Kubernetes does.
struct Reader {
    /// The built-in kinds of a collection, each under the API version that stored bytes may name.
    kinds: BTreeMap<Name, Vec<Arc<Kind>>>,
}

impl Reader {
    fn new(kinds: &Kinds) -> Self {
        let mut by_collection: BTreeMap<Name, Vec<Arc<Kind>>> = BTreeMap::new();
        for kind in kinds.iter() {
            by_collection.entry(Arc::clone(&kind.collection)).or_default().push(Arc::clone(kind));
        }
        Self { kinds: by_collection }
    }

    /// The bytes of an object where they are to be others: without the fields that the version does not have, with its defaults, in
    /// the API version in which it stores the kind. What it does not serve, or cannot decode, stays as it is.
    fn read(&self, collection: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let kinds = self.kinds.get(collection)?;
        let storage = kinds.iter().find(|kind| kind.is_storage())?;
        let stored: Value = serde_json::from_slice(bytes).ok()?;
        let named = |kind: &&Arc<Kind>| stored["apiVersion"] == kind.api_version();
        let kind = kinds.iter().find(named).unwrap_or(storage);
        let mut value = stored.clone();
        encode::set_type(kind, &mut value);
        kind.schema().decode(&mut value).ok()?;
        kind.schema().leave_out(&mut value, kind.encoding());
        body::default(kind, &mut value);
        if !kind.is_storage() {
            kind.to_storage(&mut value);
            encode::set_type(storage, &mut value);
        }
        (value != stored).then(|| encode::bytes(storage, &value).into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(collection: &str, stored: &Value) -> Option<Value> {
        let reader = Reader::new(&Kinds::of_version(Version::V1_36));
        let bytes = reader.read(collection, stored.to_string().as_bytes())?;
        Some(serde_json::from_slice(&bytes).expect("an object"))
    }

    #[test]
    fn an_object_is_read_with_the_fields_and_the_defaults_of_the_version_under_its_own_revision() {
        let mut job = json!({"kind": "Job", "apiVersion": "batch/v1",
            "metadata": {"name": "a", "namespace": "default", "resourceVersion": "7"},
            "spec": {"field-of-another-version": 1, "template": {"spec": {"containers": [{"name": "a", "image": "a"}]}}}});
        let now = read("batch/jobs", &job).expect("it lacks defaults");
        assert_eq!(now["metadata"]["resourceVersion"], "7");
        assert_eq!(
            (&now["spec"]["podReplacementPolicy"], &now["spec"]["backoffLimit"]),
            (&json!("TerminatingOrFailed"), &json!(6))
        );
        assert!(now["spec"].get("field-of-another-version").is_none());
        assert_eq!(read("batch/jobs", &now), None, "what is as it is read stays");
        job["spec"]["backoffLimit"] = json!("many");
        assert_eq!(
            read("batch/jobs", &job),
            None,
            "what cannot be decoded stays, and is told when it is asked for"
        );
    }

    #[test]
    fn what_is_not_served_stays_as_it_is() {
        let custom = json!({"kind": "Thing", "apiVersion": "mine.example/v1", "metadata": {"name": "a"}});
        assert_eq!(read("mine.example/things", &custom), None);
    }

    #[test]
    fn an_object_that_was_stored_in_another_version_is_stored_in_the_one_of_today() {
        let event = json!({"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": {"name": "a", "namespace": "default",
            "resourceVersion": "7"}, "eventTime": "2026-01-01T00:00:00.000000Z", "note": "said", "regarding": {"kind": "Pod"}});
        let now = read("/events", &event).expect("another version");
        assert_eq!(
            (&now["apiVersion"], &now["message"], &now["involvedObject"]["kind"]),
            (&json!("v1"), &json!("said"), &json!("Pod"))
        );
    }
}
