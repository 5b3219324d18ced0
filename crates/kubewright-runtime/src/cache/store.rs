//! The objects of one kind, shared between the watch that fills it, the writers and the readers. The kind's type is
//! forgotten here; [`Informer`](super::Informer) remembers it.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use kube::api::ObjectMeta;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, SetOnce};

use super::{
    own::Audience,
    state::{self, Ticket},
};
use crate::{
    Key,
    author::{Attempt, Author},
    object::AnyObject,
};

type Change = state::Change<dyn AnyObject>;
type State = state::State<dyn AnyObject>;

/// Called with every change, one after the other, in the order of the changes. Must not block.
pub(crate) type Handler = Box<dyn Fn(&Change, &Told) + Send + Sync>;

/// What else is said of a change.
#[derive(Debug)]
pub(crate) struct Told {
    /// It tells of an object that was there before.
    pub(crate) was_there: bool,
    audience: Audience<Arc<Author>>,
}

impl Told {
    /// Of an object that was there before.
    pub(crate) const WAS_THERE: Self = Self { was_there: true, audience: Audience::EVERYBODY };

    /// Whether one who follows every change hears of it for the first time.
    pub(crate) fn is_news(&self) -> bool {
        matches!(self.audience, Audience::AllBut(_))
    }

    /// Whether a controller that does not hear of what a reconcile did itself hears of it for a key.
    pub(crate) fn is_for(&self, controller: &str, key: &Key) -> bool {
        let is = |author: &Arc<Author>| author.key == *key && *author.controller == *controller;
        match &self.audience {
            Audience::AllBut(authors) => !authors.iter().any(is),
            Audience::Only(author) => is(author),
        }
    }
}

struct Subscriber {
    handler: Handler,
    /// What it has to be told as long as; for ever if not there.
    alive: Option<Weak<()>>,
}

impl Subscriber {
    fn is_alive(&self) -> bool {
        self.alive.as_ref().is_none_or(|alive| alive.strong_count() > 0)
    }
}

pub(crate) struct Store {
    /// One for each namespace that is watched, sorted; or one for all objects.
    parts: Vec<Part>,
    /// Held from a change until every handler knows of it, so that handlers see changes in order. Handlers may read
    /// the state.
    handlers: Mutex<Vec<Subscriber>>,
    /// Set when the first list of every part is complete. (A `watch` channel would wake those who wait in random order.)
    synced: SetOnce<()>,
    /// Set when that list is complete, or the server said that it does not serve the kind.
    known: SetOnce<()>,
    is_served: AtomicBool,
    /// Told when an answer to a write needs the server's confirmation.
    unconfirmed: Notify,
}

/// What is watched by one watch.
struct Part {
    namespace: Option<String>,
    state: RwLock<State>,
    listed: AtomicBool,
}

impl Part {
    /// Whose write of which object it is, if the object is in this part.
    fn own<'a>(&self, own: Option<&'a (Key, Arc<Author>)>) -> Option<(&'a Key, &'a Arc<Author>)> {
        own.filter(|(key, _)| self.has(key.namespace.as_deref())).map(|(key, author)| (key, author))
    }

    fn has(&self, namespace: Option<&str>) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == namespace
    }
}

impl Store {
    /// A store of the objects in these namespaces, or in all when there are none of them.
    pub(super) fn new(namespaces: &BTreeSet<String>) -> Self {
        let part =
            |namespace| Part { namespace, state: RwLock::new(State::new()), listed: AtomicBool::new(false) };
        let mut parts: Vec<_> = namespaces.iter().cloned().map(|name| part(Some(name))).collect();
        if parts.is_empty() {
            parts.push(part(None));
        }
        Self {
            parts,
            handlers: Mutex::default(),
            synced: SetOnce::new(),
            known: SetOnce::new(),
            is_served: AtomicBool::new(true),
            unconfirmed: Notify::new(),
        }
    }

    /// The namespace of each watch; `None` for all.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = Option<&str>> {
        self.parts.iter().map(|part| part.namespace.as_deref())
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<dyn AnyObject>> {
        self.part(key.namespace.as_deref())?.state.read().get(key).cloned()
    }

    pub(crate) fn list(&self, namespace: Option<&str>) -> Vec<Arc<dyn AnyObject>> {
        let parts = self.parts.iter().filter(|part| namespace.is_none() || part.has(namespace));
        parts.flat_map(|part| part.state.read().list(namespace)).collect()
    }

    pub(crate) fn owned_by(&self, uid: &str) -> Vec<Arc<dyn AnyObject>> {
        self.parts.iter().flat_map(|part| part.state.read().owned_by(uid)).collect()
    }

    /// Tells `handler` of every object that is known as created, then of every change.
    pub(crate) fn subscribe(&self, handler: Handler) {
        self.add_subscriber(handler, None);
    }

    /// As [`Store::subscribe`], until nobody holds `alive` any more.
    pub(crate) fn subscribe_while(&self, alive: Weak<()>, handler: Handler) {
        self.add_subscriber(handler, Some(alive));
    }

    fn add_subscriber(&self, handler: Handler, alive: Option<Weak<()>>) {
        let mut handlers = self.handlers.lock();
        handlers.retain(Subscriber::is_alive);
        for object in self.list(None) {
            handler(&Change::Created(object), &Told::WAS_THERE);
        }
        handlers.push(Subscriber { handler, alive });
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

    /// The server does not serve the kind: whatever there was of it is gone.
    pub(super) fn not_served(&self, number: usize) {
        let part = &self.parts[number];
        self.is_served.store(false, Ordering::SeqCst);
        part.state.write().list_began();
        self.change(part, State::list_ended);
        // After the first time it is set already.
        let _ = self.known.set(());
    }

    pub(super) fn watched(&self, object: Arc<dyn AnyObject>) {
        if let Some(part) = self.part(object.metadata().namespace.as_deref()) {
            self.change(part, |state| state.watched(object));
        }
    }

    /// An object with this metadata has ended.
    pub(super) fn watched_end(&self, meta: &ObjectMeta) {
        if let Some(part) = self.part(meta.namespace.as_deref()) {
            self.change(part, |state| state.watched_end(meta));
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

    /// Says that a write begins; its answer is given to what this returns. It is one of the object of this key, if that is
    /// known before, in a reconcile.
    pub(crate) fn write(self: &Arc<Self>, key: Option<Key>, attempt: Option<Arc<Attempt>>) -> Write {
        let author = attempt.as_ref().and_then(|attempt| attempt.author().cloned());
        let own = key.zip(author);
        let tickets =
            self.parts.iter().map(|part| part.state.write().write_began(part.own(own.as_ref()))).collect();
        Write { store: self.clone(), tickets, own, attempt }
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

    fn part(&self, namespace: Option<&str>) -> Option<&Part> {
        match self.parts.as_slice() {
            [all] if all.namespace.is_none() => Some(all),
            parts => parts
                .binary_search_by(|part| part.namespace.as_deref().cmp(&namespace))
                .ok()
                .map(|number| &parts[number]),
        }
    }

    fn change<C: IntoIterator<Item = state::News<dyn AnyObject>>>(
        &self,
        part: &Part,
        f: impl FnOnce(&mut State) -> C,
    ) {
        let handlers = self.handlers.lock();
        let news = f(&mut part.state.write());
        let initial = !self.is_synced();
        for state::News { change, audience } in news {
            let was_there = initial && matches!(change, Change::Created(_));
            let told = Told { was_there, audience };
            for subscriber in handlers.iter().filter(|subscriber| subscriber.is_alive()) {
                (subscriber.handler)(&change, &told);
            }
        }
    }
}

/// A write that is under way.
pub(crate) struct Write {
    store: Arc<Store>,
    /// For each part: where the object will be is known when it is written.
    tickets: Vec<Ticket>,
    /// As whose, and as one of which object, it began.
    own: Option<(Key, Arc<Author>)>,
    attempt: Option<Arc<Attempt>>,
}

impl Write {
    /// Whether somebody need not hear of it, if it does what was asked for.
    pub(crate) fn is_own(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.author().is_some())
    }

    /// The write returned an object, which is as its author asked for or has something else.
    pub(crate) fn returned(&self, object: Arc<dyn AnyObject>, is_as_asked: bool) {
        let namespace = object.metadata().namespace.as_deref();
        let author = self.attempt.as_ref().filter(|_| is_as_asked).and_then(|attempt| attempt.author());
        let mut parts = self.store.parts.iter().zip(&self.tickets);
        if let Some((part, ticket)) = parts.find(|(part, _)| part.has(namespace)) {
            self.store.change(part, |state| state.written(*ticket, object, author));
            self.store.unconfirmed.notify_one();
        }
    }

    /// The write ended the life of the object `key`, which has this `uid` if the answer said so.
    pub(crate) fn ended(&self, key: &Key, uid: Option<&str>) {
        if let Some(part) = self.store.part(key.namespace.as_deref()) {
            self.store.change(part, |state| state.written_end(key, uid));
        }
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        for (part, ticket) in self.store.parts.iter().zip(&self.tickets) {
            let own = part.own(self.own.as_ref());
            self.store.change(part, |state| state.write_ended(*ticket, own));
        }
    }
}
