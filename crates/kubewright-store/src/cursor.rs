//! A watcher's place in the events of one collection.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::published::Published;
use crate::state::State;
use crate::{Event, Gone, Name, Revision};

/// A watcher's place in the events of one collection. It holds no events: it reads from the collection's ring, and a
/// cursor whose next event was dropped from the ring is told [`Gone`], then and at every further read.
///
/// A cursor does not keep the store alive: when the store is dropped, the cursor reads what is left and then ends.
pub struct Cursor<T> {
    published: Arc<Published<T>>,
    bell: Arc<Notify>,
    collection: Name,
    /// Every event up to here was read (or not wanted).
    read: Revision,
}

impl<T> Cursor<T> {
    pub(crate) fn new(published: Arc<Published<T>>, collection: Name, after: Revision) -> Result<Self, Gone> {
        published.peek().reaches(&collection, after)?;
        let bell = published.bell(&collection);
        Ok(Self { published, bell, collection, read: after })
    }

    /// Waits for the next event; `None` when the store has ended. Cancel-safe: an event is read when it is returned, not
    /// before.
    ///
    /// # Errors
    /// [`Gone`] when the next event was dropped before it was read.
    pub async fn next(&mut self) -> Result<Option<Arc<Event<T>>>, Gone> {
        Ok(self.next_batch(NonZeroUsize::MIN).await?.pop())
    }

    /// Waits until there is an event and reads up to `limit` of those that are there, oldest first; empty when the store
    /// has ended. Cancel-safe, as [`Self::next`].
    ///
    /// # Errors
    /// [`Gone`] when the next event was dropped before it was read.
    pub async fn next_batch(&mut self, limit: NonZeroUsize) -> Result<Vec<Arc<Event<T>>>, Gone> {
        let bell = Arc::clone(&self.bell);
        loop {
            // In this order: a commit after the read rings a bell that is listened to already, and a commit before the
            // end is seen by a read after it.
            let ring = bell.notified();
            let ended = self.published.is_closed();
            let events = self.try_batch(limit)?;
            if ended || !events.is_empty() {
                return Ok(events);
            }
            ring.await;
        }
    }

    /// The next event if it is there already.
    ///
    /// # Errors
    /// [`Gone`] when the next event was dropped before it was read.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event<T>>>, Gone> {
        Ok(self.try_batch(NonZeroUsize::MIN)?.pop())
    }

    /// Up to `limit` of the events that are there already, oldest first.
    ///
    /// # Errors
    /// [`Gone`] when the next event was dropped before it was read.
    pub fn try_batch(&mut self, limit: NonZeroUsize) -> Result<Vec<Arc<Event<T>>>, Gone> {
        let state = self.published.peek();
        self.check(&state)?;
        let Some(found) = state.collections.get(&self.collection) else { return Ok(Vec::new()) };
        let events: Vec<_> = found.ring.after(self.read).take(limit.get()).cloned().collect();
        if let Some(last) = events.last() {
            self.read = last.revision();
        }
        Ok(events)
    }

    /// The revision up to which it has read everything: the store's own when no event of the collection is left to read,
    /// else that of the last event read. Who reads from a new cursor after this revision goes on without a gap, so it is
    /// what a bookmark says.
    #[must_use]
    pub fn position(&self) -> Revision {
        let state = self.published.peek();
        let newest = state.collections.get(&self.collection).map_or(Revision(0), |found| found.ring.newest());
        if newest <= self.read { self.read.max(state.revision) } else { self.read }
    }

    /// Whether the next event is still there. Unlike [`State::reaches`] it does not ask what was compacted: a cursor
    /// that waits while nothing happens in its collection has missed nothing.
    fn check(&self, state: &State<T>) -> Result<(), Gone> {
        let dropped =
            state.collections.get(&self.collection).map_or(Revision(0), |found| found.ring.oldest());
        if dropped > self.read { Err(state.gone(&self.collection, self.read)) } else { Ok(()) }
    }
}

impl<T> fmt::Debug for Cursor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("collection", &self.collection).field("read", &self.read).finish()
    }
}
