//! The backend that keeps the store on a disk: what was acknowledged is there after the process, or the machine, has
//! stopped at any moment.
//!
//! # How it works
//!
//! Reads are those of [`Memory`](crate::Memory): all that is stored is in memory as well, as one immutable value. A
//! commit is decided at once, against all commits before it, and then waits in a line. One thread takes what waits as a
//! group, appends it to a log, syncs the log, publishes the value with the group in it, and tells those who wait. So one
//! sync serves all who came while the sync before it ran, and nobody sees what could still be lost.
//!
//! When the log has become longer than the last checkpoint, the thread begins another log and lets a second thread
//! write all that is there as a checkpoint; then what is older is removed. The folder holds at most about three times
//! what is stored, and 32 MiB. Where a checkpoint cannot be written the logs go on and grow, with an error in the log of the
//! process at each attempt; what is left of the attempt is removed.
//!
//! # When there is no room
//!
//! A group for which there is no room (`ENOSPC`, `EDQUOT`) is refused, and with it all that was decided after it:
//! deciding goes on from what readers see, who never saw any of them. The log is given up: whether its last bytes are on
//! the disk is not known, and once a sync has failed another one would say nothing about them. The next group goes to a
//! new log, so each commit tries again, and so does who asks for the store's health. Nothing has to be remembered for that.
//!
//! Why nothing that was acknowledged is lost: it lies in synced bytes, which nobody writes again, and the log that has them
//! stays until a checkpoint is on the disk. Why nothing that was refused comes back: the new log begins with a record that
//! cuts the one before where it begins, and no commit is acknowledged before that record is on the disk. A group that was
//! cut off while it was written is none, with or without a new log. Only where a *sync* failed and no new log could be begun
//! either may the group come back, if the machine stops at that moment: its writers are told that the outcome is not
//! known ([`CommitError::Unavailable`](crate::CommitError::Unavailable)), all others that it did not happen
//! ([`CommitError::NoRoom`](crate::CommitError::NoRoom)).
//!
//! A new log is written under another name, synced and renamed, so it has its header or is not there. Where renaming it
//! was not certain, the log before may go on beside it: it has no commits then, and is passed over.
//!
//! There is no reserve of space for deletions: they make room only when a checkpoint is written, which needs more. Every
//! other error of the disk (`EIO`) when a log is written ends the writes until the store is opened again; one of a checkpoint
//! is told, and it is tried again.
//!
//! # Files
//!
//! `log-N` holds the commits after revision N, `checkpoint-N` what was there at revision N, `lock` the id of the process
//! that has the folder, `acknowledged` a lower bound of what was acknowledged (`mark.rs`). Each file has checksums over all
//! its bytes. A log whose last write was cut off is continued before that write, which was never acknowledged. Every other
//! deviation is an [`OpenError`] that names the file, and so is a log that ends before what was acknowledged. What cannot be
//! seen is a folder that was replaced as a whole by an older copy of itself.
//!
//! # Why it is no database
//!
//! The store needs an append and a sync for a commit, and all of it in one sweep when it is opened. redb was measured
//! for both (4.x, 32 writers, 1.2 KiB): 59,000 commits a second (76,000 with each group as one value) where this log does
//! 109,000, at 1.6 times the CPU. And of redb files after a crash in which one bit was flipped, 12 % opened without
//! their last commits and without an error.

mod checkpoint;
mod error;
mod files;
mod folder;
mod frame;
mod line;
mod mark;
mod record;
mod recover;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

pub use error::OpenError;
pub use recover::Stored;

use crate::published::Published;
use crate::state::State;
use crate::{Change, Commit, Cursor, Expect, Gone, Limits, Name, Revision, Snapshot, Store, Unavailable};
use folder::{Directory, Folder, NotHad};
use line::{Joined, Line};
use writer::Writer;

/// A stored value as it is read: its bytes from now on, and their tag.
pub type StoredValue<T> = (Vec<u8>, T);

/// How a store on a disk behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// How much of its past a collection keeps.
    pub limits: Limits,
    /// The length in bytes from which on a log may be replaced by a checkpoint (it is when it is longer than the last
    /// checkpoint, too).
    pub checkpoint_after: u64,
}

impl Default for DiskOptions {
    /// The default limits; checkpoints after 16 MiB.
    fn default() -> Self {
        Self { limits: Limits::default(), checkpoint_after: 16 << 20 }
    }
}

/// The backend that keeps the store in a folder of this machine: a commit that was acknowledged is there when the store is
/// opened again, however the process or the machine has ended, and nobody sees a commit that could still be lost.
///
/// Reads are those of [`Memory`](crate::Memory); they never wait for the disk. Commits that wait share its syncs. The
/// folder holds at most about three times what is stored, and 32 MiB.
///
/// # After a restart
///
/// The revision goes on where it was. Rings hold the events since the last checkpoint (one is written when the log since
/// the last has become longer than both that one and [`DiskOptions::checkpoint_after`]); what is older is [`Gone`], as it
/// is for a kube-apiserver that was restarted.
///
/// # When the disk fails
///
/// Reads go on. While there is no room, commits are refused with [`NoRoom`](crate::NoRoom), each one tries again, and
/// [`Store::health`] says why. After any other error the commits that wait, and all later ones, get [`Unavailable`]. A log
/// that could not be synced is never synced again (the kernel may have dropped what it could not write).
///
/// # Its end
///
/// Dropping it writes what waits, ends its threads and cursors, and lets go of the folder.
pub struct Disk<T> {
    shared: Arc<Shared<T>>,
    writer: Option<JoinHandle<()>>,
}

/// What the writing thread and the users of a store share.
pub(crate) struct Shared<T> {
    published: Arc<Published<T>>,
    line: Line<T>,
    /// Nothing older than this may be published. Held while a state is published.
    forgotten: Mutex<Revision>,
}

impl<T: Send + Sync + 'static> Disk<T> {
    /// Opens the store in a folder, which is made (for this user alone) when it is missing.
    ///
    /// The tags of values are not stored. `tags` is given all that is stored, and makes the function that makes the tag
    /// of a value, from the name of its collection and its bytes.
    ///
    /// # Errors
    /// [`OpenError`]: another process has the folder, a file in it is damaged, or no tag can be made. Then nothing in
    /// the folder has changed.
    pub fn open<F>(
        path: &Path,
        options: DiskOptions,
        tags: impl FnOnce(&Stored<'_>) -> F,
    ) -> Result<Self, OpenError>
    where
        F: FnMut(&str, &[u8]) -> Result<T, String>,
    {
        Self::open_as(path, options, |stored: &Stored<'_>| unchanged(tags(stored)))
    }

    /// As [`Disk::open`], of values that may be others now: what `read` makes is given the collection, the revision and the bytes
    /// of a value, and gives the bytes that there are from now on, under the same revision, and their tag. It is to give
    /// the same each time: what it gives is on the disk only with the next checkpoint.
    ///
    /// # Errors
    /// As those of [`Disk::open`].
    pub fn open_as<F>(
        path: &Path,
        options: DiskOptions,
        read: impl FnOnce(&Stored<'_>) -> F,
    ) -> Result<Self, OpenError>
    where
        F: FnMut(&str, Revision, Vec<u8>) -> Result<StoredValue<T>, String>,
    {
        let directory = Directory::open(path).map_err(|error| match error {
            NotHad::Busy(by) => OpenError::Busy { path: path.to_owned(), by },
            NotHad::Io(source) => OpenError::Io { path: path.to_owned(), source },
        })?;
        Self::open_folder(Arc::new(directory), options, read)
    }

    #[cfg(test)]
    pub(crate) fn open_in<F>(
        folder: Arc<dyn Folder>,
        options: DiskOptions,
        tags: impl FnOnce(&Stored<'_>) -> F,
    ) -> Result<Self, OpenError>
    where
        F: FnMut(&str, &[u8]) -> Result<T, String>,
    {
        Self::open_folder(folder, options, |stored: &Stored<'_>| unchanged(tags(stored)))
    }

    fn open_folder<F>(
        folder: Arc<dyn Folder>,
        options: DiskOptions,
        read: impl FnOnce(&Stored<'_>) -> F,
    ) -> Result<Self, OpenError>
    where
        F: FnMut(&str, Revision, Vec<u8>) -> Result<StoredValue<T>, String>,
    {
        let recovered = recover::recover(&*folder, options.limits, read)?;
        let state = recovered.state;
        let shared = Arc::new(Shared {
            published: Arc::new(Published::new(state.clone())),
            forgotten: Mutex::new(state.compacted),
            line: Line::new(state, options.limits),
        });
        let path = folder.path("");
        let writer = Writer::new(Arc::clone(&shared), folder, recovered.log, recovered.checkpointed, options);
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|source| OpenError::Io { path, source })?;
        Ok(Self { shared, writer: Some(thread) })
    }
}

/// What leaves bytes as they are, and makes their tags.
fn unchanged<T>(
    mut tag: impl FnMut(&str, &[u8]) -> Result<T, String>,
) -> impl FnMut(&str, Revision, Vec<u8>) -> Result<StoredValue<T>, String> {
    move |collection, _, bytes| {
        let tag = tag(collection, &bytes)?;
        Ok((bytes, tag))
    }
}

impl<T> Shared<T> {
    /// Lets readers see `state`.
    fn publish(&self, state: State<T>) {
        let forgotten = self.forgotten.lock();
        let state = if state.compacted < *forgotten { state.compact(*forgotten) } else { state };
        let old = self.published.replace(state);
        drop(forgotten);
        drop(old);
    }

    fn compact(&self, revision: Revision) {
        let mut forgotten = self.forgotten.lock();
        let present = self.published.snapshot();
        let until = revision.min(present.revision());
        if until <= *forgotten {
            return;
        }
        *forgotten = until;
        let compacted = self.published.peek().compact(until);
        let old = self.published.replace(compacted);
        drop(forgotten);
        drop(old);
        self.line.compact(until);
    }
}

impl<T: Send + Sync + 'static> Store<T> for Disk<T> {
    fn commit(&self, collection: &Name, key: &Name, expect: Expect, change: Change<T>) -> Commit<'_, T> {
        let (collection, key) = (Arc::clone(collection), Arc::clone(key));
        Box::pin(async move {
            let published = || self.shared.published.peek().get(&collection, &key).cloned();
            match self.shared.line.join(&collection, &key, expect, change, published) {
                Joined::Told(outcome) => outcome,
                Joined::Waits(outcome) => match outcome.await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(Unavailable("its writer has ended".into()).into()),
                },
            }
        })
    }

    fn snapshot(&self) -> Snapshot<T> {
        self.shared.published.snapshot()
    }

    fn snapshot_at(&self, collection: &Name, revision: Revision) -> Result<Snapshot<T>, Gone> {
        let past = self.shared.published.peek().at(collection, revision)?;
        Ok(Snapshot::new(Arc::new(past)))
    }

    fn watch(&self, collection: &Name, after: Revision) -> Result<Cursor<T>, Gone> {
        Cursor::new(Arc::clone(&self.shared.published), Arc::clone(collection), after)
    }

    fn compact(&self, revision: Revision) {
        self.shared.compact(revision);
    }

    fn health(&self) -> Result<(), Arc<str>> {
        self.shared.line.health()
    }
}

impl<T> Drop for Disk<T> {
    fn drop(&mut self) {
        self.shared.line.close();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has told so itself.
            let _ = writer.join();
        }
        self.shared.published.close();
    }
}

impl<T> fmt::Debug for Disk<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let revision = self.shared.published.peek().revision;
        f.debug_struct("Disk").field("revision", &revision).finish_non_exhaustive()
    }
}
