//! Takes keys from the queue and reconciles them.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;

use crate::{
    Context, Error, Key, Outcome,
    counters::{Counter, bump},
    leader::gate::Gate,
    reconciler::DynReconciler,
    shard::{Keys, Turn},
    workqueue::Workqueue,
};

/// When to look again whether a key that is to become this replica's is.
const NEXT_TURN: Duration = Duration::from_secs(1);

/// One of a controller's workers.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) reconciler: Arc<dyn DynReconciler>,
    pub(crate) context: Context,
    pub(crate) queue: Arc<Workqueue<Key>>,
    pub(crate) counter: Arc<Counter>,
    /// When it is this replica's turn; `None` if always.
    pub(crate) turns: Option<Turns>,
}

/// When it is a replica's turn.
#[derive(Clone)]
pub(crate) struct Turns {
    /// Open while the replica holds its lease.
    pub(crate) gate: Gate,
    /// Where replicas share the keys: which are this one's.
    pub(crate) keys: Option<Arc<Keys>>,
}

impl Worker {
    /// Works until the queue is shut down and drained.
    pub(crate) async fn run(self) {
        while let Some(key) = self.queue.get().await {
            match &self.turns {
                None => self.work(&key).await,
                Some(turns) => self.work_in_turn(turns, &key).await,
            }
            self.queue.done(&key);
        }
    }

    /// Works as long as the lease is held and the key is this replica's, and drops the work then.
    async fn work_in_turn(&self, turns: &Turns, key: &Key) {
        if !turns.gate.is_open() {
            return self.queue.add_after(key.clone(), NEXT_TURN);
        }
        let work = async {
            let Some(keys) = &turns.keys else {
                self.work(key).await;
                return true;
            };
            match keys.turn(key) {
                Turn::Mine(turn) => return turn.during(self.work(key)).await.is_some(),
                Turn::Soon => self.queue.add_after(key.clone(), NEXT_TURN),
                Turn::Others => self.queue.forget(key),
            }
            true
        };
        let is_done = turns.gate.while_open(work).await.unwrap_or_default();
        if !is_done {
            let controller = self.context.controller();
            tracing::warn!(controller, %key, "dropped a reconcile: it is not this replica's turn any more");
            self.queue.add_after(key.clone(), NEXT_TURN);
        }
    }

    async fn work(&self, key: &Key) {
        // The future is made inside, so that a panic in making it is caught as well.
        let reconcile = async { self.reconciler.reconcile(&self.context, key).await };
        let result = AssertUnwindSafe(reconcile).catch_unwind().await;
        bump(&self.counter.reconciles);
        match result {
            Ok(Ok(outcome)) => self.succeeded(key, outcome),
            Ok(Err(error)) => self.failed(key, &error),
            Err(panic) => self.panicked(key, &*panic),
        }
    }

    fn succeeded(&self, key: &Key, outcome: Outcome) {
        self.queue.forget(key);
        if let Outcome::RequeueAfter(delay) = outcome {
            bump(&self.counter.requeues_after);
            self.queue.add_after(key.clone(), delay);
        }
    }

    fn failed(&self, key: &Key, error: &Error) {
        let controller = self.context.controller();
        bump(&self.counter.errors);
        if error.is_terminal() {
            bump(&self.counter.terminal_errors);
            self.queue.forget(key);
            tracing::error!(controller, %key, %error, "the reconcile failed for good");
            return;
        }
        if error.is_conflict() {
            // Somebody else was faster; the next try sees their write.
            tracing::debug!(controller, %key, %error, "the reconcile met a conflict; trying again");
        } else {
            tracing::warn!(controller, %key, %error, "the reconcile failed; trying again");
        }
        self.queue.add_after_failure(key.clone());
    }

    fn panicked(&self, key: &Key, panic: &(dyn Any + Send)) {
        bump(&self.counter.panics);
        tracing::error!(
            controller = self.context.controller(), %key, message = panic_message(panic),
            "the reconcile panicked; trying again"
        );
        self.queue.add_after_failure(key.clone());
    }
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)")
}
