//! The objects of one kind, shared between the watch that fills it, the writers and the readers.

use std::sync::Arc;

use kube::Resource;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, SetOnce};

use super::state::{Change, State, Ticket};
use crate::Key;

/// Called with every change, one after the other, in the order of the changes. Must not block.
pub(crate) type Handler<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

pub(crate) struct Store<K> {
    state: RwLock<State<K>>,
    /// Held from a change until every handler knows of it, so that handlers see changes in order. Handlers may read
    /// the state.
    handlers: Mutex<Vec<Handler<K>>>,
    /// Set when the first list is complete. (A `watch` channel would wake those who wait in random order.)
    synced: SetOnce<()>,
    /// Told when an answer to a write needs the server's confirmation.
    unconfirmed: Notify,
}

impl<K: Resource> Store<K> {
    pub(super) fn new() -> Self {
        Self {
            state: RwLock::new(State::new()),
            handlers: Mutex::default(),
            synced: SetOnce::new(),
            unconfirmed: Notify::new(),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.state.read().get(key).cloned()
    }

    pub(crate) fn list(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.state.read().list(namespace)
    }

    pub(crate) fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        self.state.read().owned_by(uid)
    }

    /// Tells `handler` of every object that is known as created, then of every change.
    pub(crate) fn subscribe(&self, handler: Handler<K>) {
        let mut handlers = self.handlers.lock();
        for object in self.list(None) {
            handler(&Change::Created(object));
        }
        handlers.push(handler);
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced.initialized()
    }

    /// Waits until the first list is complete.
    pub(crate) async fn synced(&self) {
        self.synced.wait().await;
    }

    pub(super) fn watched(&self, object: K) {
        self.change(|state| state.watched(object));
    }

    pub(super) fn watched_end(&self, object: &K) {
        self.change(|state| state.watched_end(object));
    }

    pub(super) fn list_began(&self) {
        self.state.write().list_began();
    }

    pub(super) fn list_ended(&self) {
        self.change(State::list_ended);
        // After the first list it is set already.
        let _ = self.synced.set(());
        self.unconfirmed.notify_one();
    }

    /// Says that a write begins; its answer is given to what this returns.
    pub(crate) fn write(self: &Arc<Self>) -> Write<K> {
        let ticket = self.state.write().write_began();
        Write { store: self.clone(), ticket }
    }

    /// Waits until there may be something that only the server can tell.
    pub(super) async fn unconfirmed_changed(&self) {
        self.unconfirmed.notified().await;
    }

    pub(super) fn unconfirmed(&self) -> Option<(Key, String)> {
        self.state.read().unconfirmed()
    }

    pub(super) fn confirmed(&self, key: &Key, uid: &str, there: bool) {
        self.change(|state| state.confirmed(key, uid, there));
    }

    fn change<C: IntoIterator<Item = Change<K>>>(&self, f: impl FnOnce(&mut State<K>) -> C) {
        let handlers = self.handlers.lock();
        let changes = f(&mut *self.state.write());
        for change in changes {
            for handler in handlers.iter() {
                handler(&change);
            }
        }
    }
}

/// A write that is under way.
pub(crate) struct Write<K: Resource> {
    store: Arc<Store<K>>,
    ticket: Ticket,
}

impl<K: Resource> Write<K> {
    /// The write returned an object.
    pub(crate) fn returned(&self, object: K) {
        self.store.change(|state| state.written(self.ticket, object));
        self.store.unconfirmed.notify_one();
    }

    /// The write ended the life of the object `key`, which has this `uid` if the answer said so.
    pub(crate) fn ended(&self, key: &Key, uid: Option<&str>) {
        self.store.change(|state| state.written_end(key, uid));
    }
}

impl<K: Resource> Drop for Write<K> {
    fn drop(&mut self) {
        self.store.state.write().write_ended(self.ticket);
    }
}
