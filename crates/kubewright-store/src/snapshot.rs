//! What is there at one revision.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::state::State;
use crate::{Entry, Name, Revision};

/// What is there at one revision, for as long as the snapshot lives: later commits do not show. Cheap to clone.
pub struct Snapshot<T>(Arc<State<T>>);

impl<T> Clone for Snapshot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Snapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Snapshot").field(&self.revision()).finish()
    }
}

impl<T> Snapshot<T> {
    pub(crate) fn new(state: Arc<State<T>>) -> Self {
        Self(state)
    }

    pub(crate) fn state(&self) -> &State<T> {
        &self.0
    }

    /// The revision that it shows.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.revision
    }

    /// A key's value, if it is there.
    #[must_use]
    pub fn get(&self, collection: &str, key: &str) -> Option<&Arc<Entry<T>>> {
        self.0.get(collection, key)
    }

    /// The entries whose keys start with `prefix` and come after `after`, in the order of their keys' bytes. An empty
    /// prefix is everything. Finding the first costs a look-up, each further one a step.
    pub fn range<'a>(
        &'a self,
        collection: &str,
        prefix: &'a str,
        after: Option<&str>,
    ) -> impl Iterator<Item = &'a Arc<Entry<T>>> + use<'a, T> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        self.0
            .collections
            .get(collection)
            .map(|found| found.entries.range::<_, str>((start, Bound::Unbounded)))
            .into_iter()
            .flatten()
            .map(|(_, entry)| entry)
            .take_while(move |entry| entry.key.starts_with(prefix))
    }

    /// The number of entries in a collection.
    #[must_use]
    pub fn len(&self, collection: &str) -> usize {
        self.0.collections.get(collection).map_or(0, |found| found.entries.len())
    }

    /// The last commit to a collection (0 if there was none). As long as it stays the same, so does what is in the
    /// collection, and with it whatever was computed from that.
    #[must_use]
    pub fn modified(&self, collection: &str) -> Revision {
        self.0.collections.get(collection).map_or(Revision(0), |found| found.ring.newest())
    }

    /// The collections that were ever written to, in the order of their names, also those that are empty by now.
    pub fn collections(&self) -> impl Iterator<Item = &Name> {
        self.0.collections.keys()
    }
}
