//! Checkpoints: all that is there at one revision, so that no log needs to reach further back.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::OpenError;
use super::files::{File, Next, Opened, Reader, begin_checkpoint};
use super::folder::{Append, Folder};
use super::frame;
use super::record::{self, Part};
use crate::Revision;
use crate::state::State;

/// How much is written between two syncs. Were it all left to one, the syncs of the log would have to wait for it.
const STRIDE: usize = 1 << 20;

/// Writes `state` as a checkpoint, and removes the files that nobody needs when it is there. `None` when it was
/// `cancelled` before it was whole. It gives the checkpoint's length.
///
/// # Errors
/// What the disk says. The checkpoint is there as a whole or not at all, and what it was to replace still is.
pub(crate) fn write<T>(
    folder: &dyn Folder,
    state: &State<T>,
    cancelled: &AtomicBool,
) -> io::Result<Option<u64>> {
    let unfinished = File::Unfinished(state.revision).name();
    let written = write_to(folder, &unfinished, state, cancelled);
    if !matches!(written, Ok(Some(_))) {
        // It takes the room that others wait for.
        let _ = folder.remove(&unfinished);
        return written;
    }
    folder.sync()?;
    let older = |file: File| file.revision() < state.revision;
    remove(folder, older)?;
    written
}

/// Writes a checkpoint under another name, and then gives it its own.
fn write_to<T>(
    folder: &dyn Folder,
    unfinished: &str,
    state: &State<T>,
    cancelled: &AtomicBool,
) -> io::Result<Option<u64>> {
    let mut output =
        Output { file: folder.create(unfinished)?, out: Vec::new(), body: Vec::new(), length: 0 };
    begin_checkpoint(&mut output.out, state.revision, state.compacted);
    let mut entries = 0;
    for (name, collection) in &state.collections {
        record::write_collection(&mut output.body, name, collection.ring.newest());
        for (key, entry) in &collection.entries {
            record::write_entry(&mut output.body, key, entry.revision, &entry.bytes);
            entries += 1;
            if output.body.len() >= STRIDE {
                if cancelled.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                output.flush()?;
            }
        }
    }
    record::write_end(&mut output.body, entries);
    output.flush()?;
    folder.rename(unfinished, &File::Checkpoint(state.revision).name())?;
    Ok(Some(output.length))
}

/// Removes the files that are of no use any more.
pub(crate) fn remove(folder: &dyn Folder, useless: impl Fn(File) -> bool) -> io::Result<()> {
    for name in folder.names()? {
        if File::of(&name).is_some_and(&useless) {
            folder.remove(&name)?;
        }
    }
    Ok(())
}

/// A checkpoint that is being written.
struct Output {
    file: Box<dyn Append>,
    out: Vec<u8>,
    body: Vec<u8>,
    length: u64,
}

impl Output {
    fn flush(&mut self) -> io::Result<()> {
        let body = std::mem::take(&mut self.body);
        frame::write(&mut self.out, |out| out.extend_from_slice(&body));
        self.file.append(&self.out)?;
        self.file.sync()?;
        self.length += self.out.len() as u64;
        (self.body, self.out) = (body, std::mem::take(&mut self.out));
        self.body.clear();
        self.out.clear();
        Ok(())
    }
}

/// What a checkpoint says, without tags.
#[derive(Default)]
pub(crate) struct Checkpoint {
    pub(crate) revision: Revision,
    pub(crate) compacted: Revision,
    pub(crate) collections: BTreeMap<String, Section>,
    /// The length of its file.
    pub(crate) length: u64,
}

/// One collection in a checkpoint.
pub(crate) struct Section {
    pub(crate) modified: Revision,
    pub(crate) entries: BTreeMap<String, (Revision, Vec<u8>)>,
}

/// Reads a checkpoint.
///
/// # Errors
/// [`OpenError`] when it is not the whole of what was written.
pub(crate) fn read(folder: &dyn Folder, revision: Revision) -> Result<Checkpoint, OpenError> {
    let file = File::Checkpoint(revision);
    let too_short = "it ends too early";
    let mut reader = match Reader::open(folder, file)? {
        Opened::Whole(reader) => reader,
        Opened::Torn => {
            return Err(OpenError::Damaged { path: folder.path(&file.name()), at: 0, why: too_short });
        }
    };
    let mut found = Checkpoint { revision, compacted: reader.header().compacted, ..Checkpoint::default() };
    let mut collection = None;
    let (mut count, mut expected) = (0, None);
    loop {
        let parts = match reader.parts()? {
            Next::Read(parts) if expected.is_none() => parts,
            Next::End if expected == Some(count) => break,
            Next::Read(_) => return Err(reader.damaged("it goes on after its end")),
            Next::End | Next::Torn => return Err(reader.damaged(too_short)),
        };
        for part in parts {
            match (part, &mut collection) {
                (Part::Collection { name, modified }, _) => {
                    let section = Section { modified, entries: BTreeMap::new() };
                    collection = Some(found.collections.entry(name).insert_entry(section));
                }
                (Part::Entry { key, revision, bytes }, Some(collection)) => {
                    collection.get_mut().entries.insert(key, (revision, bytes));
                    count += 1;
                }
                (Part::Entry { .. }, None) => return Err(reader.damaged("an entry has no collection")),
                (Part::End { entries }, _) => expected = Some(entries),
            }
        }
    }
    found.length = reader.position();
    Ok(found)
}
