//! Objects by what a function says of them.

use std::{
    any::type_name,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, OnceLock},
};

use parking_lot::RwLock;

use super::{Change, Informer};
use crate::{Key, Object};

/// Finds the objects of kind `K` by values that a function gives to each: Pods by their node, say. A clone is the same
/// index.
///
/// Made by hand, declared behind the kind by [`Controller::indexed`](crate::Controller::indexed), and kept in the
/// reconciler. It is as up to date as the cache.
///
/// ```
/// use k8s_openapi::api::core::v1::{Node, Pod};
/// use kubewright_runtime::{Context, Controller, Error, Index, Key, Outcome, Reconciler};
///
/// struct Drain {
///     by_node: Index<Pod>,
/// }
///
/// impl Reconciler for Drain {
///     async fn reconcile(&self, ctx: &Context, node: &Key) -> Result<Outcome, Error> {
///         for pod in self.by_node.get(&node.name) {
///             println!("{} is on {node}", Key::of(&*pod));
///         }
///         Ok(Outcome::Done)
///     }
/// }
///
/// let by_node = Index::new("by-node", |pod: &Pod| {
///     pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
/// });
/// let controller = Controller::new("drain", Drain { by_node: by_node.clone() })
///     .for_kind::<Node>()
///     .reads::<Pod>().indexed(&by_node);
/// ```
pub struct Index<K: Object>(Arc<Inner<K>>);

/// What a function says of an object.
type Values<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

struct Inner<K: Object> {
    name: String,
    values: Values<K>,
    keys: RwLock<BTreeMap<String, BTreeSet<Key>>>,
    informer: OnceLock<Informer<K>>,
}

impl<K: Object> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Object> Index<K> {
    /// An index, called `name` in logs, of the values that `values` gives to an object. It must not block.
    pub fn new(name: impl Into<String>, values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            name: name.into(),
            values: Box::new(values),
            keys: RwLock::default(),
            informer: OnceLock::new(),
        }))
    }

    /// The objects that have this value, sorted by key.
    ///
    /// # Panics
    /// When no controller declares it (`.indexed(&index)` behind the kind): the answer would be "none" whatever is there.
    #[must_use]
    pub fn get(&self, value: &str) -> Vec<Arc<K>> {
        let informer = self.informer();
        self.keys(value).iter().filter_map(|key| informer.get(key)).collect()
    }

    /// The keys of the objects that have this value, in order: what a [watch](crate::Controller::watches) of something else gives for the
    /// objects that name it.
    ///
    /// # Panics
    /// As [`Index::get`].
    #[must_use]
    pub fn keys(&self, value: &str) -> Vec<Key> {
        self.informer();
        self.0.keys.read().get(value).into_iter().flatten().cloned().collect()
    }

    fn informer(&self) -> &Informer<K> {
        let Some(informer) = self.0.informer.get() else {
            panic!(
                "the index {} is on no controller: add .indexed(&index) behind {}",
                self.0.name,
                type_name::<K>()
            )
        };
        informer
    }

    /// Keeps it up to date from now on; says what is wrong when it is on other caches already.
    pub(crate) fn connect(&self, informer: &Informer<K>) -> Result<(), String> {
        if let Err(other) = self.0.informer.set(informer.clone()) {
            let known = self.0.informer.get().is_some_and(|known| known.is_same(&other));
            return if known {
                Ok(())
            } else {
                Err(format!("the index {} is one of another manager", self.0.name))
            };
        }
        // Not the informer: that would hold itself.
        let index = Arc::downgrade(&self.0);
        informer.subscribe(move |change| {
            if let Some(index) = index.upgrade() {
                index.follow(change);
            }
        });
        Ok(())
    }
}

impl<K: Object> Inner<K> {
    fn follow(&self, change: &Change<K>) {
        let (old, new) = match change {
            Change::Created(new) => (None, Some(new)),
            Change::Updated { old, new } => (Some(old), Some(new)),
            Change::Deleted(old) => (Some(old), None),
        };
        let values = |object: Option<&Arc<K>>| -> BTreeSet<String> {
            object.into_iter().flat_map(|object| (self.values)(object)).collect()
        };
        let (before, after) = (values(old), values(new));
        let Some(key) = new.or(old).map(|object| Key::of(&**object)) else { return };
        let mut keys = self.keys.write();
        for value in before.difference(&after) {
            if let Some(here) = keys.get_mut(value) {
                here.remove(&key);
                if here.is_empty() {
                    keys.remove(value);
                }
            }
        }
        for value in after.difference(&before) {
            keys.entry(value.clone()).or_default().insert(key.clone());
        }
    }
}

impl<K: Object> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Index").field(&self.0.name).finish()
    }
}
