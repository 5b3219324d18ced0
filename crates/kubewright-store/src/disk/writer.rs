//! The thread that writes the log, and the one that writes a checkpoint beside it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::files::{Before, Entered, Log, NotEntered, try_room};
use super::folder::Folder;
use super::line::{Failure, Group, Task};
use super::mark::Mark;
use super::{DiskOptions, Shared, checkpoint};
use crate::state::State;
use crate::{Name, NoRoom, Unavailable};

/// What the writing thread has.
pub(crate) struct Writer<T> {
    shared: Arc<Shared<T>>,
    folder: Arc<dyn Folder>,
    /// `None` after a write has failed: before the next one a new log is begun.
    log: Option<Log>,
    mark: Mark,
    options: DiskOptions,
    /// The length of the logs before this one that no checkpoint was begun for.
    behind: u64,
    /// The length of the last checkpoint.
    checkpointed: u64,
    /// How much longer than usual the logs have to be for a checkpoint: the last one could not be begun.
    postponed: u64,
    /// The checkpoint that is being written.
    checkpoint: Option<Checkpointing>,
    /// The bytes of the last group, if there was no room for it.
    refused: Option<usize>,
}

struct Checkpointing {
    thread: JoinHandle<Option<u64>>,
    cancelled: Arc<AtomicBool>,
}

impl<T: Send + Sync + 'static> Writer<T> {
    pub(crate) fn new(
        shared: Arc<Shared<T>>,
        folder: Arc<dyn Folder>,
        (log, mark): (Log, Mark),
        checkpointed: u64,
        options: DiskOptions,
    ) -> Self {
        Self {
            shared,
            folder,
            log: Some(log),
            mark,
            options,
            behind: 0,
            checkpointed,
            postponed: 0,
            checkpoint: None,
            refused: None,
        }
    }

    /// Writes groups until the line is closed and empty, or the disk fails.
    pub(crate) fn run(mut self) {
        let _alarm = Alarm(Arc::clone(&self.shared));
        while let Some(task) = self.shared.line.next() {
            let went_on = match task {
                Task::Write(group, state) => self.write(group, state),
                Task::LookForRoom => self.look_for_room(),
            };
            if let Err(error) = went_on.and_then(|()| self.begin_checkpoint()) {
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
    ///
    /// # Errors
    /// When nothing may be written any more.
    fn write(&mut self, group: Group<T>, state: State<T>) -> io::Result<()> {
        if !group.is_empty() {
            if let Err(NotEntered { error, may_be_there }) = self.enter(&group) {
                return self.not_entered(group, error, may_be_there);
            }
            // A mark that is too low knows less, and says nothing wrong.
            let _ = self.mark.set(state.revision);
            self.has_room();
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
        group.notify();
        Ok(())
    }

    /// Writes a group to the log, or to a new one if a write to this one has failed.
    fn enter(&mut self, group: &Group<T>) -> Result<(), NotEntered> {
        let mut log = self.sound_log().map_err(|error| NotEntered { error, may_be_there: false })?;
        let entered = log.append(group.first, group.records());
        if entered.is_ok() {
            self.log = Some(log);
        } else {
            self.behind += log.length();
            log.give_up();
        }
        entered
    }

    /// The log; a new one, which begins at what readers see, if the one before was given up.
    fn sound_log(&mut self) -> io::Result<Log> {
        match self.log.take() {
            Some(log) => Ok(log),
            None => Log::create(&*self.folder, self.shared.published.peek().revision, Before::Cut),
        }
    }

    /// Makes sure that there is a log that can be written.
    fn renew(&mut self) -> io::Result<()> {
        self.log = Some(self.sound_log()?);
        Ok(())
    }

    /// Refuses a group for which there is no room, and all behind it. Any other error of the disk is the end.
    fn not_entered(&mut self, group: Group<T>, error: io::Error, may_be_there: bool) -> io::Result<()> {
        if !is_full(&error) {
            group.fail(&Failure::Unavailable(unavailable(&error)));
            return Err(error);
        }
        let path = self.folder.path("");
        if self.refused.is_none() {
            tracing::error!(path = %path.display(), %error, "no room for writes; they go on by themselves when there is");
        }
        self.refused = Some(group.weight());
        let why = format!("{}: {error}; writes go on by themselves when there is", path.display());
        let no_room = NoRoom(why.into());
        // A new log says that the group did not happen.
        let is_known = !may_be_there || self.renew().is_ok();
        let published = State::clone(&self.shared.published.peek());
        let behind = self.shared.line.refuse(&group, &no_room, published);
        group.fail(&if is_known {
            Failure::NoRoom(no_room.clone())
        } else {
            Failure::Unavailable(unavailable(&error))
        });
        for group in behind {
            group.fail(&Failure::NoRoom(no_room.clone()));
        }
        Ok(())
    }

    /// Finds out whether there is room again for as much as was refused.
    fn look_for_room(&mut self) -> io::Result<()> {
        let wanted = self.refused.unwrap_or_default();
        match try_room(&*self.folder, wanted).and_then(|()| self.renew()) {
            Ok(()) => self.has_room(),
            Err(error) if is_full(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn has_room(&mut self) {
        if self.refused.take().is_some() {
            tracing::warn!(path = %self.folder.path("").display(), "there is room again, and writes go on");
            self.shared.line.has_room();
        }
    }

    /// Begins a new log and a checkpoint of what is before it, when the logs are long enough and no other checkpoint is
    /// being written. If that cannot be done, this log goes on, and it is tried again when the logs have become longer by as
    /// much.
    fn begin_checkpoint(&mut self) -> io::Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        let (base, length) = (log.base(), self.behind + log.length());
        let enough = self.options.checkpoint_after.max(self.checkpointed);
        if length < enough.saturating_add(self.postponed) || !self.is_idle() {
            return Ok(());
        }
        let snapshot = self.shared.published.snapshot();
        // A log that has no commits yet is as good as a new one (and must not be replaced while it goes on).
        if base != snapshot.revision() {
            match Log::create(&*self.folder, snapshot.revision(), Before::Ended) {
                Ok(log) => self.log = Some(log),
                Err(error) if is_full(&error) => {
                    not_written(&*self.folder, &error);
                    self.postponed = length;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        (self.behind, self.postponed) = (0, 0);
        let cancelled = Arc::new(AtomicBool::new(false));
        let (folder, stop) = (Arc::clone(&self.folder), Arc::clone(&cancelled));
        let write = move || {
            let written = checkpoint::write(&*folder, snapshot.state(), &stop);
            // The logs that it was to replace are still there.
            written.inspect_err(|error| not_written(&*folder, error)).unwrap_or_default()
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

/// Whether an error says that there is no room, and nothing else: what was synced before is sound, and what comes is
/// written to another file.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn not_written(folder: &dyn Folder, error: &io::Error) {
    let path = folder.path("");
    tracing::error!(path = %path.display(), %error, "a checkpoint could not be written, and the logs grow");
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
