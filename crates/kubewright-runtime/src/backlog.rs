//! What the controllers of a manager have still to do.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;

use crate::{Key, events::EventQueue, workqueue::Workqueue};

/// Backlog of a manager's controllers: the keys that wait, and the Events that are not written yet; a clone goes on reporting it while the manager runs. For tests, which
/// want to know when an operator has come to rest.
#[derive(Clone, Debug, Default)]
pub struct Backlog(Arc<Mutex<Vec<Queue>>>);

/// A controller's queue.
#[derive(Clone, Debug)]
struct Queue {
    controller: Arc<str>,
    keys: Weak<Workqueue<Key>>,
    events: Weak<EventQueue>,
}

/// A key whose last reconcile failed, and that waits for its next try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The controller.
    pub controller: String,
    /// The object.
    pub key: Key,
    /// Why the reconcile failed: the text of its error, cut where that is very long.
    pub error: String,
    /// How long ago that was.
    pub since: Duration,
    /// In how long it is tried again.
    pub after: Duration,
}

impl Backlog {
    pub(crate) fn read(&self, controller: &Arc<str>, queue: &Arc<Workqueue<Key>>, events: &Arc<EventQueue>) {
        let (keys, events) = (Arc::downgrade(queue), Arc::downgrade(events));
        self.0.lock().push(Queue { controller: Arc::clone(controller), keys, events });
    }

    /// Whether nothing is due or being worked on, every Event that was told is written, and nothing that has failed is tried again before `horizon` has passed.
    /// What a reconcile asked to be called for later is no work before its time.
    #[must_use]
    pub fn is_empty(&self, horizon: Duration) -> bool {
        self.queues().iter().all(|(_, queue)| queue.is_idle(horizon))
            && self.0.lock().iter().all(|queue| queue.events.upgrade().is_none_or(|events| events.is_idle()))
    }

    /// The keys that failed and wait for their next try, by controller, the next one first. A terminal error is not
    /// tried again, so it is none of them.
    #[must_use]
    pub fn failing(&self) -> Vec<Failing> {
        let mut failing = Vec::new();
        for (controller, queue) in self.queues() {
            queue.failing(|key, error, since, after| {
                let (controller, key, error) = (controller.to_string(), key.clone(), error.to_owned());
                failing.push(Failing { controller, key, error, since, after });
            });
        }
        failing
    }

    /// How many keys are due, by controller.
    pub(crate) fn waiting(&self) -> BTreeMap<Arc<str>, usize> {
        self.queues().into_iter().map(|(controller, queue)| (controller, queue.len())).collect()
    }

    fn queues(&self) -> Vec<(Arc<str>, Arc<Workqueue<Key>>)> {
        let queues = self.0.lock();
        queues
            .iter()
            .filter_map(|queue| Some((Arc::clone(&queue.controller), queue.keys.upgrade()?)))
            .collect()
    }
}
