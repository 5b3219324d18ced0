//! Delivers the changes of a store to its subscribers: one after the other, in their order, and without a lock.
//!
//! A change is put into the queue while the lock of what changed is held, so the queue has the changes of an object in their order.
//! It is delivered when that lock is released, by one thread at a time: the first that comes delivers until the queue is empty, others
//! wait until theirs are delivered. So whoever changed something knows, when it goes on, that every subscriber has it.
//!
//! A handler may read and write caches, this one too, and subscribe to them: a thread that delivers never waits for another that
//! does. What its handler puts into a queue is delivered later, by itself or by who delivers there.

use std::{
    cell::Cell,
    collections::VecDeque,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
};

use parking_lot::{Condvar, Mutex};

use super::{own_writes, state::Change};
use crate::object::Kept;

type Delivery = own_writes::Delivery<dyn Kept>;

/// Called with every change, one after the other, in the order of the changes. Must not block.
pub(crate) type Handler = Box<dyn Fn(&Delivery) + Send + Sync>;

thread_local! {
    /// Whether this thread is calling handlers.
    static DELIVERS: Cell<bool> = const { Cell::new(false) };
}

/// The queue of a store's changes, and those who get them.
pub(super) struct Deliveries {
    /// The kind, for the log.
    kind: String,
    queue: Mutex<Queue>,
    /// Notified when something is delivered.
    delivered: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Entry>,
    /// How many entries there were.
    queued: u64,
    /// How many of them are delivered.
    delivered: u64,
    /// Not here while they are delivered to.
    subscribers: Vec<Subscriber>,
    is_delivering: bool,
}

enum Entry {
    Change(Delivery),
    /// A subscriber, and what was known when it came.
    Subscriber(Subscriber, Vec<Arc<dyn Kept>>),
}

/// A place in the queue: all that was put into it until then.
#[derive(Clone, Copy)]
#[must_use = "nothing is delivered until it is waited for"]
pub(super) struct Position(u64);

/// Who gets every change.
pub(super) struct Subscriber {
    pub(super) handler: Handler,
    /// It gets them as long as this is held; for ever if not there.
    pub(super) alive: Option<Weak<()>>,
}

impl Subscriber {
    fn is_alive(&self) -> bool {
        self.alive.as_ref().is_none_or(|alive| alive.strong_count() > 0)
    }

    /// A panic loses this one change for this one subscriber, loudly.
    fn deliver(&self, delivery: &Delivery, kind: &str) {
        if self.is_alive() && catch_unwind(AssertUnwindSafe(|| (self.handler)(delivery))).is_err() {
            tracing::error!(%kind, "a handler of changes panicked; the change is lost for it");
        }
    }
}

impl Deliveries {
    pub(super) fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), queue: Mutex::default(), delivered: Condvar::new() }
    }

    /// Puts changes into the queue. To be called while what changed is locked.
    pub(super) fn put(&self, changes: impl IntoIterator<Item = Delivery>) -> Position {
        self.queue.lock().put(changes.into_iter().map(Entry::Change))
    }

    /// Lets a subscriber get what is known now, as created, and then every change. To be called while all that is known is
    /// locked.
    pub(super) fn subscribe(&self, subscriber: Subscriber, known: Vec<Arc<dyn Kept>>) -> Position {
        self.queue.lock().put([Entry::Subscriber(subscriber, known)])
    }

    /// Returns when everything up to `position` is delivered; at once on a thread that delivers, if another one will do it.
    /// To be called without any lock.
    pub(super) fn deliver(&self, position: Position) {
        let mut queue = self.queue.lock();
        while queue.delivered < position.0 && queue.is_delivering {
            if DELIVERS.get() {
                return;
            }
            self.delivered.wait(&mut queue);
        }
        if queue.delivered >= position.0 {
            return;
        }
        queue.is_delivering = true;
        let mut subscribers = mem::take(&mut queue.subscribers);
        let was_delivering = DELIVERS.replace(true);
        while let Some(entry) = queue.waiting.pop_front() {
            drop(queue);
            self.handle(entry, &mut subscribers);
            queue = self.queue.lock();
            queue.delivered += 1;
            self.delivered.notify_all();
        }
        DELIVERS.set(was_delivering);
        queue.subscribers = subscribers;
        queue.is_delivering = false;
    }

    fn handle(&self, entry: Entry, subscribers: &mut Vec<Subscriber>) {
        match entry {
            Entry::Change(delivery) => {
                subscribers.iter().for_each(|subscriber| subscriber.deliver(&delivery, &self.kind));
            }
            Entry::Subscriber(subscriber, known) => {
                subscribers.retain(Subscriber::is_alive);
                for object in known {
                    let change = Change::Created(object);
                    subscriber
                        .deliver(&Delivery { is_initial: true, ..Delivery::to_all(change) }, &self.kind);
                }
                subscribers.push(subscriber);
            }
        }
    }
}

impl Queue {
    fn put(&mut self, entries: impl IntoIterator<Item = Entry>) -> Position {
        let before = self.waiting.len();
        self.waiting.extend(entries);
        self.queued += (self.waiting.len() - before) as u64;
        Position(self.queued)
    }
}
