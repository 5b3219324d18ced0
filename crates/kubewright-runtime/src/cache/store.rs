//! The objects of one kind, shared between the watch that fills it, the writers and the readers. The kind's type is
//! forgotten here; [`Informer`](super::Informer) remembers it.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, SetOnce};
use tokio_util::sync::CancellationToken;

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
    parts: ArcSwap<Vec<Arc<Part>>>,
    /// Held while namespaces come and go, and while somebody subscribes to all that there are.
    membership: Mutex<()>,
    /// Notified when they have come or gone.
    pub(super) parts_changed: Notify,
    /// Whether there is a watch.
    is_watched: AtomicBool,
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
    /// Set when its first list is complete.
    listed: SetOnce<()>,
    /// Set when that list is complete, or the server said that it does not serve the kind.
    known: SetOnce<()>,
    /// Ends its watch: its namespace is not looked at any more.
    pub(super) gone: CancellationToken,
}

impl Part {
    fn new(namespace: Option<String>) -> Arc<Self> {
        Arc::new(Self {
            namespace,
            state: RwLock::new(State::new()),
            listed: SetOnce::new(),
            known: SetOnce::new(),
            gone: CancellationToken::new(),
        })
    }

    /// Its namespace; `None` for all.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    pub(super) fn is_listed(&self) -> bool {
        self.listed.initialized()
    }

    /// Waits until its first list is complete, or its namespace is not looked at any more.
    pub(super) async fn listed(&self) {
        self.gone.run_until_cancelled(self.listed.wait()).await;
    }

    /// As [`Part::listed`], or until it is known that the kind is not served.
    pub(super) async fn known(&self) {
        self.gone.run_until_cancelled(self.known.wait()).await;
    }

    pub(super) fn has(&self, namespace: Option<&str>) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == namespace
    }
}

impl Store {
    /// A store of the objects of a kind in these parts: namespaces in order, or `None` for all.
    pub(super) fn new(kind: &str, parts: impl IntoIterator<Item = Option<String>>) -> Self {
        Self {
            parts: ArcSwap::from_pointee(parts.into_iter().map(Part::new).collect()),
            membership: Mutex::default(),
            parts_changed: Notify::new(),
            is_watched: AtomicBool::new(false),
            deliveries: Deliveries::new(kind),
            synced: SetOnce::new(),
            known: SetOnce::new(),
            is_served: AtomicBool::new(true),
            failure: Mutex::default(),
            unconfirmed: Notify::new(),
        }
    }

    /// What is to be watched now.
    pub(super) fn parts(&self) -> Arc<Vec<Arc<Part>>> {
        self.parts.load_full()
    }

    /// There is a watch from now on.
    pub(super) fn watch_began(&self) {
        self.is_watched.store(true, Ordering::SeqCst);
        self.settle();
    }

    /// Looks at one more namespace.
    pub(super) fn join(&self, namespace: &str) {
        let _membership = self.membership.lock();
        let mut parts = Vec::clone(&self.parts.load());
        if let Err(place) = place(&parts, Some(namespace)) {
            parts.insert(place, Part::new(Some(namespace.to_owned())));
            self.parts.store(Arc::new(parts));
            self.parts_changed.notify_one();
        }
    }

    /// Does not look at a namespace any more, unless it is there again: its objects have ended, as far as anybody here is told.
    pub(super) fn leave(&self, namespace: &str, is_there: impl FnOnce() -> bool) {
        let position = {
            let _membership = self.membership.lock();
            if is_there() {
                return;
            }
            let mut parts = Vec::clone(&self.parts.load());
            let Ok(place) = place(&parts, Some(namespace)) else { return };
            let part = parts.remove(place);
            self.parts.store(Arc::new(parts));
            part.gone.cancel();
            let mut state = part.state.write();
            self.deliveries.put(state.left())
        };
        self.parts_changed.notify_one();
        self.deliveries.deliver(position);
        self.settle();
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<dyn Kept>> {
        let parts = self.parts.load();
        find(&parts, key.namespace.as_deref())?.state.read().get(&key.local()).cloned()
    }

    /// The object that has this head, if it is known in this very version.
    pub(super) fn in_version(&self, head: Head<'_>) -> Option<Arc<dyn Kept>> {
        find(&self.parts.load(), head.namespace)?.state.read().in_version(head).cloned()
    }

    pub(crate) fn list(&self, namespace: Option<&str>) -> Vec<Arc<dyn Kept>> {
        let parts = self.parts.load();
        let parts = parts.iter().filter(|part| namespace.is_none() || part.has(namespace));
        parts.flat_map(|part| part.state.read().list(namespace)).collect()
    }

    pub(crate) fn owned_by(&self, uid: &str) -> Vec<Arc<dyn Kept>> {
        self.parts.load().iter().flat_map(|part| part.state.read().owned_by(uid)).collect()
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
            let _membership = self.membership.lock();
            let parts = self.parts.load();
            let states: Vec<_> = parts.iter().map(|part| part.state.read()).collect();
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
    pub(super) fn not_served(&self, part: &Part) {
        self.is_served.store(false, Ordering::SeqCst);
        part.state.write().list_began();
        self.change(part, State::list_ended);
        // After the first time they are set already.
        let _ = part.known.set(());
        let _ = self.known.set(());
    }

    /// The watch told of an object, of which appliers own this.
    pub(super) fn watched(&self, object: &Arc<dyn Kept>, owned: Vec<Owned>) {
        if let Some(part) = self.part(object.head().namespace) {
            self.change(&part, |state| {
                let deliveries = state.watched(object.clone());
                state.note_owned(object.head(), owned);
                deliveries
            });
        }
    }

    /// The watch told of an object in the version that is known.
    pub(super) fn watched_again(&self, known: &Arc<dyn Kept>) {
        if let Some(part) = self.part(known.head().namespace) {
            self.change(&part, |state| state.watched(known.clone()));
        }
    }

    /// What an applier owns of the object `key` in this version, if it is the one that is known.
    pub(super) fn applied(&self, key: &Key, version: Option<&str>, applier: &Applier) -> Option<Applied> {
        find(&self.parts.load(), key.namespace.as_deref())?.state.read().applied(
            &key.local(),
            version,
            applier,
        )
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
            self.change(&part, |state| state.watched_end(head));
        }
    }

    /// A list of the objects of a part is complete.
    pub(super) fn list_ended(&self, part: &Part) {
        self.change(part, State::list_ended);
        // After the first list they are set already.
        let _ = part.listed.set(());
        let _ = part.known.set(());
        self.settle();
        self.unconfirmed.notify_one();
    }

    /// Notes when all parts are listed.
    fn settle(&self) {
        let is_watched = self.is_watched.load(Ordering::SeqCst);
        if is_watched && self.parts.load().iter().all(|part| part.is_listed()) {
            self.is_served.store(true, Ordering::SeqCst);
            // After the first lists they are set already.
            let _ = self.known.set(());
            let _ = self.synced.set(());
        }
    }

    /// Waits until there may be something that only the server can tell.
    pub(super) async fn unconfirmed_changed(&self) {
        self.unconfirmed.notified().await;
    }

    pub(super) fn unconfirmed(&self) -> Option<(Key, String)> {
        self.parts.load().iter().find_map(|part| part.state.read().unconfirmed())
    }

    pub(super) fn confirmed(&self, key: &Key, uid: &str, there: bool) {
        if let Some(part) = self.part(key.namespace.as_deref()) {
            self.change(&part, |state| state.confirmed(key, uid, there));
        }
    }

    pub(super) fn part(&self, namespace: Option<&str>) -> Option<Arc<Part>> {
        find(&self.parts.load(), namespace).cloned()
    }

    /// Changes a part that is looked at. When this returns, every subscriber has what came of it, unless a handler calls it.
    pub(super) fn change<C: IntoIterator<Item = Delivery<dyn Kept>>>(
        &self,
        part: &Part,
        f: impl FnOnce(&mut State) -> C,
    ) {
        let initial = !part.is_listed();
        let position = {
            let mut state = part.state.write();
            if part.gone.is_cancelled() {
                return;
            }
            self.deliveries.put(f(&mut state).into_iter().map(|delivery| {
                let is_initial = initial && matches!(delivery.change, Change::Created(_));
                Delivery { is_initial, ..delivery }
            }))
        };
        self.deliveries.deliver(position);
    }
}

/// The part that has the objects of a namespace, or those that live in none.
fn find<'a>(parts: &'a [Arc<Part>], namespace: Option<&str>) -> Option<&'a Arc<Part>> {
    match parts {
        [all] if all.namespace.is_none() => Some(all),
        parts => place(parts, namespace).ok().map(|place| &parts[place]),
    }
}

/// Where the part of a namespace is, or would be.
fn place(parts: &[Arc<Part>], namespace: Option<&str>) -> Result<usize, usize> {
    parts.binary_search_by(|part| part.namespace().cmp(&namespace))
}
