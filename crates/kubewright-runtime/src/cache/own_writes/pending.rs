//! The writes of one author to one object that are not settled, as a state machine.

use std::{collections::BTreeSet, sync::Arc};

use super::{Author, Change};

/// With so many claimed versions that the watch has not told of, the author gets what was withheld: it may be long until the
/// watch works again.
pub(super) const MOST_UNOBSERVED: usize = 256;

/// What one author wrote to one object.
#[derive(Debug)]
pub(super) struct PendingWrites<K: ?Sized> {
    author: Arc<Author>,
    /// Writes that are not answered.
    in_flight: usize,
    /// The version up to which the author got every change, or which was known when it began to write.
    delivered: u64,
    /// Later versions that the watch told of and no answer claimed.
    observed: BTreeSet<u64>,
    /// Later versions that answers claimed and the watch has not told of.
    claimed: BTreeSet<u64>,
    /// The change over all of these versions.
    withheld: Option<Change<K>>,
    /// Whether somebody else may have written unnoticed, as a list tells of the last version alone.
    in_doubt: bool,
}

/// How it stands with what was withheld from an author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A write is not answered.
    InFlight,
    /// The watch has not told of all that answers claimed.
    AwaitingWatch,
    /// All of it is the author's own.
    Own,
    /// Not all of it is.
    Foreign,
}

impl<K: ?Sized> PendingWrites<K> {
    /// The author has every change up to this version.
    pub(super) fn new(author: Arc<Author>, delivered: u64) -> Self {
        Self {
            author,
            in_flight: 0,
            delivered,
            observed: BTreeSet::new(),
            claimed: BTreeSet::new(),
            withheld: None,
            in_doubt: false,
        }
    }

    pub(super) fn author(&self) -> &Arc<Author> {
        &self.author
    }

    pub(super) fn phase(&self) -> Phase {
        if self.is_in_flight() {
            Phase::InFlight
        } else if self.in_doubt || !self.observed.is_empty() || self.claimed.len() > MOST_UNOBSERVED {
            Phase::Foreign
        } else if self.claimed.is_empty() {
            Phase::Own
        } else {
            Phase::AwaitingWatch
        }
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    pub(super) fn begin(&mut self) {
        self.in_flight += 1;
    }

    pub(super) fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// An answer has this version, as the author asked for.
    pub(super) fn claim(&mut self, version: u64) {
        if version > self.delivered && !self.observed.remove(&version) {
            self.claimed.insert(version);
        }
    }

    /// The watch told of this version; of none that is known if it may have left others out.
    pub(super) fn observe(&mut self, version: Option<u64>) {
        let Some(version) = version else {
            self.in_doubt = true;
            return;
        };
        if version > self.delivered && !self.claimed.remove(&version) {
            self.observed.insert(version);
        }
        // Versions before it that the watch did not tell of: it never will.
        self.in_doubt |= self.claimed.first().is_some_and(|claimed| *claimed < version);
    }

    /// Somebody else may have written unnoticed.
    pub(super) fn doubt(&mut self) {
        self.in_doubt = true;
    }

    /// Keeps a change to this version from the author, with those before it.
    pub(super) fn withhold(&mut self, change: &Change<K>, version: Option<u64>) {
        self.in_doubt |= version.is_none_or(|version| version <= self.delivered);
        self.withheld = Some(match self.withheld.take() {
            Some(before) => before.then(change),
            None => change.clone(),
        });
    }

    /// The author has got every change up to `version`, and all that was withheld.
    pub(super) fn delivered(&mut self, version: Option<u64>) {
        self.delivered = version.unwrap_or(self.delivered).max(self.delivered);
        self.observed.clear();
        self.claimed.clear();
        self.withheld = None;
        self.in_doubt = false;
    }

    /// Gives what was withheld, for the author to get it now.
    pub(super) fn release(&mut self) -> Option<Change<K>> {
        let withheld = self.withheld.take();
        self.delivered(None);
        withheld
    }
}

impl<K: ?Sized> Change<K> {
    /// This change and a later one, as one.
    fn then(self, later: &Self) -> Self {
        match (self, later) {
            (Self::Created(_), Self::Updated { new, .. }) => Self::Created(new.clone()),
            (Self::Updated { old, .. }, Self::Updated { new, .. }) => Self::Updated { old, new: new.clone() },
            (_, later) => later.clone(),
        }
    }
}

impl<K: ?Sized> Clone for Change<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Created(new) => Self::Created(Arc::clone(new)),
            Self::Updated { old, new } => Self::Updated { old: Arc::clone(old), new: Arc::clone(new) },
            Self::Deleted(last) => Self::Deleted(Arc::clone(last)),
        }
    }
}
