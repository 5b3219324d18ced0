//! The state that readers see, and the bells that wake those who wait for the next one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::state::State;
use crate::{Name, Snapshot};

/// The published state. Reading it takes no lock.
///
/// The bells are [`Notify`]s and not `tokio::sync::watch` channels: a watch channel spreads its waiters over shards that
/// it chooses at random, and so wakes them in an order that no seed repeats. A `Notify` wakes them in the order in which
/// they came to wait.
pub(crate) struct Published<T> {
    state: ArcSwap<State<T>>,
    bells: Mutex<BTreeMap<Name, Arc<Notify>>>,
    closed: AtomicBool,
}

impl<T> Published<T> {
    /// Starts with this state.
    pub(crate) fn new(state: State<T>) -> Self {
        Self { state: ArcSwap::from_pointee(state), bells: Mutex::default(), closed: AtomicBool::new(false) }
    }

    /// The state, held for a moment; cheaper than [`Self::snapshot`], not to be kept.
    pub(crate) fn peek(&self) -> arc_swap::Guard<Arc<State<T>>> {
        self.state.load()
    }

    /// The state, to be kept.
    pub(crate) fn snapshot(&self) -> Snapshot<T> {
        Snapshot::new(self.state.load_full())
    }

    /// Makes `state` the one that readers see, and gives back the one before. Calls must not overlap.
    pub(crate) fn replace(&self, state: State<T>) -> Arc<State<T>> {
        self.state.swap(Arc::new(state))
    }

    /// What rings when the collection has changed. Whoever makes a `notified()` of it before reading the state misses
    /// nothing.
    pub(crate) fn bell(&self, collection: &Name) -> Arc<Notify> {
        Arc::clone(self.bells.lock().entry(Arc::clone(collection)).or_default())
    }

    /// Wakes those who wait for a change of the collection, after the change was published.
    pub(crate) fn ring(&self, collection: &Name) {
        let bell = self.bells.lock().get(collection).cloned();
        if let Some(bell) = bell {
            bell.notify_waiters();
        }
    }

    /// Says that nothing will be published any more, and wakes everybody.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for bell in self.bells.lock().values() {
            bell.notify_waiters();
        }
    }

    /// Whether [`Self::close`] was called. What was published before is seen by a read after this one.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}
