//! The last events of one collection.

use std::sync::Arc;

use imbl::Vector;

use crate::{Event, Revision};

/// How much of its past a collection keeps. Whatever the limits, the newest event is kept, so that a watcher who keeps
/// up is never told [`Gone`](crate::Gone).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of events.
    pub events: usize,
    /// The bytes of these events' values, new and previous. (Neighbouring events share values, and the newest values are
    /// shared with the entries, so this is more than what the ring costs.)
    pub bytes: usize,
}

impl Default for Limits {
    /// 4096 events, 16 MiB.
    fn default() -> Self {
        Self { events: 4096, bytes: 16 << 20 }
    }
}

/// A persistent vector of events in the order of their revisions, and how far back it reaches.
pub(crate) struct Ring<T> {
    events: Vector<Arc<Event<T>>>,
    /// The sum of the events' weights.
    bytes: usize,
    /// The last event that was dropped; 0 if none was.
    dropped: Revision,
}

// Not derived: a derive would ask for `T: Clone`.
impl<T> Clone for Ring<T> {
    fn clone(&self) -> Self {
        Self { events: self.events.clone(), bytes: self.bytes, dropped: self.dropped }
    }
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { events: Vector::new(), bytes: 0, dropped: Revision(0) }
    }
}

impl<T> Ring<T> {
    /// An empty ring, all of whose events up to and with `dropped` are gone.
    pub(crate) fn after_all_until(dropped: Revision) -> Self {
        Self { events: Vector::new(), bytes: 0, dropped }
    }

    /// The last event there was, kept or not; 0 before the first.
    pub(crate) fn newest(&self) -> Revision {
        self.events.last().map_or(self.dropped, |event| event.revision())
    }

    /// The revision after which no event is missing.
    pub(crate) fn oldest(&self) -> Revision {
        self.dropped
    }

    /// Takes the next event, and drops the oldest ones beyond `limits`.
    pub(crate) fn push(&mut self, event: Arc<Event<T>>, limits: Limits) {
        self.bytes += event.weight();
        self.events.push_back(event);
        while self.events.len() > 1 && (self.events.len() > limits.events || self.bytes > limits.bytes) {
            self.drop_oldest();
        }
    }

    /// Drops the events up to and with `revision`.
    pub(crate) fn drop_until(&mut self, revision: Revision) {
        while self.events.front().is_some_and(|event| event.revision() <= revision) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.bytes -= event.weight();
            self.dropped = event.revision();
        }
    }

    /// Takes the newest event back if it is newer than `revision`.
    pub(crate) fn undo_after(&mut self, revision: Revision) -> Option<Arc<Event<T>>> {
        if self.newest() <= revision {
            return None;
        }
        let event = self.events.pop_back()?;
        self.bytes -= event.weight();
        Some(event)
    }

    /// The events after `revision` that are kept, oldest first.
    pub(crate) fn after(&self, revision: Revision) -> impl Iterator<Item = &Arc<Event<T>>> {
        let start = match self.events.binary_search_by(|event| event.revision().cmp(&revision)) {
            Ok(found) => found + 1,
            Err(following) => following,
        };
        (start..self.events.len()).filter_map(|index| self.events.get(index))
    }
}
