//! What watchers are told.

use std::sync::Arc;

use crate::{Entry, Revision};

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// It came.
    Added,
    /// Its value changed.
    Modified,
    /// It went.
    Deleted,
}

/// A committed change, as watchers see it.
#[derive(Debug)]
pub struct Event<T> {
    /// What happened.
    pub happening: Happening,
    /// The new value; for a deletion the last state under the deletion's revision.
    pub entry: Arc<Entry<T>>,
    /// The value before; `None` exactly when the key came.
    pub previous: Option<Arc<Entry<T>>>,
}

impl<T> Event<T> {
    /// The commit that it tells of.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.entry.revision
    }

    /// The bytes that a ring keeps alive by keeping this event.
    pub(crate) fn weight(&self) -> usize {
        self.entry.bytes.len() + self.previous.as_ref().map_or(0, |previous| previous.bytes.len())
    }
}

/// The revision asked for is older than what is kept (or, for a snapshot, newer than what is there).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision {asked} is outside of {oldest}..={newest}")]
pub struct Gone {
    /// What was asked for.
    pub asked: Revision,
    /// The oldest revision that can be had.
    pub oldest: Revision,
    /// The newest revision.
    pub newest: Revision,
}
