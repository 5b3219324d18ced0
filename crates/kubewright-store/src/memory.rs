//! The backend that keeps the store in the process and nowhere else.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::published::Published;
use crate::state::State;
use crate::{
    Change, Commit, CommitError, Cursor, Entry, Expect, Gone, Limits, Name, Revision, Snapshot, Store,
};

/// The backend that keeps the store in the process and nowhere else. Its commits never wait for anything but each
/// other. Dropping it ends its cursors; snapshots stay as they are.
pub struct Memory<T> {
    published: Arc<Published<T>>,
    /// Held while a state is replaced by the next: writers go one after the other.
    writer: Mutex<()>,
    limits: Limits,
}

impl<T> Memory<T> {
    /// An empty store with the default [`Limits`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// An empty store whose collections keep that much of their past.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self { published: Arc::new(Published::new(State::default())), writer: Mutex::new(()), limits }
    }

    /// A store with the default [`Limits`] that begins with what a snapshot shows, and its past. Both share it until it
    /// changes here.
    #[must_use]
    pub fn starting_from(snapshot: &Snapshot<T>) -> Self {
        let published = Arc::new(Published::new(snapshot.state().clone()));
        Self { published, writer: Mutex::new(()), limits: Limits::default() }
    }

    fn commit_now(
        &self,
        collection: &Name,
        key: &Name,
        expect: Expect,
        change: Change<T>,
    ) -> Result<Arc<Entry<T>>, CommitError<T>> {
        let writing = self.writer.lock();
        let mut state = State::clone(&self.published.peek());
        let event = state.commit(collection, key, expect, change, self.limits)?;
        let old = self.published.replace(state);
        drop(writing);
        // Neither waking the watchers nor freeing what only the old state held is the next writer's business.
        self.published.ring(collection);
        drop(old);
        Ok(Arc::clone(&event.entry))
    }
}

impl<T: Send + Sync + 'static> Store<T> for Memory<T> {
    fn commit(&self, collection: &Name, key: &Name, expect: Expect, change: Change<T>) -> Commit<'_, T> {
        let (collection, key) = (Arc::clone(collection), Arc::clone(key));
        Box::pin(async move { self.commit_now(&collection, &key, expect, change) })
    }

    fn snapshot(&self) -> Snapshot<T> {
        self.published.snapshot()
    }

    fn snapshot_at(&self, collection: &Name, revision: Revision) -> Result<Snapshot<T>, Gone> {
        let past = self.published.peek().at(collection, revision)?;
        Ok(Snapshot::new(Arc::new(past)))
    }

    fn watch(&self, collection: &Name, after: Revision) -> Result<Cursor<T>, Gone> {
        Cursor::new(Arc::clone(&self.published), Arc::clone(collection), after)
    }

    fn compact(&self, revision: Revision) {
        let writing = self.writer.lock();
        let compacted = self.published.peek().compact(revision);
        let old = self.published.replace(compacted);
        drop(writing);
        drop(old);
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        self.published.close();
    }
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Memory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("revision", &self.published.peek().revision).finish_non_exhaustive()
    }
}
