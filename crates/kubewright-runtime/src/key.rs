//! What a reconcile is asked about: the name of an object, never the object.

use std::{borrow::Cow, fmt, sync::Arc};

use crate::object::Head;
use kube::{Resource, api::ObjectMeta};

/// The namespace and name of an object of a controller's own kind.
///
/// A reconcile gets only this: what the object looks like now, or that it is gone, is read from the cache, so that
/// many events about one object become one reconcile of its newest state (`sigs.k8s.io/controller-runtime`'s
/// `reconcile.Request`). Keys order by cluster, namespace, then name; keys of cluster-scoped objects come first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The cluster, of a controller that works [in each](crate::Controller::in_each_cluster) of several; `None` for the manager's own.
    pub cluster: Option<Arc<str>>,
    /// The namespace; `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of an object in a namespace, or of one of a cluster-scoped kind.
    pub fn new(namespace: Option<impl Into<String>>, name: impl Into<String>) -> Self {
        Self { cluster: None, namespace: namespace.map(Into::into), name: name.into() }
    }

    /// The key of an object in a namespace.
    pub fn namespaced(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self::new(Some(namespace), name)
    }

    /// The key of an object of a cluster-scoped kind.
    pub fn cluster_scoped(name: impl Into<String>) -> Self {
        Self::new(None::<String>, name)
    }

    /// The key of another object in the same namespace of the same cluster: of a child, say, or of one that is named in the object.
    #[must_use]
    pub fn sibling(&self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// This key in a cluster beside the manager's own.
    #[must_use]
    pub fn in_cluster(self, cluster: impl Into<Arc<str>>) -> Self {
        Self { cluster: Some(cluster.into()), ..self }
    }

    /// What it is called in its cluster.
    pub(crate) fn local(&self) -> Cow<'_, Self> {
        match &self.cluster {
            None => Cow::Borrowed(self),
            Some(_) => Cow::Owned(Self { cluster: None, ..self.clone() }),
        }
    }

    /// The key that reads like this in its cluster: `namespace/name`, or `name`.
    pub(crate) fn from_text(text: &str) -> Self {
        match text.split_once('/') {
            Some((namespace, name)) => Self::namespaced(namespace, name),
            None => Self::cluster_scoped(text),
        }
    }

    /// The key of `object`. An object that has no name yet (`generateName` before its creation) has the empty name.
    #[must_use]
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::named(object.meta())
    }

    /// The key of the object with this head.
    pub(crate) fn at(head: Head<'_>) -> Self {
        Self::new(head.namespace, head.name)
    }

    /// The key of the object with this metadata.
    pub(crate) fn named(meta: &ObjectMeta) -> Self {
        Self::new(meta.namespace.clone(), meta.name.clone().unwrap_or_default())
    }
}

/// The namespace and the name of an object that is to be made there.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kubewright_runtime::Key;
/// # fn example(key: &Key) {
/// let settings = ConfigMap { metadata: key.into(), ..ConfigMap::default() };
/// let backup = ConfigMap { metadata: key.sibling("backup").into(), ..ConfigMap::default() };
/// # }
/// ```
impl From<Key> for ObjectMeta {
    fn from(key: Key) -> Self {
        Self { name: Some(key.name), namespace: key.namespace, ..Self::default() }
    }
}

impl From<&Key> for ObjectMeta {
    fn from(key: &Key) -> Self {
        key.clone().into()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cluster) = &self.cluster {
            write!(f, "{cluster}:")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_as_kubernetes_writes_it() {
        assert_eq!(Key::namespaced("default", "web").to_string(), "default/web");
        assert_eq!(Key::cluster_scoped("node-1").to_string(), "node-1");
        for text in ["default/web", "node-1"] {
            assert_eq!(Key::from_text(text).to_string(), text);
        }
        assert_eq!(Key::namespaced("default", "web").in_cluster("edge").to_string(), "edge:default/web");
        assert_eq!(
            Key::namespaced("default", "web").in_cluster("edge").sibling("db").to_string(),
            "edge:default/db"
        );
    }

    #[test]
    fn keys_of_one_namespace_stand_together() {
        let mut keys = [
            Key::namespaced("b", "a"),
            Key::cluster_scoped("z"),
            Key::namespaced("a", "b"),
            Key::namespaced("a", "a"),
        ];
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), ["z", "a/a", "a/b", "b/a"]);
    }
}
