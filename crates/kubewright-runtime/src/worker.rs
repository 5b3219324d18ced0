//! Takes keys from the queue and reconciles them.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use tokio::time::Instant;
use tracing::Instrument;

use crate::{
    Context, Error, Failure, Key, Outcome,
    accesses::Accesses,
    error_policy::ShowFailures,
    journal::{Journal, Reconciled},
    leader::gate::Gate,
    metrics::ControllerMetrics,
    pause::Pause,
    reason::Reasons,
    reconciler::DynReconciler,
    shard::{Keys, Turn},
    span::Spans,
    workqueue::{Later, Workqueue},
};

/// When to look again whether a key that is to become this replica's is.
const NEXT_TURN: Duration = Duration::from_secs(1);

/// How much of an error is kept while its key waits for the next try, in bytes.
const LONGEST_ERROR: usize = 2048;

/// One of a controller's workers.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) reconciler: Arc<dyn DynReconciler>,
    pub(crate) context: Context,
    pub(crate) queue: Arc<Workqueue<Key>>,
    pub(crate) metrics: ControllerMetrics,
    /// How long a reconcile may take.
    pub(crate) timeout: Option<Duration>,
    pub(crate) pause: Option<Pause>,
    pub(crate) spans: Spans,
    /// Where it is noted what was done and why, if anybody can ask.
    pub(crate) journal: Journal,
    /// When it is this replica's turn; `None` if always.
    pub(crate) turns: Option<Turns>,
    /// Shows on the object why a reconcile failed.
    pub(crate) failures: Option<ShowFailures>,
}

/// How a reconcile ended: with a result, with a panic, or not in time.
type Ended = Option<Result<Result<Outcome, Error>, Box<dyn Any + Send>>>;

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
        while let Some((key, reasons)) = self.queue.get_with_reasons().await {
            match &self.turns {
                None => self.work(&key, reasons).await,
                Some(turns) => self.work_in_turn(turns, &key, reasons).await,
            }
            self.queue.done(&key);
        }
    }

    /// Works as long as the lease is held and the key is this replica's, and drops the work then.
    async fn work_in_turn(&self, turns: &Turns, key: &Key, reasons: Reasons) {
        if !turns.gate.is_open() {
            return self.queue.add_later(key.clone(), NEXT_TURN, Later::Turn);
        }
        let work = async {
            let Some(keys) = &turns.keys else {
                self.work(key, reasons).await;
                return true;
            };
            match keys.turn(key) {
                Turn::Mine(turn) => return turn.during(self.work(key, reasons)).await.is_some(),
                Turn::Soon => self.queue.add_later(key.clone(), NEXT_TURN, Later::Turn),
                Turn::Others => self.queue.forget(key),
            }
            true
        };
        let is_done = turns.gate.while_open(work).await.unwrap_or_default();
        if !is_done {
            let controller = self.context.controller();
            tracing::warn!(controller, %key, "dropped a reconcile: it is not this replica's turn any more");
            self.queue.add_later(key.clone(), NEXT_TURN, Later::Turn);
        }
    }

    async fn work(&self, key: &Key, reasons: Reasons) {
        let Some(context) = self.context.of(key) else {
            tracing::debug!(controller = self.context.controller(), %key, "not reconciled: its cluster has gone");
            return self.queue.forget(key);
        };
        if context.is_closed_to(key) {
            tracing::debug!(controller = self.context.controller(), %key, "not reconciled: its namespace has gone, or its caches are not filled");
            return self.queue.forget(key);
        }
        if self.pause.as_ref().is_some_and(|pause| pause.holds(context.cache(), key)) {
            tracing::debug!(controller = self.context.controller(), %key, "paused: not reconciled");
            return self.queue.forget(key);
        }
        let reasons = Arc::new(reasons);
        let span = self.spans.reconcile(key, &reasons);
        self.reconcile(&context, key, reasons).instrument(span).await;
    }

    async fn reconcile(&self, context: &Context, key: &Key, reasons: Arc<Reasons>) {
        let _working = Working::begin(&self.metrics);
        let (context, active) = context.active(key, reasons.clone());
        let (started, began) = (Instant::now(), self.context.world().clock.now());
        // The future is made inside, so that a panic in making it is caught as well.
        let reconcile = async { self.reconciler.reconcile(&context, key).await };
        let accesses = self.journal.accesses();
        let reconcile = Accesses::note(accesses.clone(), AssertUnwindSafe(reconcile).catch_unwind());
        let result = match self.timeout {
            None => Some(reconcile.await),
            Some(limit) => tokio::time::timeout(limit, reconcile).await.ok(),
        };
        self.metrics.took(started.elapsed());
        let result = Accesses::note(accesses.clone(), self.show(&context, key, result)).await;
        drop(active);
        let ended = || (self.report(&result), !matches!(&result, Some(Ok(Ok(_)))));
        let reconciled = Reconciled { began, took: started.elapsed(), accesses };
        self.journal.note(key, &reasons, reconciled, ended);
        match result {
            Some(Ok(Ok(outcome))) => self.succeeded(key, outcome),
            Some(Ok(Err(error))) => self.failed(key, &error),
            Some(Err(panic)) => self.panicked(key, &*panic),
            None => self.timed_out(key),
        }
    }

    /// Shows on the object why its reconcile failed, or that it does not fail any more. That the latter cannot be written is a
    /// failure: nobody else would do it.
    async fn show(&self, context: &Context, key: &Key, ended: Ended) -> Ended {
        let Some(failures) = &self.failures else { return ended };
        let attempts = self.queue.failures(key).saturating_add(1);
        match ended {
            Some(Ok(Ok(outcome))) => Some(Ok(failures.clear(context, key).await.map(|()| outcome))),
            Some(Ok(Err(error))) => {
                failures.show(context, Failure { error: &error, attempts, key }).await;
                Some(Ok(Err(error)))
            }
            Some(Err(panic)) => {
                let message = panic_message(&*panic).to_owned();
                let error = Error::Panicked { task: "the reconcile".to_owned(), message };
                failures.show(context, Failure { error: &error, attempts, key }).await;
                Some(Err(panic))
            }
            None => {
                let error = Error::new(self.took_too_long()).reason("TimedOut");
                failures.show(context, Failure { error: &error, attempts, key }).await;
                None
            }
        }
    }

    /// What came of a reconcile, for the journal.
    fn report(&self, ended: &Ended) -> String {
        let mut told = match ended {
            Some(Ok(Ok(Outcome::Done))) => "done".to_owned(),
            Some(Ok(Ok(Outcome::RequeueAfter(delay)))) => format!("requeue after {delay:?}"),
            Some(Ok(Err(error))) if error.is_terminal() => format!("terminal error: {error}"),
            Some(Ok(Err(error))) => format!("error: {error}"),
            Some(Err(panic)) => format!("panic: {}", panic_message(&**panic)),
            None => format!("time-out after {:?}", self.timeout.unwrap_or_default()),
        };
        told.truncate(told.floor_char_boundary(LONGEST_ERROR));
        told
    }

    fn succeeded(&self, key: &Key, outcome: Outcome) {
        self.queue.forget(key);
        match outcome {
            Outcome::Done => self.metrics.success.inc(),
            Outcome::RequeueAfter(delay) => {
                self.metrics.requeue_after.inc();
                self.queue.add_after(key.clone(), delay);
            }
        }
    }

    // Logged inside the reconcile's span, which names the controller and the object.

    fn failed(&self, key: &Key, error: &Error) {
        let remedy = self.context.remedy(error);
        if error.is_terminal() {
            self.count_failure();
            self.metrics.terminal_errors.inc();
            self.queue.forget(key);
            if error.is_namespace_ending() {
                tracing::debug!(%error, "the reconcile failed for good: its namespace is ending");
            } else {
                tracing::error!(%error, remedy, "the reconcile failed for good");
            }
            return;
        }
        if error.is_conflict() {
            // Somebody else was faster; the next try sees their write.
            tracing::debug!(%error, "the reconcile met a conflict; trying again");
        } else if matches!(error, Error::OwnerGone(_)) {
            // Its end is on the way to the cache.
            tracing::debug!(%error, "the reconcile failed; trying again");
        } else if error.is_namespace_ending() {
            tracing::debug!(%error, "the reconcile failed: its namespace is ending; trying again");
        } else {
            tracing::warn!(%error, remedy, "the reconcile failed; trying again");
        }
        self.try_again(key, error.to_string(), error.retry_delay());
    }

    fn panicked(&self, key: &Key, panic: &(dyn Any + Send)) {
        self.metrics.panics.inc();
        tracing::error!(message = panic_message(panic), "the reconcile panicked; trying again");
        self.try_again(key, format!("the reconcile panicked: {}", panic_message(panic)), None);
    }

    fn timed_out(&self, key: &Key) {
        self.metrics.timeouts.inc();
        tracing::error!(
            limit = ?self.timeout,
            "the reconcile took too long; trying again"
        );
        self.try_again(key, self.took_too_long(), None);
    }

    fn took_too_long(&self) -> String {
        format!("the reconcile took too long: more than {:?}", self.timeout.unwrap_or_default())
    }

    /// The queue keeps the beginning of why: an API server's answer has no bound.
    fn try_again(&self, key: &Key, mut why: String, after: Option<Duration>) {
        self.count_failure();
        why.truncate(why.floor_char_boundary(LONGEST_ERROR));
        self.queue.add_after_failure_of(key, why, after);
    }

    fn count_failure(&self) {
        self.metrics.errors.inc();
        self.metrics.error.inc();
    }
}

/// A worker that is counted as active, also when its work is dropped half way.
struct Working<'a>(&'a ControllerMetrics);

impl<'a> Working<'a> {
    fn begin(metrics: &'a ControllerMetrics) -> Self {
        metrics.active_workers.inc();
        Self(metrics)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.active_workers.dec();
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
