//! The thread that writes the log, and the one that writes a checkpoint beside it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::files::{Entered, Log};
use super::folder::Folder;
use super::line::Group;
use super::{DiskOptions, Shared, checkpoint};
use crate::state::State;
use crate::{Name, Unavailable};

/// What the writing thread has.
pub(crate) struct Writer<T> {
    shared: Arc<Shared<T>>,
    folder: Arc<dyn Folder>,
    log: Log,
    options: DiskOptions,
    /// The length of the last checkpoint.
    checkpointed: u64,
    /// The checkpoint that is being written.
    checkpoint: Option<Checkpointing>,
}

struct Checkpointing {
    thread: JoinHandle<Option<u64>>,
    cancelled: Arc<AtomicBool>,
}

impl<T: Send + Sync + 'static> Writer<T> {
    pub(crate) fn new(
        shared: Arc<Shared<T>>,
        folder: Arc<dyn Folder>,
        log: Log,
        checkpointed: u64,
        options: DiskOptions,
    ) -> Self {
        Self { shared, folder, log, options, checkpointed, checkpoint: None }
    }

    /// Writes groups until the line is closed and empty, or the disk fails.
    pub(crate) fn run(mut self) {
        let _alarm = Alarm(Arc::clone(&self.shared));
        while let Some((group, state)) = self.shared.line.next() {
            if let Err(error) = self.write(group, state).and_then(|()| self.begin_checkpoint()) {
                self.fail(&error);
                break;
            }
        }
        if let Some(Checkpointing { thread, cancelled }) = self.checkpoint.take() {
            cancelled.store(true, Ordering::Relaxed);
            let _ = thread.join();
        }
    }

    /// Brings a group to the disk, then to the readers, then to those who wait.
    fn write(&mut self, group: Group<T>, state: State<T>) -> io::Result<()> {
        if !group.is_empty()
            && let Err(error) = self.log.append(group.first, group.records())
        {
            group.fail(&unavailable(&error));
            return Err(error);
        }
        let changed: BTreeSet<Name> = group
            .records()
            .filter_map(|record| match record {
                Entered::Commit(collection, _) => Some(Arc::clone(collection)),
                Entered::Compact(_) => None,
            })
            .collect();
        self.shared.publish(state);
        for collection in &changed {
            self.shared.published.ring(collection);
        }
        group.tell();
        Ok(())
    }

    /// Begins a new log and a checkpoint of what is before it, when the log is long enough and no other checkpoint is
    /// being written.
    fn begin_checkpoint(&mut self) -> io::Result<()> {
        if self.log.length() < self.options.checkpoint_after.max(self.checkpointed) || !self.is_idle() {
            return Ok(());
        }
        let snapshot = self.shared.published.snapshot();
        self.log = Log::create(&*self.folder, snapshot.revision())?;
        let cancelled = Arc::new(AtomicBool::new(false));
        let (folder, stop) = (Arc::clone(&self.folder), Arc::clone(&cancelled));
        let write = move || match checkpoint::write(&*folder, snapshot.state(), &stop) {
            Ok(length) => length,
            Err(error) => {
                // The logs that it was to replace are still there.
                tracing::warn!(%error, "a checkpoint of the store could not be written");
                None
            }
        };
        let thread = std::thread::Builder::new().name("store-checkpoint".to_owned()).spawn(write)?;
        self.checkpoint = Some(Checkpointing { thread, cancelled });
        Ok(())
    }

    /// Whether no checkpoint is being written.
    fn is_idle(&mut self) -> bool {
        match self.checkpoint.take() {
            Some(running) if !running.thread.is_finished() => {
                self.checkpoint = Some(running);
                false
            }
            Some(finished) => {
                if let Ok(Some(length)) = finished.thread.join() {
                    self.checkpointed = length;
                }
                true
            }
            None => true,
        }
    }

    fn fail(&self, error: &io::Error) {
        tracing::error!(path = %self.folder.path("").display(), %error, "the store takes no more writes");
        self.shared.line.fail(&unavailable(error));
    }
}

fn unavailable(error: &io::Error) -> Unavailable {
    Unavailable(error.to_string().into())
}

/// Tells those who wait if the writer panics, who would wait for ever.
struct Alarm<T>(Arc<Shared<T>>);

impl<T> Drop for Alarm<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.line.fail(&Unavailable("its writer has panicked".into()));
        }
    }
}
