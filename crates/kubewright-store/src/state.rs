//! The store as one immutable value.

use std::sync::Arc;

use imbl::OrdMap;

use crate::ring::Ring;
use crate::{Change, Conflict, Entry, Event, Expect, Gone, Happening, Limits, Name, Revision};

/// What is in one collection, and how it came to be so.
pub(crate) struct Collection<T> {
    pub(crate) entries: OrdMap<Name, Arc<Entry<T>>>,
    pub(crate) ring: Ring<T>,
}

/// Everything there is at one revision. Cheap to clone: clones share what they have in common.
pub(crate) struct State<T> {
    pub(crate) revision: Revision,
    /// Nothing older than this can be asked for.
    pub(crate) compacted: Revision,
    pub(crate) collections: OrdMap<Name, Arc<Collection<T>>>,
}

// Not derived: a derive would ask for `T: Clone`.
impl<T> Clone for Collection<T> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), ring: self.ring.clone() }
    }
}

impl<T> Default for Collection<T> {
    fn default() -> Self {
        Self { entries: OrdMap::new(), ring: Ring::default() }
    }
}

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self { revision: self.revision, compacted: self.compacted, collections: self.collections.clone() }
    }
}

impl<T> Default for State<T> {
    fn default() -> Self {
        Self { revision: Revision(0), compacted: Revision(0), collections: OrdMap::new() }
    }
}

impl<T> Collection<T> {
    /// Undoes what happened after `revision`, which the ring must reach.
    fn rewind(&mut self, revision: Revision) {
        while let Some(event) = self.ring.undo_after(revision) {
            let key = &event.entry.key;
            match &event.previous {
                Some(previous) => self.entries.insert(Arc::clone(key), Arc::clone(previous)),
                None => self.entries.remove(key),
            };
        }
    }
}

impl<T> State<T> {
    /// Takes one more commit, and tells what it did. A state that shares no nodes with another one changes in place.
    ///
    /// # Errors
    /// [`Conflict`] when the key is not as expected, or when there is nothing to delete; then nothing has changed.
    pub(crate) fn commit(
        &mut self,
        collection: &Name,
        key: &Name,
        expect: Expect,
        change: Change<T>,
        limits: Limits,
    ) -> Result<Arc<Event<T>>, Conflict<T>> {
        let previous = self.get(collection, key).cloned();
        if !expect.holds(previous.as_ref()) {
            return Err(Conflict(previous));
        }
        let (happening, draft) = match (change, &previous) {
            (Change::Put(draft), None) => (Happening::Added, draft),
            (Change::Put(draft), Some(_)) => (Happening::Modified, draft),
            (Change::Delete(draft), Some(_)) => (Happening::Deleted, draft),
            (Change::Delete(_), None) => return Err(Conflict(None)),
        };

        let entry = Arc::new(draft.into_entry(Arc::clone(key), self.revision.next()));
        let event = Arc::new(Event { happening, entry, previous });
        self.apply(collection, Arc::clone(&event), limits);
        Ok(event)
    }

    /// Lets `event` happen, which fits what is there.
    pub(crate) fn apply(&mut self, collection: &Name, event: Arc<Event<T>>, limits: Limits) {
        self.revision = event.revision();
        let changed = Arc::make_mut(self.collections.entry(Arc::clone(collection)).or_default());
        let key = &event.entry.key;
        if event.happening == Happening::Deleted {
            changed.entries.remove(key);
        } else {
            changed.entries.insert(Arc::clone(key), Arc::clone(&event.entry));
        }
        changed.ring.push(event, limits);
    }

    /// A key's value, if it is there.
    pub(crate) fn get(&self, collection: &str, key: &str) -> Option<&Arc<Entry<T>>> {
        self.collections.get(collection)?.entries.get(key)
    }

    /// The state with its past before `revision` forgotten.
    pub(crate) fn compact(&self, revision: Revision) -> Self {
        let compacted = revision.min(self.revision).max(self.compacted);
        let forget = |collection: &Arc<Collection<T>>| {
            let mut shorter = Collection::clone(collection);
            shorter.ring.drop_until(compacted);
            Arc::new(shorter)
        };
        let collections =
            self.collections.iter().map(|(name, found)| (Arc::clone(name), forget(found))).collect();
        Self { revision: self.revision, compacted, collections }
    }

    /// One collection as it was at `revision`, without the others.
    ///
    /// # Errors
    /// [`Gone`] when that cannot be told any more, or not yet.
    pub(crate) fn at(&self, collection: &Name, revision: Revision) -> Result<Self, Gone> {
        self.reaches(collection, revision)?;
        if revision > self.revision {
            return Err(self.gone(collection, revision));
        }
        let mut collections = OrdMap::new();
        if let Some(present) = self.collections.get(collection) {
            let mut past = Collection::clone(present);
            past.rewind(revision);
            collections.insert(Arc::clone(collection), Arc::new(past));
        }
        Ok(Self { revision, compacted: self.compacted, collections })
    }

    /// Whether every event of the collection after `revision` is kept, and not compacted.
    ///
    /// # Errors
    /// [`Gone`] if not.
    pub(crate) fn reaches(&self, collection: &str, revision: Revision) -> Result<(), Gone> {
        let gone = self.gone(collection, revision);
        if revision < gone.oldest { Err(gone) } else { Ok(()) }
    }

    /// How to say that `asked` cannot be had.
    pub(crate) fn gone(&self, collection: &str, asked: Revision) -> Gone {
        let dropped = self.collections.get(collection).map_or(Revision(0), |present| present.ring.oldest());
        Gone { asked, oldest: dropped.max(self.compacted), newest: self.revision }
    }
}
