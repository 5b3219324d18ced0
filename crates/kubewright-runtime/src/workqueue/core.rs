//! The rules of the queue, as plain data: no clock, no task, no lock.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    hash::Hash,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    Priority,
    limit::{Bucket, RateLimit},
    line::{Line, QueuePosition},
};
use crate::reason::{Reason, Reasons};

/// Every so many gets, one goes to the lowest priority that waits.
pub(super) const LOWEST_TURN: u64 = 16;

/// Which keys wait, which are due and which are being worked on.
///
/// What client-go keeps in three sets (`util/workqueue/queue.go`) is one record per key here: it waits, or it is being
/// worked on and may be wanted again. So a key is in the queue at most once and with at most one worker, and what is
/// added during its processing is not lost.
#[derive(Debug)]
pub(crate) struct Core<T> {
    records: HashMap<T, Record>,
    queue: Line<T>,
    /// Keys by the time when they are to be added.
    planned: BTreeMap<Date, T>,
    limit: RateLimit,
    bucket: Bucket,
    /// Gives numbers to places and dates: what came first has the lower one.
    counter: u64,
    /// Counts the gets; the last one's number.
    gets: u64,
    /// Since when keys are with workers, by the number of the get.
    busy: BTreeMap<u64, Instant>,
    added: u64,
    /// How many keys with a worker are wanted again.
    again: usize,
    shut_down: bool,
}

/// A time; the number keeps the order of equal ones.
type Date = (Instant, u64);

#[derive(Debug, Default)]
struct Record {
    work: Work,
    plan: Option<Scheduled>,
    failures: u32,
    /// When its retry was due, if it was got before that: something else led to this try.
    early: Option<Instant>,
    /// What the last failure was, where that was said.
    last: Option<Failure>,
    /// Why it is wanted, or wanted again.
    reasons: Reasons,
}

/// Why a key failed, and when.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) why: String,
    pub(crate) at: Instant,
}

#[derive(Debug, Default)]
enum Work {
    /// None is due.
    #[default]
    Idle,
    /// Here in the queue.
    Waiting { position: QueuePosition, since: Instant },
    /// With a worker, who got it at this priority by the get of this number; to be done once more if it was added since.
    Busy { get: u64, priority: Priority, again: Option<(Priority, Instant)> },
}

/// A key that a worker gets.
#[derive(Debug)]
pub(crate) struct Taken<T> {
    pub(crate) key: T,
    /// Why, and how long it was due.
    pub(crate) reasons: Reasons,
}

/// Why a key is to be added later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Later {
    /// It failed.
    Retry,
    /// It is to be looked at again.
    Requeue,
    /// It is another's now.
    Turn,
}

#[derive(Clone, Copy, Debug)]
struct Scheduled {
    date: Date,
    priority: Priority,
    why: Later,
}

impl Record {
    /// What a retry or a repetition inherits.
    fn priority(&self) -> Priority {
        match self.work {
            Work::Busy { priority, .. } | Work::Waiting { position: (Reverse(priority), _), .. } => priority,
            Work::Idle => Priority::NORMAL,
        }
    }

    fn is_blank(&self) -> bool {
        matches!(self.work, Work::Idle) && self.plan.is_none() && self.failures == 0
    }
}

impl<T: Clone + Eq + Hash> Core<T> {
    pub(crate) fn new(limit: RateLimit) -> Self {
        Self {
            records: HashMap::new(),
            queue: Line::new(),
            planned: BTreeMap::new(),
            limit,
            bucket: Bucket::default(),
            counter: 0,
            gets: 0,
            busy: BTreeMap::new(),
            added: 0,
            again: 0,
            shut_down: false,
        }
    }

    /// Marks `key` as in need of work since `now`. One that waits already keeps its place among those of its priority, or of this one
    /// if that is higher.
    pub(crate) fn add(&mut self, key: T, priority: Priority, now: Instant, reason: Reason) {
        if self.shut_down {
            return;
        }
        let record = self.records.entry(key.clone()).or_default();
        record.reasons.push(reason);
        match &mut record.work {
            Work::Busy { again: Some((wanted, _)), .. } => *wanted = (*wanted).max(priority),
            Work::Busy { again, .. } => {
                *again = Some((priority, now));
                self.again += 1;
                self.added += 1;
            }
            Work::Waiting { position, .. } if position.0.0 >= priority => {}
            Work::Waiting { position, .. } => {
                self.queue.remove(position);
                position.0 = Reverse(priority);
                self.queue.insert(*position, key);
            }
            idle @ Work::Idle => {
                self.counter += 1;
                let position = (Reverse(priority), self.counter);
                *idle = Work::Waiting { position, since: now };
                self.queue.insert(position, key);
                self.added += 1;
            }
        }
    }

    /// Adds `key` at `time`, or earlier if an earlier addition is planned already; with the priority that it was worked
    /// on.
    pub(crate) fn add_at(&mut self, key: T, time: Instant, why: Later) {
        if self.shut_down {
            return;
        }
        let record = self.records.entry(key.clone()).or_default();
        let priority = record.priority();
        if let Some(plan) = &mut record.plan {
            plan.priority = plan.priority.max(priority);
            if plan.date.0 <= time {
                return;
            }
            self.planned.remove(&plan.date);
        }
        self.counter += 1;
        let date = (time, self.counter);
        let priority = record.plan.map_or(priority, |plan| plan.priority);
        record.plan = Some(Scheduled { date, priority, why });
        self.planned.insert(date, key);
    }

    /// Counts a failure of `key` and adds it after its back-off, or when the overall limit lets it.
    ///
    /// A try that came before its retry was due is not counted, and the retry stays as it was planned: events that come while
    /// something is broken do not put the retry off for hours, as they do in client-go (kubernetes/kubernetes#132805).
    pub(crate) fn add_after_failure(&mut self, key: T, now: Instant) {
        let record = self.records.entry(key.clone()).or_default();
        if let Some(due) = record.early.take() {
            let last = self.limit.delay(record.failures.saturating_sub(1));
            let due = if due > now { Some(due) } else { now.checked_add(last) };
            if let Some(due) = due {
                self.add_at(key, due, Later::Retry);
            }
            return;
        }
        let delay = self.limit.delay(record.failures).max(self.bucket.take(&self.limit, now));
        record.failures = record.failures.saturating_add(1);
        // Beyond what a clock can tell is never.
        if let Some(time) = now.checked_add(delay) {
            self.add_at(key, time, Later::Retry);
        }
    }

    /// As [`Core::add_after_failure`], after this time instead.
    pub(crate) fn add_after_failure_in(&mut self, key: T, now: Instant, delay: Duration) {
        let record = self.records.entry(key.clone()).or_default();
        record.early = None;
        record.failures = record.failures.saturating_add(1);
        if let Some(time) = now.checked_add(delay) {
            self.add_at(key, time, Later::Retry);
        }
    }

    /// Says why `key` has just failed.
    pub(crate) fn explain_failure(&mut self, key: &T, why: String, now: Instant) {
        if let Some(record) = self.records.get_mut(key)
            && record.failures > 0
        {
            record.last = Some(Failure { why, at: now });
        }
    }

    /// The keys that failed, said why, and wait for their next try; with when that is. The next one is the first.
    pub(crate) fn failing(&self) -> impl Iterator<Item = (&T, &Failure, Instant)> {
        self.planned.iter().filter_map(|((due, _), key)| {
            let last = self.records.get(key)?.last.as_ref()?;
            Some((key, last, *due))
        })
    }

    /// How often `key` has failed since it was forgotten.
    pub(crate) fn failures(&self, key: &T) -> u32 {
        self.records.get(key).map_or(0, |record| record.failures)
    }

    /// Forgets the failures of `key`.
    pub(crate) fn forget(&mut self, key: &T) {
        if let Some(record) = self.records.get_mut(key)
            && record.failures > 0
        {
            record.failures = 0;
            record.early = None;
            record.last = None;
            self.tidy(key);
        }
    }

    /// Gives the next key to a worker, who has to say [`Core::done`]. The keys whose time has come stand behind those
    /// of their priority that were due before. What was planned for the key is void: the outcome of this work plans anew.
    pub(crate) fn get(&mut self, now: Instant) -> Option<Taken<T>> {
        self.add_due(now);
        let ((Reverse(priority), _), key) = self.pop()?;
        let mut reasons = Reasons::default();
        if let Some(record) = self.records.get_mut(&key) {
            let work = Work::Busy { get: self.gets, priority, again: None };
            if let Work::Waiting { since, .. } = std::mem::replace(&mut record.work, work) {
                reasons = std::mem::take(&mut record.reasons).after(now.saturating_duration_since(since));
            }
            self.busy.insert(self.gets, now);
            record.early = None;
            if let Some(plan) = record.plan.take() {
                record.early = (plan.why == Later::Retry).then_some(plan.date.0);
                self.planned.remove(&plan.date);
            }
        }
        Some(Taken { key, reasons })
    }

    /// The first key; now and then the first one of the lowest priority, so that a stream of others cannot starve it.
    fn pop(&mut self) -> Option<(QueuePosition, T)> {
        if self.queue.is_empty() {
            return None;
        }
        self.gets += 1;
        if self.gets.is_multiple_of(LOWEST_TURN) { self.queue.pop_lowest() } else { self.queue.pop_first() }
    }

    /// Ends the work on `key`; it goes back into the queue if it was added in the meantime. Says since when it was worked
    /// on.
    pub(crate) fn done(&mut self, key: &T) -> Option<Instant> {
        let record = self.records.get_mut(key)?;
        let Work::Busy { get, again, .. } = record.work else { return None };
        let worked_since = self.busy.remove(&get);
        let Some((priority, since)) = again else {
            record.work = Work::Idle;
            self.tidy(key);
            return worked_since;
        };
        self.again -= 1;
        self.counter += 1;
        let position = (Reverse(priority), self.counter);
        record.work = Work::Waiting { position, since };
        self.queue.insert(position, key.clone());
        worked_since
    }

    /// Takes nothing more in; what is planned for later is dropped, what is due stays to be worked on.
    pub(crate) fn shut_down(&mut self) {
        self.shut_down = true;
        while let Some((_, key)) = self.planned.pop_first() {
            if let Some(record) = self.records.get_mut(&key) {
                record.plan = None;
                self.tidy(&key);
            }
        }
    }

    /// Forgets every key, those with workers too.
    pub(crate) fn clear(&mut self) {
        *self = Self { shut_down: self.shut_down, ..Self::new(self.limit) };
    }

    /// Whether no key is left that a worker could still get: shut down, and nothing due, now or after the work that
    /// goes on.
    pub(crate) fn is_drained(&self) -> bool {
        self.shut_down && self.queue.is_empty() && self.again == 0
    }

    /// When the next planned key becomes due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.planned.first_key_value().map(|((time, _), _)| *time)
    }

    /// Whether no key is due or being worked on, nor planned for before `until` (`None`: ever) because it failed.
    pub(crate) fn is_idle(&self, now: Instant, until: Option<Instant>) -> bool {
        let soon = self.planned.iter().take_while(|((time, _), _)| until.is_none_or(|until| *time <= until));
        let has_failed = |key| self.records.get(key).is_some_and(|record| record.failures > 0);
        self.queue.is_empty()
            && self.busy.is_empty()
            && soon.into_iter().all(|((time, _), key)| *time > now && !has_failed(key))
    }

    /// How many keys are due and not being worked on.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// As [`Core::len`], for each priority.
    pub(crate) fn depths(&self) -> &BTreeMap<Priority, usize> {
        self.queue.depths()
    }

    /// How many keys became in need of work since this was asked.
    pub(crate) fn take_added(&mut self) -> u64 {
        std::mem::take(&mut self.added)
    }

    /// Since when each key is worked on.
    pub(crate) fn worked_on_since(&self) -> impl Iterator<Item = Instant> {
        self.busy.values().copied()
    }

    fn add_due(&mut self, now: Instant) {
        while let Some(entry) = self.planned.first_entry() {
            let due = entry.key().0;
            if due > now {
                return;
            }
            let key = entry.remove();
            let Some(record) = self.records.get_mut(&key) else { continue };
            let Some(plan) = record.plan.take() else { continue };
            let reason = match plan.why {
                Later::Retry => Reason::Retry { failures: record.failures },
                Later::Requeue => Reason::Requeue,
                Later::Turn => Reason::Turn,
            };
            self.add(key, plan.priority, due, reason);
        }
    }

    /// Keeps no record of a key of which there is nothing to say, and no room for keys that went.
    fn tidy(&mut self, key: &T) {
        if self.records.get(key).is_some_and(Record::is_blank) {
            self.records.remove(key);
            if self.records.is_empty() {
                self.records.shrink_to(64);
            }
        }
    }

    /// How much is remembered.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.busy.len() + self.records.len() + self.planned.len() + self.queue.len()
    }
}
