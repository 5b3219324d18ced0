//! A revisioned key-value store for an API server: keys, bytes and revisions, nothing of Kubernetes.
//!
//! Every commit moves one counter, the [`Revision`], on by one. Keys live in collections; what is in all of them at one
//! revision is a [`Snapshot`], taken without a lock. Each collection keeps its last events in a ring, which
//! [`Cursor`]s read; what is older than the ring is [`Gone`].
//!
//! # How it holds together
//!
//! The whole store is one immutable value: the revision and, for each collection, a persistent map of its entries and a
//! persistent vector of its last events. A commit builds the next value, which shares all but a few nodes with the one
//! before, and publishes it with one atomic swap. Hence readers never wait and are never waited for, a snapshot costs a
//! reference count, a watcher is no more than a revision (everything after it is in the ring, or is [`Gone`]), and an
//! older state is had by undoing events.
//!
//! [`Store`] is what users see. A backend decides how a commit becomes lasting; [`Memory`] lets it live as long as the
//! process. [`Disk`] publishes the same value after its log has the commit (kube-apiserver's watch cache stands before
//! etcd in the same way), so [`Snapshot`] and [`Cursor`] belong to no backend.

mod commit;
mod cursor;
mod disk;
mod event;
mod memory;
mod published;
mod ring;
mod snapshot;
mod state;

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

pub use commit::{Change, CommitError, Conflict, Draft, Entry, Expect, NoRoom, Unavailable};
pub use cursor::Cursor;
pub use disk::{Disk, DiskOptions, OpenError, Stored, StoredValue};
pub use event::{Event, Gone, Happening};
pub use memory::Memory;
pub use ring::Limits;
pub use snapshot::Snapshot;

/// A cheap, shared piece of text: the name of a collection, or a key in it.
pub type Name = Arc<str>;

/// The store's one counter. 0 is the empty store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision of the next commit.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What [`Store::commit`] gives: the new entry, or for a deletion the last state, under the commit's revision.
pub type Commit<'a, T> = BoxFuture<'a, Result<Arc<Entry<T>>, CommitError<T>>>;

/// A store, whatever keeps it. `T` is the tag of its entries (see [`Draft::tag`]).
///
/// Commits are linear: each has one revision, and whoever has seen a commit (as its committer, through a cursor or a
/// snapshot) finds it in every snapshot from then on.
pub trait Store<T>: Send + Sync + 'static {
    /// Changes one key if it is as expected: one compare-and-swap, one revision. A deletion needs [`Expect::At`]: under
    /// [`Expect::Absent`] there is nothing to delete, so it always conflicts.
    ///
    /// Nothing happens before the future is first polled. Once polled, the commit may happen even if the future is
    /// dropped (a backend that waits for a disk or a peer cannot take it back).
    ///
    /// # Errors
    /// [`Conflict`] with what is there, when that is not what was expected; then nothing has changed. [`NoRoom`] when what
    /// the backend keeps it on is full: nothing has changed, and a later commit may find room. [`Unavailable`] from a
    /// backend that has failed: whether the commit has happened is not known. [`Self::health`] says whether later ones may.
    fn commit(&self, collection: &Name, key: &Name, expect: Expect, change: Change<T>) -> Commit<'_, T>;

    /// Everything, as of now. Takes no lock and copies nothing.
    fn snapshot(&self) -> Snapshot<T>;

    /// One collection exactly as it was at `revision`: the snapshot holds that collection and no other. (The others'
    /// rings need not reach as far back, and a busy neighbour must not make a quiet collection's past go away.) It costs
    /// as much as there are events to undo.
    ///
    /// # Errors
    /// [`Gone`] when `revision` is older than the collection's ring or than the last compaction, or not there yet.
    fn snapshot_at(&self, collection: &Name, revision: Revision) -> Result<Snapshot<T>, Gone>;

    /// The events of one collection that come after `after`, from the ring and then as they are committed. `after` may
    /// be ahead of the store: what is committed up to it is not told.
    ///
    /// # Errors
    /// [`Gone`] when `after` is older than the collection's ring or than the last compaction.
    fn watch(&self, collection: &Name, after: Revision) -> Result<Cursor<T>, Gone>;

    /// Forgets the past before `revision` in all collections: from then on nothing older can be asked for. What is
    /// there now stays, and a cursor that has missed nothing reads on. Beyond the store's revision means up to it.
    fn compact(&self, revision: Revision);

    /// Whether commits can be kept. A backend that had no room looks again because it was asked, and tells of it when it
    /// is asked the next time: so whoever asks from time to time learns that it goes on, with or without commits.
    ///
    /// # Errors
    /// Why the last commit could not be kept.
    fn health(&self) -> Result<(), Arc<str>> {
        Ok(())
    }

    /// The revision of the last commit.
    fn revision(&self) -> Revision {
        self.snapshot().revision()
    }
}
