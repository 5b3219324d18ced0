//! What a reconcile is asked about: the name of an object, never the object.

use std::fmt;

use kube::{Resource, api::ObjectMeta};

/// The namespace and name of an object of a controller's own kind.
///
/// A reconcile gets only this: what the object looks like now, or that it is gone, is read from the cache, so that
/// many events about one object become one reconcile of its newest state (`sigs.k8s.io/controller-runtime`'s
/// `reconcile.Request`). Keys order by namespace, then name; keys of cluster-scoped objects come first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace; `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of an object in a namespace.
    pub fn namespaced(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// The key of an object of a cluster-scoped kind.
    pub fn cluster(name: impl Into<String>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// The key of `object`. An object that has no name yet (`generateName` before its creation) has the empty name.
    #[must_use]
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::named(object.meta())
    }

    /// The key of the object with this metadata.
    pub(crate) fn named(meta: &ObjectMeta) -> Self {
        Self { namespace: meta.namespace.clone(), name: meta.name.clone().unwrap_or_default() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        assert_eq!(Key::cluster("node-1").to_string(), "node-1");
    }

    #[test]
    fn keys_of_one_namespace_stand_together() {
        let mut keys = [
            Key::namespaced("b", "a"),
            Key::cluster("z"),
            Key::namespaced("a", "b"),
            Key::namespaced("a", "a"),
        ];
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), ["z", "a/a", "a/b", "b/a"]);
    }
}
