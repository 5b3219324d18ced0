//! The objects of one kind, shared between the watch that fills it, the writers and the readers. The kind's type is
//! forgotten here; [`Informer`](super::Informer) remembers it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, SetOnce};

use super::{
    applied::{Applied, Applier, LastApply, Owned},
    deliveries::{Deliveries, Handler, Subscriber},
    own_writes::Delivery,
    state::{self, Change},
};
use crate::{
    Key,
    object::{Head, Kept},
};

type State = state::State<dyn Kept>;

pub(crate) struct Store {
    /// One for each namespace that is watched, sorted; or one for all objects.
    pub(super) parts: Vec<Part>,
    deliveries: Deliveries,
    /// Set when the first list of every part is complete. (A `watch` channel would wake those who wait in random order.)
    synced: SetOnce<()>,
    /// Set when that list is complete, or the server said that it does not serve the kind.
    known: SetOnce<()>,
    is_served: AtomicBool,
    /// Why the watch does not work, if it does not.
    failure: Mutex<Option<String>>,
    /// Notified when an answer to a write may need the server's confirmation.
    pub(super) unconfirmed: Notify,
}

/// What is watched by one watch.
pub(super) struct Part {
    namespace: Option<String>,
    pub(super) state: RwLock<State>,
    listed: AtomicBool,
}

impl Part {
    pub(super) fn has(&self, namespace: Option<&str>) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == namespace
    }
}

impl Store {
    /// A store of the objects of a kind in these namespaces, or in all when there are none of them.
    pub(super) fn new(kind: &str, namespaces: &BTreeSet<String>) -> Self {
        let part =
            |namespace| Part { namespace, state: RwLock::new(State::new()), listed: AtomicBool::new(false) };
        let mut parts: Vec<_> = namespaces.iter().cloned().map(|name| part(Some(name))).collect();
        if parts.is_empty() {
            parts.push(part(None));
        }
        Self {
            parts,
            deliveries: Deliveries::new(kind),
            synced: SetOnce::new(),
            known: SetOnce::new(),
            is_served: AtomicBool::new(true),
            failure: Mutex::default(),
            unconfirmed: Notify::new(),
        }
    }

    /// The namespace of each watch; `None` for all.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = Option<&str>> {
        self.parts.iter().map(|part| part.namespace.as_deref())
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<dyn Kept>> {
        self.part(key.namespace.as_deref())?.state.read().get(&key.local()).cloned()
    }

    /// The object that has this head, if it is known in this very version.
    pub(super) fn in_version(&self, head: Head<'_>) -> Option<Arc<dyn Kept>> {
        self.part(head.namespace)?.state.read().in_version(head).cloned()
    }

    pub(crate) fn list(&self, namespace: Option<&str>) -> Vec<Arc<dyn Kept>> {
        let parts = self.parts.iter().filter(|part| namespace.is_none() || part.has(namespace));
        parts.flat_map(|part| part.state.read().list(namespace)).collect()
    }

    pub(crate) fn owned_by(&self, uid: &str) -> Vec<Arc<dyn Kept>> {
        self.parts.iter().flat_map(|part| part.state.read().owned_by(uid)).collect()
    }

    /// Calls `handler` for every object that is known, as created, then for every change. The handler may read and write
    /// caches, and must not block.
    pub(crate) fn subscribe(&self, handler: Handler) {
        self.add(Subscriber { handler, alive: None });
    }

    /// As [`Store::subscribe`], until nobody holds `alive` any more.
    pub(crate) fn subscribe_while(&self, alive: Weak<()>, handler: Handler) {
        self.add(Subscriber { handler, alive: Some(alive) });
    }

    fn add(&self, subscriber: Subscriber) {
        let position = {
            let states: Vec<_> = self.parts.iter().map(|part| part.state.read()).collect();
            let known = states.iter().flat_map(|state| state.list(None)).collect();
            self.deliveries.subscribe(subscriber, known)
        };
        self.deliveries.deliver(position);
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced.initialized()
    }

    /// Waits until the first list is complete.
    pub(crate) async fn synced(&self) {
        self.synced.wait().await;
    }

    /// Waits until it is known what there is.
    pub(crate) async fn known(&self) {
        self.known.wait().await;
    }

    pub(crate) fn is_served(&self) -> bool {
        self.is_served.load(Ordering::SeqCst)
    }

    /// Why the watch does not work, if it does not.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    /// The watch does not work for this reason, or it works.
    pub(super) fn set_failure(&self, failure: Option<String>) {
        *self.failure.lock() = failure;
    }

    /// The server does not serve the kind: whatever there was of it is gone.
    pub(super) fn not_served(&self, number: usize) {
        let part = &self.parts[number];
        self.is_served.store(false, Ordering::SeqCst);
        part.state.write().list_began();
        self.change(part, State::list_ended);
        // After the first time it is set already.
        let _ = self.known.set(());
    }

    /// The watch told of an object, of which appliers own this.
    pub(super) fn watched(&self, object: &Arc<dyn Kept>, owned: Vec<Owned>) {
        if let Some(part) = self.part(object.head().namespace) {
            self.change(part, |state| {
                let deliveries = state.watched(object.clone());
                state.note_owned(object.head(), owned);
                deliveries
            });
        }
    }

    /// The watch told of an object in the version that is known.
    pub(super) fn watched_again(&self, known: &Arc<dyn Kept>) {
        if let Some(part) = self.part(known.head().namespace) {
            self.change(part, |state| state.watched(known.clone()));
        }
    }

    /// What an applier owns of the object `key` in this version, if it is the one that is known.
    pub(super) fn applied(&self, key: &Key, version: Option<&str>, applier: &Applier) -> Option<Applied> {
        self.part(key.namespace.as_deref())?.state.read().applied(&key.local(), version, applier)
    }

    /// Remembers what an apply to the object `key` left.
    pub(super) fn remember(&self, key: &Key, applier: &Applier, last: LastApply) {
        if let Some(part) = self.part(key.namespace.as_deref()) {
            part.state.write().remember(&key.local(), applier, last);
        }
    }

    /// An object with this head has ended.
    pub(super) fn watched_end(&self, head: Head<'_>) {
        if let Some(part) = self.part(head.namespace) {
            self.change(part, |state| state.watched_end(head));
        }
    }

    /// A list of the objects of the `number`-th watch began.
    pub(super) fn list_began(&self, number: usize) {
        self.parts[number].state.write().list_began();
    }

    /// That list is complete.
    pub(super) fn list_ended(&self, number: usize) {
        let part = &self.parts[number];
        self.change(part, State::list_ended);
        part.listed.store(true, Ordering::SeqCst);
        if self.parts.iter().all(|part| part.listed.load(Ordering::SeqCst)) {
            self.is_served.store(true, Ordering::SeqCst);
            // After the first lists they are set already.
            let _ = self.known.set(());
            let _ = self.synced.set(());
        }
        self.unconfirmed.notify_one();
    }

    /// Waits until there may be something that only the server can tell.
    pub(super) async fn unconfirmed_changed(&self) {
        self.unconfirmed.notified().await;
    }

    pub(super) fn unconfirmed(&self) -> Option<(Key, String)> {
        self.parts.iter().find_map(|part| part.state.read().unconfirmed())
    }

    pub(super) fn confirmed(&self, key: &Key, uid: &str, there: bool) {
        if let Some(part) = self.part(key.namespace.as_deref()) {
            self.change(part, |state| state.confirmed(key, uid, there));
        }
    }

    pub(super) fn part(&self, namespace: Option<&str>) -> Option<&Part> {
        match self.parts.as_slice() {
            [all] if all.namespace.is_none() => Some(all),
            parts => parts
                .binary_search_by(|part| part.namespace.as_deref().cmp(&namespace))
                .ok()
                .map(|number| &parts[number]),
        }
    }

    /// Changes a part. When this returns, every subscriber has what came of it, unless a handler calls it.
    pub(super) fn change<C: IntoIterator<Item = Delivery<dyn Kept>>>(
        &self,
        part: &Part,
        f: impl FnOnce(&mut State) -> C,
    ) {
        let initial = !self.is_synced();
        let position = {
            let mut state = part.state.write();
            self.deliveries.put(f(&mut state).into_iter().map(|delivery| {
                let is_initial = initial && matches!(delivery.change, Change::Created(_));
                Delivery { is_initial, ..delivery }
            }))
        };
        self.deliveries.deliver(position);
    }
}
