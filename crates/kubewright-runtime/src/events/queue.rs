//! Events that wait to be written, so that no reconcile waits for them (`k8s.io/client-go/tools/record/event.go`: `recordToSink`
//! is a goroutine, and a full queue drops).

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;
use prometheus::IntCounter;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{EventType, NewEvent};
use crate::Object;

/// So many wait at most (`maxQueuedEvents` in `k8s.io/client-go/tools/record/event.go`).
const MOST_WAITING: usize = 1000;

/// An Event, and about whom and when it is.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) regarding: ObjectReference,
    pub(crate) event: NewEvent,
    pub(crate) at: Timestamp,
    /// In which further cluster.
    pub(crate) cluster: Option<Arc<str>>,
}

impl Happened {
    pub(crate) fn to<K: Object>(object: &K, event: NewEvent, at: Timestamp) -> Self {
        Self { regarding: object.object_ref(&()), event, at, cluster: None }
    }

    /// The same in a further cluster.
    pub(crate) fn in_cluster(self, cluster: Option<Arc<str>>) -> Self {
        Self { cluster, ..self }
    }

    /// What is the same when the same is told again, at whatever time.
    fn description(&self) -> (Option<&str>, Option<&str>, EventType, &str, &str) {
        let (regarding, event) = (&self.regarding, &self.event);
        (regarding.uid.as_deref(), regarding.name.as_deref(), event.event_type, &event.reason, &event.note)
    }
}

/// The Events of a controller that wait to be written.
#[derive(Debug)]
pub(crate) struct EventQueue {
    waiting: Mutex<Waiting>,
    changed: Notify,
    /// Those that nobody will write.
    dropped: IntCounter,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Happened>,
    /// Whether somebody takes them out.
    is_open: bool,
    /// Whether one that was taken out is being written.
    is_writing: bool,
}

impl Waiting {
    /// Drops the oldest of those that are told again later, or the oldest of all.
    fn drop_one(&mut self) {
        let mut later = BTreeSet::new();
        let is_repeated: Vec<bool> =
            self.events.iter().rev().map(|event| !later.insert(event.description())).collect();
        let oldest = is_repeated.iter().rev().position(|is_repeated| *is_repeated);
        self.events.remove(oldest.unwrap_or(0));
    }
}

/// The place of who takes Events out of a queue; those that are left when it is given up are dropped.
pub(super) struct Open(Arc<EventQueue>);

impl EventQueue {
    pub(crate) fn new(dropped: IntCounter) -> Self {
        Self { waiting: Mutex::default(), changed: Notify::new(), dropped }
    }

    /// Adds an Event, and never waits. When the queue is full another one is dropped for it; when nobody writes, because the
    /// controller is not at work (any more), it is dropped itself.
    pub(crate) fn add(&self, happened: Happened) {
        let mut waiting = self.waiting.lock();
        if !waiting.is_open {
            return self.dropped.inc();
        }
        waiting.events.push_back(happened);
        if waiting.events.len() > MOST_WAITING {
            waiting.drop_one();
            self.dropped.inc();
        }
        drop(waiting);
        self.changed.notify_one();
    }

    /// Whether nothing waits and nothing is being written.
    pub(crate) fn is_idle(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.events.is_empty() && !waiting.is_writing
    }

    /// Takes Events from now on.
    pub(super) fn open(self: &Arc<Self>) -> Open {
        self.waiting.lock().is_open = true;
        Open(self.clone())
    }
}

impl Open {
    /// The next Event, once there is one, when the one before is written; `None` when there is none any more after `ended`.
    pub(super) async fn next(&self, ended: &CancellationToken) -> Option<Happened> {
        loop {
            {
                let mut waiting = self.0.waiting.lock();
                let next = waiting.events.pop_front();
                waiting.is_writing = next.is_some();
                if next.is_some() {
                    return next;
                }
            }
            if ended.is_cancelled() {
                return None;
            }
            tokio::select! {
                biased;
                () = self.0.changed.notified() => {}
                () = ended.cancelled() => {}
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let left = std::mem::take(&mut *self.0.waiting.lock()).events.len();
        self.0.dropped.inc_by(u64::try_from(left).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happened(note: impl Into<String>) -> Happened {
        let event = NewEvent::new(EventType::Normal, "Moved", note);
        Happened { regarding: ObjectReference::default(), event, at: Timestamp::UNIX_EPOCH, cluster: None }
    }

    fn queue() -> (Arc<EventQueue>, IntCounter) {
        let dropped = IntCounter::new("dropped", "dropped").expect("a valid name");
        (Arc::new(EventQueue::new(dropped.clone())), dropped)
    }

    async fn all(open: &Open) -> Vec<String> {
        let (ended, mut notes) = (CancellationToken::new(), Vec::new());
        ended.cancel();
        while let Some(happened) = open.next(&ended).await {
            notes.push(happened.event.note);
        }
        notes
    }

    #[tokio::test]
    async fn what_waits_is_written_in_order_also_after_the_end() {
        let (queue, dropped) = queue();
        let open = queue.open();
        ["a", "b", "a"].into_iter().for_each(|note| queue.add(happened(note)));
        assert!(!queue.is_idle());
        assert_eq!(all(&open).await, ["a", "b", "a"]);
        assert!(queue.is_idle() && dropped.get() == 0);
    }

    #[tokio::test]
    async fn one_that_is_being_written_is_not_idle() {
        let (queue, _) = queue();
        let (open, ended) = (queue.open(), CancellationToken::new());
        queue.add(happened("a"));
        assert!(open.next(&ended).await.is_some() && !queue.is_idle());
        drop(open);
        assert!(queue.is_idle());
    }

    #[tokio::test]
    async fn a_full_queue_drops_the_oldest_repetition_first_and_then_the_oldest() {
        let (queue, dropped) = queue();
        let open = queue.open();
        let notes: Vec<String> = (0..MOST_WAITING - 2).map(|at| at.to_string()).collect();
        let first = ["first", "again"].map(str::to_owned);
        first.iter().chain(&notes).for_each(|note| queue.add(happened(note)));
        queue.add(happened("again"));
        assert_eq!(dropped.get(), 1, "the older one of the two that are alike went");
        queue.add(happened("last"));
        assert_eq!(dropped.get(), 2);
        let left = all(&open).await;
        assert_eq!(left.len(), MOST_WAITING);
        assert_eq!(left[0], "0", "nothing was repeated, so the oldest went");
        assert_eq!(left[MOST_WAITING - 2..], ["again", "last"]);
    }

    #[test]
    fn what_nobody_will_write_is_dropped_and_counted() {
        let (queue, dropped) = queue();
        queue.add(happened("before"));
        let open = queue.open();
        queue.add(happened("in time"));
        drop(open);
        queue.add(happened("after"));
        assert!(queue.is_idle());
        assert_eq!(dropped.get(), 3);
    }
}
