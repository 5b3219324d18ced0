//! What the controllers of a manager have still to do.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;

use crate::{Key, workqueue::Workqueue};

/// What a manager's controllers have still to do; a clone goes on telling it while the manager runs. For tests, which
/// want to know when an operator has come to rest.
#[derive(Clone, Debug, Default)]
pub struct Backlog(Arc<Mutex<Vec<Weak<Workqueue<Key>>>>>);

impl Backlog {
    pub(crate) fn read(&self, queue: &Arc<Workqueue<Key>>) {
        self.0.lock().push(Arc::downgrade(queue));
    }

    /// Whether nothing is due or being worked on, and nothing that has failed is tried again before `horizon` has passed.
    /// What a reconcile asked to be called for later is no work before its time.
    #[must_use]
    pub fn is_empty(&self, horizon: Duration) -> bool {
        self.0.lock().iter().filter_map(Weak::upgrade).all(|queue| queue.is_idle(horizon))
    }
}
