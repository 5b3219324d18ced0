//! Watches that a reconcile begins.

use std::{ops::Deref, sync::Arc};

use super::Context;
use crate::{Cached, Informer, Key, Object, source::EventHandler};

/// A watch that a reconcile began; it ends when this is dropped. It reads as the [`Informer`] that it is.
#[derive(Debug)]
pub struct Watching<K: Cached> {
    informer: Informer<K>,
    _alive: Arc<()>,
}

impl<K: Cached> Deref for Watching<K> {
    type Target = Informer<K>;

    fn deref(&self) -> &Informer<K> {
        &self.informer
    }
}

impl Context {
    /// Watches a kind that the controller did not declare, from now on until what is returned is dropped: every object that
    /// is there, and every change, leads to the keys that `mapping` finds. Whoever watches a kind shares the watch. It looks at
    /// the manager's namespaces.
    ///
    /// A kind that is known only at run time is watched by [`DynamicContext::watch`](crate::DynamicContext::watch).
    ///
    /// The kind need not be there: while the API server does not serve it, there are no objects of it
    /// ([`Informer::is_served`]). When its CustomResourceDefinition comes, or comes back, the watch begins within seconds.
    ///
    /// Of a manager that looks at some namespaces only, it is watched in these. Takes the rights that
    /// [`Rights::watching`](crate::rbac::Rights::watching) declares.
    ///
    /// Keep what is returned in the reconciler. When another replica becomes the leader, it watches when its reconciler
    /// says so; when this one leads again, all that is there leads to its keys once more.
    pub fn watch<K: Object>(&self, mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static) -> Watching<K> {
        self.begin_watch(self.0.cache.watch_typed(), mapping)
    }

    pub(super) fn begin_watch<K: Cached>(
        &self,
        informer: Informer<K>,
        mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
    ) -> Watching<K> {
        let alive = Arc::new(());
        let kind = informer.erase().kind();
        EventHandler::mapped(mapping, kind, self.0.sink.clone()).subscribe(informer.erase(), &alive);
        Watching { informer, _alive: alive }
    }
}
