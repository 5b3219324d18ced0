//! When to take the lease, when to renew it, and when it is lost: plain data, no clock, no task, no request.
//!
//! The rules are those of `tryAcquireOrRenew` in `k8s.io/client-go/tools/leaderelection`, stricter in four places, so that
//! two candidates of ours never both lead:
//!
//! - A term is valid for the renew deadline from when its last accepted write was *sent*, not answered: others cannot have
//!   seen that write any earlier.
//! - A holder knows its term by what it wrote (when it acquired, and the number of transitions), not by its identity
//!   alone: two processes of one name are two candidates.
//! - When the lease is gone, a candidate that has seen it waits for as long as if it were there: its holder may not know
//!   yet.
//! - A lease that is created anew counts its transitions on from what was seen of the old one.
//!
//! As in client-go, no time in a record is ever compared with a clock of ours. What counts is for how long, by our own
//! monotonic clock, the record has not changed; clocks may be set to whatever they like.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::{
    leadership::FencingToken,
    record::{Record, as_micro_time},
};

/// One of those who compete for a lease.
#[derive(Debug)]
pub(crate) struct Candidate {
    identity: String,
    lease_duration: Duration,
    renew_deadline: Duration,
    observed: Option<Observed>,
    /// When we last tried to acquire, and the number of transitions that we wrote: a lease that says so is ours, also when
    /// the answer was lost, or the term that began with it is over.
    ours: Option<(Timestamp, i32)>,
    term: Option<Term>,
}

/// What the lease said when it last changed, and when we saw that.
#[derive(Debug)]
struct Observed {
    record: Record,
    /// Whether it has not been deleted since.
    is_there: bool,
    at: Instant,
}

/// Leadership, as long as it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    acquired: Timestamp,
    /// The number of transitions with which it began.
    transitions: i32,
    /// Nothing is done in its name from then on.
    pub(crate) valid_until: Instant,
}

impl Term {
    pub(crate) fn token(&self) -> FencingToken {
        FencingToken(u32::try_from(self.transitions).unwrap_or_default())
    }
}

/// What to do after the lease was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseAction {
    /// Make the lease say this: create it when it was not there, or replace what was read, and only that.
    Write(Record),
    /// Somebody else leads, or may.
    Wait,
    /// We led, and do not any more.
    Lost,
}

impl Candidate {
    pub(crate) fn new(identity: String, lease_duration: Duration, renew_deadline: Duration) -> Self {
        Self { identity, lease_duration, renew_deadline, observed: None, ours: None, term: None }
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// The term, whether it is still valid or not.
    pub(crate) fn term(&self) -> Option<Term> {
        self.term
    }

    /// What follows from what a read found (`None`: there is no lease) at `now`; `wall` is the time that is written.
    pub(crate) fn read(&mut self, found: Option<Record>, now: Instant, wall: Timestamp) -> LeaseAction {
        if let Some(term) = self.term {
            let is_ours = found.as_ref().is_none_or(|record| self.is_ours(record));
            return if is_ours && now < term.valid_until {
                LeaseAction::Write(self.renewal(&term, wall))
            } else {
                LeaseAction::Lost
            };
        }
        self.observe(found, now);
        let Some(observed) = &self.observed else {
            return self.acquisition(0, wall);
        };
        let record = &observed.record;
        // Of a lease that is gone, another may have become the holder since we looked.
        let is_free = observed.is_there && (record.holder.is_empty() || self.is_ours(record));
        let has_expired = now.saturating_duration_since(observed.at) >= record.duration;
        if !is_free && !has_expired {
            return LeaseAction::Wait;
        }
        let transitions = record.transitions.saturating_add(1);
        self.acquisition(transitions, wall)
    }

    /// What to write to renew without having read, if we lead.
    pub(crate) fn renew(&self, wall: Timestamp) -> Option<Record> {
        self.term.map(|term| self.renewal(&term, wall))
    }

    /// The API server accepted a write that was sent at `sent`: we lead.
    pub(crate) fn accepted(&mut self, record: Record, sent: Instant) -> Term {
        let term = Term {
            acquired: record.acquired.unwrap_or_default(),
            transitions: record.transitions,
            valid_until: sent + self.renew_deadline,
        };
        self.observed = Some(Observed { record, is_there: true, at: sent });
        self.term = Some(term);
        term
    }

    /// Ends the term; what to write so that nobody has to wait, if there was one.
    pub(crate) fn resign(&mut self, wall: Timestamp) -> Option<Record> {
        let term = self.term.take()?;
        let now = as_micro_time(wall);
        Some(Record {
            holder: String::new(),
            duration: Duration::from_secs(1),
            acquired: Some(now),
            renewed: Some(now),
            transitions: term.transitions,
        })
    }

    /// Whether `record` is what we wrote when we last acquired, or a renewal of it.
    pub(crate) fn is_ours(&self, record: &Record) -> bool {
        record.holder == self.identity
            && record.acquired.is_some_and(|time| self.ours == Some((time, record.transitions)))
    }

    /// Remembers when the lease changed, as far as we saw.
    fn observe(&mut self, found: Option<Record>, now: Instant) {
        match (&mut self.observed, found) {
            (Some(known), Some(record)) if known.is_there && known.record == record => {}
            (known, Some(record)) => *known = Some(Observed { record, is_there: true, at: now }),
            (Some(known), None) if known.is_there => (known.is_there, known.at) = (false, now),
            (_, None) => {}
        }
    }

    fn acquisition(&mut self, transitions: i32, wall: Timestamp) -> LeaseAction {
        let acquired = as_micro_time(wall);
        self.ours = Some((acquired, transitions));
        LeaseAction::Write(self.record(acquired, transitions, wall))
    }

    fn renewal(&self, term: &Term, wall: Timestamp) -> Record {
        self.record(term.acquired, term.transitions, wall)
    }

    fn record(&self, acquired: Timestamp, transitions: i32, wall: Timestamp) -> Record {
        Record {
            holder: self.identity.clone(),
            duration: self.lease_duration,
            acquired: Some(acquired),
            renewed: Some(as_micro_time(wall)),
            transitions,
        }
    }
}
