//! The queue between events and workers: client-go's workqueue (`k8s.io/client-go/util/workqueue`) for async workers.

mod core;
#[cfg(test)]
mod core_tests;
mod limit;
mod line;
#[cfg(test)]
mod tests;

use std::{hash::Hash, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

pub(crate) use self::core::Later;
use self::core::{Core, Taken};
pub(crate) use self::limit::Bucket;
pub use self::limit::RateLimit;
use crate::{
    metrics::{Load, QueueMetrics},
    reason::{Reason, Reasons},
};

/// Priority of a key in the work queue; the higher the sooner. As in controller-runtime, events are [`Priority::NORMAL`], and what was
/// there when the watch began is [`Priority::LOW`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    /// Of objects that were there already: the initial list and resyncs (-100, controller-runtime's `LowPriority`).
    pub const LOW: Self = Self(-100);
    /// Of everything else (0).
    pub const NORMAL: Self = Self(0);
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}

/// A queue of keys.
///
/// - A key is in it at most once, however often it is added, and two workers never hold one key.
/// - A key that is added while a worker holds it comes again after [`Workqueue::done`].
/// - Keys of higher priority come out first, those of one priority in the order in which they became due. To be added
///   once more with a higher priority raises a key; a lower one changes nothing.
/// - No priority starves: every 16th key that comes out is the first one of the lowest priority that waits.
/// - [`Workqueue::shut_down`] drains: nothing more goes in, workers get what is due, then `None`.
#[derive(Debug)]
pub struct Workqueue<T> {
    core: Mutex<Core<T>>,
    changed: Notify,
    metrics: Option<QueueMetrics>,
}

impl<T: Clone + Eq + Hash> Default for Workqueue<T> {
    fn default() -> Self {
        Self::limited(RateLimit::default())
    }
}

impl<T: Clone + Eq + Hash> Workqueue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty queue whose failed keys come back as fast as `limit` says.
    #[must_use]
    pub fn limited(limit: RateLimit) -> Self {
        Self { core: Mutex::new(Core::new(limit)), changed: Notify::new(), metrics: None }
    }

    /// An empty queue that counts what happens to it.
    pub(crate) fn measured(limit: RateLimit, metrics: QueueMetrics) -> Self {
        Self { metrics: Some(metrics), ..Self::limited(limit) }
    }

    /// Adds `key`, unless it is in the queue already.
    pub fn add(&self, key: T) {
        self.add_with(key, Priority::NORMAL);
    }

    /// Adds `key` with a priority, or raises it if it is in the queue already.
    pub fn add_with(&self, key: T, priority: Priority) {
        self.add_because(key, priority, Reason::Added);
    }

    /// As [`Workqueue::add_with`], for a reason.
    pub(crate) fn add_because(&self, key: T, priority: Priority, reason: Reason) {
        self.change(|core| core.add(key, priority, Instant::now(), reason));
    }

    /// Adds `key` after `delay`, or earlier if an earlier addition is planned already. A worker that gets the key
    /// before that voids the plan. It has the priority then that it has now.
    pub fn add_after(&self, key: T, delay: Duration) {
        self.add_later(key, delay, Later::Requeue);
    }

    /// As [`Workqueue::add_after`], for a reason.
    pub(crate) fn add_later(&self, key: T, delay: Duration, why: Later) {
        let now = Instant::now();
        // Beyond what a clock can tell (580 years) is never.
        if let Some(time) = now.checked_add(delay) {
            self.change(|core| core.add_at(key, time, why));
            self.count_retry();
        }
    }

    /// Adds `key` after its back-off, by default 5 ms · 2ⁿ for the n-th failure in a row, at most 1000 s; with the
    /// priority that it has now.
    pub fn add_after_failure(&self, key: T) {
        self.change(|core| core.add_after_failure(key, Instant::now()));
        self.count_retry();
    }

    /// As [`Workqueue::add_after_failure`], and remembers why until the key succeeds; after this time, if one is given.
    pub(crate) fn add_after_failure_of(&self, key: &T, why: String, after: Option<Duration>) {
        let now = Instant::now();
        self.change(|core| {
            match after {
                None => core.add_after_failure(key.clone(), now),
                Some(delay) => core.add_after_failure_in(key.clone(), now, delay),
            }
            core.explain_failure(key, why, now);
        });
        self.count_retry();
    }

    /// How often `key` has failed in a row.
    pub(crate) fn failures(&self, key: &T) -> u32 {
        self.core.lock().failures(key)
    }

    /// Forgets the failures of `key`: its next back-off is the shortest again.
    pub fn forget(&self, key: &T) {
        self.core.lock().forget(key);
    }

    /// The next key, once there is one; `None` when the queue is shut down and drained. The caller has to say
    /// [`Workqueue::done`] when it has worked on it. Dropping the future loses nothing.
    pub async fn get(&self) -> Option<T> {
        self.get_with_reasons().await.map(|(key, _)| key)
    }

    /// As [`Workqueue::get`], with the reasons why the key is there.
    pub(crate) async fn get_with_reasons(&self) -> Option<(T, Reasons)> {
        loop {
            let changed = self.changed.notified();
            let due = {
                let mut core = self.core.lock();
                let taken = core.get(Instant::now());
                self.count_added(&mut core);
                if let Some(Taken { key, reasons }) = taken {
                    if core.len() > 0 {
                        // One notification may stand for several additions: pass it on.
                        self.changed.notify_one();
                    }
                    drop(core);
                    if let Some(metrics) = &self.metrics {
                        metrics.waited(reasons.waited());
                    }
                    return Some((key, reasons));
                }
                if core.is_drained() {
                    return None;
                }
                core.next_due()
            };
            match due {
                Some(due) => {
                    tokio::select! {
                        biased;
                        () = changed => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Ends the work on `key`.
    pub fn done(&self, key: &T) {
        let since = self.change(|core| core.done(key));
        if let (Some(since), Some(metrics)) = (since, &self.metrics) {
            metrics.worked(since.elapsed());
        }
    }

    /// Lets nothing more in and drops what is planned for later; workers finish what is due.
    pub fn shut_down(&self) {
        self.core.lock().shut_down();
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Forgets every key: those that are due, planned and with workers, who must be gone, and their failures.
    pub(crate) fn clear(&self) {
        self.core.lock().clear();
    }

    /// How many keys are due and with no worker.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.lock().len()
    }

    /// Whether no key is due.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether nobody has work now, nor before `horizon` has passed because something failed.
    pub(crate) fn is_idle(&self, horizon: Duration) -> bool {
        let now = Instant::now();
        self.core.lock().is_idle(now, now.checked_add(horizon))
    }

    /// Calls `report` with each key that failed and waits for its next try: why it failed, how long ago, and when it is
    /// tried again.
    pub(crate) fn failing(&self, mut report: impl FnMut(&T, &str, Duration, Duration)) {
        let (core, now) = (self.core.lock(), Instant::now());
        for (key, last, due) in core.failing() {
            let (since, after) = (now.saturating_duration_since(last.at), due.saturating_duration_since(now));
            report(key, &last.why, since, after);
        }
    }

    /// How it is doing.
    pub(crate) fn load(&self) -> Load {
        let (core, now) = (self.core.lock(), Instant::now());
        let times = core.worked_on_since().map(|since| now.saturating_duration_since(since));
        let empty = Load { depths: core.depths().clone(), ..Load::default() };
        times.fold(empty, |load, time| Load {
            unfinished: load.unfinished.saturating_add(time),
            longest: load.longest.max(time),
            ..load
        })
    }

    fn count_retry(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.retries.inc();
        }
    }

    fn count_added(&self, core: &mut Core<T>) {
        if let Some(metrics) = &self.metrics {
            metrics.adds.inc_by(core.take_added());
        }
    }

    fn change<R>(&self, f: impl FnOnce(&mut Core<T>) -> R) -> R {
        let (result, drained) = {
            let mut core = self.core.lock();
            let result = f(&mut core);
            self.count_added(&mut core);
            (result, core.is_drained())
        };
        if drained {
            self.changed.notify_waiters();
        }
        self.changed.notify_one();
        result
    }
}
