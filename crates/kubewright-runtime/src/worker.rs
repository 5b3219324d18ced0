//! Takes keys from the queue and reconciles them.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;

use crate::{
    Context, Error, Key, Outcome,
    counters::{Counter, bump},
    reconciler::DynReconciler,
    workqueue::Workqueue,
};

/// One of a controller's workers.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) reconciler: Arc<dyn DynReconciler>,
    pub(crate) context: Context,
    pub(crate) queue: Arc<Workqueue<Key>>,
    pub(crate) counter: Arc<Counter>,
}

impl Worker {
    /// Works until the queue is shut down and drained.
    pub(crate) async fn run(self) {
        while let Some(key) = self.queue.get().await {
            self.work(&key).await;
            self.queue.done(&key);
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
