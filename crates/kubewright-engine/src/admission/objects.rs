//! What admission sees of a cluster.

use std::sync::Arc;

use futures::future::BoxFuture;
use kubewright_identity::authz::Rights;
use kubewright_kinds::{BuiltIn, Kind, Kinds, Summary};
use kubewright_meta::ApiError;
use kubewright_store::{Entry, Snapshot};
use kubewright_world::World;
use serde_json::Value;

use super::Admission;

/// A change of an object, which may refuse.
pub type Edit<'a> = dyn Fn(&mut Value) -> Result<(), ApiError> + Send + Sync + 'a;

/// The objects of a cluster, as plugins, policies and webhooks see them: what is stored, who may do what, and the two writes
/// that plugins ask for.
pub trait Objects: Send + Sync {
    /// The objects as they are now.
    fn snapshot(&self) -> Snapshot<Summary>;

    /// The kinds that are served now.
    fn kinds(&self) -> Arc<Kinds>;

    /// Who may do what now.
    fn rights(&self) -> Rights;

    /// The clock and the dice.
    fn world(&self) -> &World;

    /// Which plugins are on; webhooks and policies, compiled.
    fn admission(&self) -> &Admission;

    /// An object of another version as one of the version of `kind`, where a webhook has to be asked for that.
    ///
    /// # Errors
    /// 500 when the webhook does not convert it.
    fn in_version<'a>(
        &'a self,
        kind: &'a Kind,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>>;

    /// Creates a namespace.
    ///
    /// # Errors
    /// As any creation.
    fn create_namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), ApiError>>;

    /// Changes the status of a ResourceQuota by compare-and-swap.
    ///
    /// # Errors
    /// 404, and what `edit` has against it.
    fn edit_quota<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        edit: &'a Edit<'a>,
    ) -> BoxFuture<'a, Result<(), ApiError>>;
}

impl dyn Objects + '_ {
    /// Whether a built-in kind has an object of this key.
    pub(super) fn has(&self, kind: &BuiltIn, key: &str) -> bool {
        self.snapshot().get(kind.collection(), key).is_some()
    }

    /// An object of a built-in kind, with its summary.
    pub(super) fn entry(&self, kind: &BuiltIn, key: &str) -> Option<Arc<Entry<Summary>>> {
        self.snapshot().get(kind.collection(), key).cloned()
    }

    /// An object of a built-in kind, as it is stored.
    pub(crate) fn object(&self, kind: &BuiltIn, key: &str) -> Option<Value> {
        self.entry(kind, key).map(|entry| decode(&entry))
    }

    /// The objects of a built-in kind that are in a namespace, by name, as they are stored.
    pub(super) fn in_namespace(&self, kind: &BuiltIn, namespace: &str) -> Vec<Value> {
        let (snapshot, collection) = (self.snapshot(), kind.collection());
        if snapshot.len(collection) == 0 {
            return Vec::new();
        }
        let prefix = format!("{namespace}/");
        snapshot.range(collection, &prefix, None).map(|entry| decode(entry)).collect()
    }

    /// The objects of a built-in kind whose bytes hold this text, by name: few enough are decoded to look for a mark that few
    /// have.
    pub(super) fn mentioning(&self, kind: &BuiltIn, text: &str) -> Vec<Value> {
        let text = text.as_bytes();
        // Most places differ in the first byte.
        let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part[0] == text[0] && part == text);
        let snapshot = self.snapshot();
        let all = snapshot.range(kind.collection(), "", None);
        all.filter(|entry| holds(&entry.bytes)).map(|entry| decode(entry)).collect()
    }
}

fn decode(entry: &Entry<Summary>) -> Value {
    serde_json::from_slice(&entry.bytes).unwrap_or_default()
}
