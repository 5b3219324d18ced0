//! Opening: the newest checkpoint, and the logs from there on.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;

use super::StoredValue;
use super::checkpoint::{self, Checkpoint, Section};
use super::error::OpenError;
use super::files::{Before, File, Log, Next, Opened, Reader};
use super::folder::{Folder, LOCK};
use super::mark::{self, MARK, Mark};
use super::record::Record;
use crate::ring::Ring;
use crate::state::{Collection, State};
use crate::{Entry, Event, Happening, Limits, Name, Revision};

/// What is in a store that is being opened, by its bytes alone.
pub struct Stored<'a> {
    checkpoint: &'a Checkpoint,
    history: &'a [Record],
}

impl Stored<'_> {
    /// The values of a collection by their keys.
    #[must_use]
    pub fn values(&self, collection: &str) -> BTreeMap<&str, &[u8]> {
        let section = self.checkpoint.collections.get(collection);
        let before = section.into_iter().flat_map(|section| &section.entries);
        let mut values: BTreeMap<&str, &[u8]> =
            before.map(|(key, (_, bytes))| (key.as_str(), bytes.as_slice())).collect();
        for record in self.history {
            match record {
                Record::Commit { collection: other, key, deleted, bytes } if other == collection => {
                    if *deleted {
                        values.remove(key.as_str());
                    } else {
                        values.insert(key, bytes);
                    }
                }
                _ => {}
            }
        }
        values
    }
}

/// What a store is opened with.
pub(crate) struct Recovered<T> {
    pub(crate) state: State<T>,
    /// The log that goes on, and the mark beside it.
    pub(crate) log: (Log, Mark),
    /// The length of the newest checkpoint.
    pub(crate) checkpointed: u64,
}

/// Reads what is in a folder, repairs the end of its last log, and removes what is of no use any more. `read` is given
/// all that is stored, and makes what reads a value of a collection: its bytes from now on, and their tag.
///
/// # Errors
/// [`OpenError`]; then nothing in the folder was changed.
pub(crate) fn recover<T, F>(
    folder: &dyn Folder,
    limits: Limits,
    read: impl FnOnce(&Stored<'_>) -> F,
) -> Result<Recovered<T>, OpenError>
where
    F: FnMut(&str, Revision, Vec<u8>) -> Result<StoredValue<T>, String>,
{
    let io = |name: &str| {
        let path = folder.path(name);
        move |source| OpenError::Io { path, source }
    };
    let (files, acknowledged) = files(folder)?;
    let newest = files.iter().rev().find_map(|file| match file {
        File::Checkpoint(revision) => Some(*revision),
        _ => None,
    });
    let checkpoint = match newest {
        Some(revision) => checkpoint::read(folder, revision)?,
        None => Checkpoint::default(),
    };
    let mut history = History { revision: checkpoint.revision, records: Vec::new() };
    let logs = files.iter().filter_map(|file| match file {
        File::Log(base) if *base >= checkpoint.revision => Some(*base),
        _ => None,
    });
    let end = history.read(folder, &checkpoint, &logs.collect::<Vec<_>>())?;
    let was_begun = files.iter().any(|file| matches!(file, File::Log(_) | File::Checkpoint(_)));
    if end.is_none() && (was_begun || acknowledged.is_some_and(|revision| revision > Revision(0))) {
        return Err(OpenError::Missing { path: folder.path(&File::Log(checkpoint.revision).name()) });
    }
    if let (Some(End { base, .. }), Some(acknowledged)) = (&end, acknowledged)
        && history.revision < acknowledged
    {
        let (path, mark) = (folder.path(&File::Log(*base).name()), folder.path(MARK));
        return Err(OpenError::Lost { path, found: history.revision, acknowledged, mark });
    }
    let History { revision, records } = history;
    let mut read = read(&Stored { checkpoint: &checkpoint, history: &records });
    let checkpointed = checkpoint.length;
    let mut state = restore(checkpoint, &mut read)?;
    for record in records {
        replay(&mut state, record, limits, &mut read)?;
    }
    // Only now, when nothing can refuse any more, is the folder changed.
    let useless = |file| match file {
        File::Log(at) | File::Checkpoint(at) => at < newest.unwrap_or_default(),
        File::Unfinished(_) | File::NotBegun(_) => true,
    };
    // A file may have been given its name just before the process ended: nothing relies on it before the disk knows.
    folder.sync().map_err(io(""))?;
    checkpoint::remove(folder, useless).map_err(io(""))?;
    let log = match end {
        Some(End { base, length, torn }) => {
            if torn {
                report_torn(folder, base, length, acknowledged);
            }
            Log::resume(folder, base, length).map_err(io(&File::Log(base).name()))?
        }
        None => {
            let name = File::Log(Revision(0)).name();
            Log::create(folder, Revision(0), Before::Ended).map_err(io(&name))?
        }
    };
    // What was found is on the disk now.
    let mark = Mark::begin(folder, revision).map_err(io(MARK))?;
    Ok(Recovered { state, log: (log, mark), checkpointed })
}

/// Says what is dropped at the end of the last log.
fn report_torn(folder: &dyn Folder, base: Revision, at: u64, acknowledged: Option<Revision>) {
    let path = folder.path(&File::Log(base).name());
    let path = path.display();
    match acknowledged {
        Some(_) => {
            tracing::warn!(%path, at, "the last write was cut off and is dropped; all that is known to have been acknowledged is there");
        }
        None => tracing::warn!(%path, at, "the last write was cut off and is dropped"),
    }
}

/// The files of the store, checkpoints first, the older before the newer; and what the mark says.
fn files(folder: &dyn Folder) -> Result<(Vec<File>, Option<Revision>), OpenError> {
    let names = folder.names().map_err(|source| OpenError::Io { path: folder.path(""), source })?;
    let mut files = Vec::new();
    for name in names.iter().filter(|name| *name != LOCK && *name != MARK) {
        files.push(File::of(name).ok_or_else(|| OpenError::Foreign { path: folder.path(name) })?);
    }
    files.sort();
    Ok((files, mark::read(folder, &names)?))
}

/// What happened after the checkpoint.
struct History {
    revision: Revision,
    records: Vec<Record>,
}

/// Where the last log is to go on.
struct End {
    base: Revision,
    length: u64,
    torn: bool,
}

impl History {
    /// Reads the logs that begin after `bases`, each of which goes on where the one before ends, or where it is cut.
    fn read(
        &mut self,
        folder: &dyn Folder,
        checkpoint: &Checkpoint,
        bases: &[Revision],
    ) -> Result<Option<End>, OpenError> {
        if bases.first().is_some_and(|first| *first != self.revision) {
            return Err(OpenError::Missing { path: folder.path(&File::Log(self.revision).name()) });
        }
        let cuts = cuts(folder, bases.get(1..).unwrap_or_default())?;
        let mut end: Option<End> = None;
        for &base in bases {
            // That this one begins where reading has come to proves that the one before is whole, whatever is behind.
            if let Some(End { base: before, length, .. }) = end
                && base > self.revision
            {
                let path = folder.path(&File::Log(before).name());
                return Err(OpenError::Damaged { path, at: length, why: "commits are missing at its end" });
            }
            let Opened::Whole(mut log) = Reader::open(folder, File::Log(base))? else {
                if base < self.revision {
                    continue;
                }
                // A log is on the disk before the checkpoint that it follows is begun.
                if base == checkpoint.revision && checkpoint.length > 0 {
                    let path = folder.path(&File::Log(base).name());
                    return Err(OpenError::Damaged { path, at: 0, why: "it ends within its header" });
                }
                end = Some(End { base, length: 0, torn: true });
                continue;
            };
            if base < self.revision {
                // It could not be begun for certain, and the one before went on: it has no commits.
                match log.group()? {
                    Next::End => continue,
                    _ => return Err(log.damaged("the log before it has these commits too")),
                }
            }
            let until = cuts.iter().find(|cut| **cut > base).copied();
            let torn = self.read_log(&mut log, until)?;
            end = Some(End { base, length: log.position(), torn });
        }
        Ok(end)
    }

    /// Reads one log, up to the revision at which the next one cuts it; says whether its end was cut off.
    fn read_log(&mut self, log: &mut Reader<'_>, until: Option<Revision>) -> Result<bool, OpenError> {
        while until != Some(self.revision) {
            match log.group()? {
                Next::Read((first, records)) => {
                    if first != self.revision.next() {
                        return Err(log.damaged("the commits before are missing"));
                    }
                    let commits = records.iter().filter(|record| matches!(record, Record::Commit { .. }));
                    self.revision = Revision(self.revision.0 + commits.count() as u64);
                    self.records.extend(records);
                }
                Next::End => return Ok(false),
                Next::Torn => return Ok(true),
            }
        }
        Ok(false)
    }
}

/// Those logs that cut the one before them.
fn cuts(folder: &dyn Folder, bases: &[Revision]) -> Result<Vec<Revision>, OpenError> {
    let mut cuts = Vec::new();
    for &base in bases {
        if let Opened::Whole(mut log) = Reader::open(folder, File::Log(base))?
            && let Next::Read((_, records)) = log.group()?
            && records.first() == Some(&Record::Cut)
        {
            cuts.push(base);
        }
    }
    Ok(cuts)
}

/// The state that a checkpoint shows. Its past is gone.
fn restore<T>(
    checkpoint: Checkpoint,
    read: &mut impl FnMut(&str, Revision, Vec<u8>) -> Result<StoredValue<T>, String>,
) -> Result<State<T>, OpenError> {
    let compacted = checkpoint.revision.max(checkpoint.compacted);
    let mut state = State { revision: checkpoint.revision, compacted, collections: OrdMap::new() };
    for (name, Section { modified, entries }) in checkpoint.collections {
        let mut restored = OrdMap::new();
        for (key, (revision, bytes)) in entries {
            let key = Name::from(key);
            let entry = entry(&name, Arc::clone(&key), revision, bytes, read)?;
            restored.insert(key, entry);
        }
        let collection = Collection { entries: restored, ring: Ring::after_all_until(modified) };
        state.collections.insert(name.into(), Arc::new(collection));
    }
    Ok(state)
}

/// Lets happen what a log says.
fn replay<T>(
    state: &mut State<T>,
    record: Record,
    limits: Limits,
    read: &mut impl FnMut(&str, Revision, Vec<u8>) -> Result<StoredValue<T>, String>,
) -> Result<(), OpenError> {
    let (collection, key, deleted, bytes) = match record {
        Record::Compact(revision) => {
            *state = state.compact(revision);
            return Ok(());
        }
        Record::Cut => return Ok(()),
        Record::Commit { collection, key, deleted, bytes } => (collection, key, deleted, bytes),
    };
    let previous = state.get(&collection, &key).cloned();
    let happening = match (deleted, &previous) {
        (false, None) => Happening::Added,
        (false, Some(_)) => Happening::Modified,
        (true, Some(_)) => Happening::Deleted,
        (true, None) => {
            let why = "it goes, and was not there".to_owned();
            return Err(OpenError::Value { collection, key, why });
        }
    };
    let key = previous.as_ref().map_or_else(|| Name::from(key), |previous| Arc::clone(&previous.key));
    let entry = entry(&collection, key, state.revision.next(), bytes, read)?;
    let known = state.collections.get_key_value(collection.as_str()).map(|(name, _)| Arc::clone(name));
    let collection = known.unwrap_or_else(|| Name::from(collection));
    state.apply(&collection, Arc::new(Event { happening, entry, previous }), limits);
    Ok(())
}

fn entry<T>(
    collection: &str,
    key: Name,
    revision: Revision,
    bytes: Vec<u8>,
    read: &mut impl FnMut(&str, Revision, Vec<u8>) -> Result<StoredValue<T>, String>,
) -> Result<Arc<Entry<T>>, OpenError> {
    let (bytes, tag) = read(collection, revision, bytes).map_err(|why| OpenError::Value {
        collection: collection.to_owned(),
        key: key.to_string(),
        why,
    })?;
    Ok(Arc::new(Entry { key, bytes: Bytes::from(bytes.into_boxed_slice()), revision, tag: Arc::new(tag) }))
}
