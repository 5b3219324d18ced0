//! The rules of the queue, as plain data: no clock, no task, no lock.

use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    time::Duration,
};

use tokio::time::Instant;

/// The delay after the first failure (controller-runtime's default rate limiter).
const FIRST_DELAY: Duration = Duration::from_millis(5);
/// The longest delay.
const LONGEST_DELAY: Duration = Duration::from_secs(1000);

/// Which keys wait, which are due and which are being worked on.
///
/// The three sets are client-go's (`util/workqueue/queue.go`): a key in `dirty` needs work, a key in `processing` is
/// being worked on, and `queue` has the order of those that are dirty and not being processed. So a key is in the
/// queue at most once and with at most one worker, and what is added during its processing is not lost. Each key of the
/// first two has the time since when it is there.
#[derive(Debug)]
pub(crate) struct Core<T> {
    queue: VecDeque<T>,
    dirty: BTreeMap<T, Instant>,
    processing: BTreeMap<T, Instant>,
    /// Keys by the time when they are to be added; the number keeps the order of equal times.
    planned: BTreeMap<(Instant, u64), T>,
    plans: BTreeMap<T, (Instant, u64)>,
    failures: BTreeMap<T, u32>,
    counter: u64,
    added: u64,
    shut_down: bool,
}

/// A key that a worker gets.
#[derive(Debug)]
pub(crate) struct Taken<T> {
    pub(crate) key: T,
    /// How long it was due.
    pub(crate) waited: Duration,
}

impl<T: Clone + Ord> Core<T> {
    pub(crate) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            dirty: BTreeMap::new(),
            processing: BTreeMap::new(),
            planned: BTreeMap::new(),
            plans: BTreeMap::new(),
            failures: BTreeMap::new(),
            counter: 0,
            added: 0,
            shut_down: false,
        }
    }

    /// Marks `key` as in need of work since `now`.
    pub(crate) fn add(&mut self, key: T, now: Instant) {
        if self.shut_down {
            return;
        }
        let Entry::Vacant(entry) = self.dirty.entry(key) else { return };
        if !self.processing.contains_key(entry.key()) {
            self.queue.push_back(entry.key().clone());
        }
        entry.insert(now);
        self.added += 1;
    }

    /// How many keys became in need of work since this was asked.
    pub(crate) fn take_added(&mut self) -> u64 {
        std::mem::take(&mut self.added)
    }

    /// Adds `key` at `time`, or earlier if an earlier addition is planned already.
    pub(crate) fn add_at(&mut self, key: T, time: Instant) {
        if self.shut_down || self.plans.get(&key).is_some_and(|(planned, _)| *planned <= time) {
            return;
        }
        self.cancel_plan(&key);
        self.counter += 1;
        self.plans.insert(key.clone(), (time, self.counter));
        self.planned.insert((time, self.counter), key);
    }

    /// Counts a failure of `key` and adds it after its back-off.
    pub(crate) fn add_after_failure(&mut self, key: T, now: Instant) {
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(*failures)).min(LONGEST_DELAY);
        *failures = failures.saturating_add(1);
        self.add_at(key, now + delay);
    }

    /// Forgets the failures of `key`.
    pub(crate) fn forget(&mut self, key: &T) {
        self.failures.remove(key);
    }

    /// Gives the next key to a worker, who has to say [`Core::done`]. The keys whose time has come stand behind those
    /// that were due before. What was planned for the key is void: the outcome of this work plans anew.
    pub(crate) fn get(&mut self, now: Instant) -> Option<Taken<T>> {
        self.add_due(now);
        let key = self.queue.pop_front()?;
        let since = self.dirty.remove(&key).unwrap_or(now);
        self.processing.insert(key.clone(), now);
        self.cancel_plan(&key);
        Some(Taken { key, waited: now.saturating_duration_since(since) })
    }

    /// Ends the work on `key`; it goes back into the queue if it was added in the meantime.
    /// Says since when it was worked on.
    pub(crate) fn done(&mut self, key: &T) -> Option<Instant> {
        let since = self.processing.remove(key)?;
        if self.dirty.contains_key(key) {
            self.queue.push_back(key.clone());
        }
        Some(since)
    }

    /// Takes nothing more in; what is planned for later is dropped, what is due stays to be worked on.
    pub(crate) fn shut_down(&mut self) {
        self.shut_down = true;
        self.planned.clear();
        self.plans.clear();
    }

    /// Forgets every key, those with workers too.
    pub(crate) fn clear(&mut self) {
        *self = Self { shut_down: self.shut_down, ..Self::new() };
    }

    /// Whether no key is left that a worker could still get: shut down, and nothing due, now or after the work that
    /// goes on.
    pub(crate) fn is_drained(&self) -> bool {
        self.shut_down && self.dirty.is_empty()
    }

    /// When the next planned key becomes due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.planned.first_key_value().map(|((time, _), _)| *time)
    }

    /// How many keys are due and not being worked on.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Since when each key is worked on.
    pub(crate) fn worked_on_since(&self) -> impl Iterator<Item = Instant> {
        self.processing.values().copied()
    }

    /// Adds the keys whose time has come.
    fn add_due(&mut self, now: Instant) {
        while let Some(entry) = self.planned.first_entry() {
            let due = entry.key().0;
            if due > now {
                return;
            }
            let key = entry.remove();
            self.plans.remove(&key);
            self.add(key, due);
        }
    }

    fn cancel_plan(&mut self, key: &T) {
        if let Some(plan) = self.plans.remove(key) {
            self.planned.remove(&plan);
        }
    }
}
