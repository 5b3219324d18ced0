//! The files of a store: logs, each of which begins after a revision, and checkpoints, each of which shows one.

use std::io::{self, Read};

use super::error::OpenError;
use super::folder::{Append, Folder};
use super::frame::{self, Fault, Frames};
use super::record::{self, Header, Part, Record};
use crate::{Event, Name, Revision};

/// The version of the format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// The first bytes of a file say what it is. Both are of the same length.
const LOG_MAGIC: &[u8; MAGIC] = b"kubewright log\n\0";
const CHECKPOINT_MAGIC: &[u8; MAGIC] = b"kubewright snap\n";
const MAGIC: usize = 16;

/// The length of a log that has only begun: its magic, and a frame with a header.
const FIRST_WRITE: u64 = (MAGIC + frame::HEAD + 20) as u64;

/// What stands before a file's name until it is whole.
const UNFINISHED: &str = "new-";

/// What a file is, by its name. The revision stands in as many digits as the largest has, so that names sort as they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum File {
    Checkpoint(Revision),
    Log(Revision),
    /// A checkpoint that was not finished.
    Unfinished(Revision),
    /// A log that was not begun.
    NotBegun(Revision),
}

impl File {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Checkpoint(Revision(at)) => format!("checkpoint-{at:020}"),
            Self::Log(Revision(at)) => format!("log-{at:020}"),
            Self::Unfinished(at) => format!("{UNFINISHED}{}", Self::Checkpoint(at).name()),
            Self::NotBegun(at) => format!("{UNFINISHED}{}", Self::Log(at).name()),
        }
    }

    /// The revision that it shows, or begins after.
    pub(crate) fn revision(self) -> Revision {
        let (Self::Checkpoint(at) | Self::Log(at) | Self::Unfinished(at) | Self::NotBegun(at)) = self;
        at
    }

    /// `None` when no file of ours is called that.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (kind, digits) = name.rsplit_once('-')?;
        let revision = Revision(digits.parse().ok()?);
        let file = match kind {
            "checkpoint" => Self::Checkpoint(revision),
            "log" => Self::Log(revision),
            "new-log" => Self::NotBegun(revision),
            _ => Self::Unfinished(revision),
        };
        (file.name() == name).then_some(file)
    }
}

/// The log that commits are written to. A log in which a write has failed is never written again.
pub(crate) struct Log {
    base: Revision,
    file: Box<dyn Append>,
    length: u64,
    buffer: Vec<u8>,
}

/// The most that the buffer of a log keeps for the next group.
const BUFFER: usize = 1 << 20;

/// Whether there is room for so many bytes: they are written, and removed again.
///
/// # Errors
/// What the disk says.
pub(crate) fn try_room(folder: &dyn Folder, bytes: usize) -> io::Result<()> {
    let name = File::NotBegun(Revision(u64::MAX)).name();
    let tried = folder.create(&name).and_then(|mut file| {
        file.append(&vec![0; bytes])?;
        file.sync()
    });
    let _ = folder.remove(&name);
    tried
}

/// What becomes of the log before a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// It ends where the new one begins.
    Ended,
    /// A write to it has failed. What it holds behind the beginning of the new one did not happen.
    Cut,
}

/// Why a group is not in the log.
pub(crate) struct NotEntered {
    pub(crate) error: io::Error,
    /// Whether the log may hold it all the same.
    pub(crate) may_be_there: bool,
}

impl Log {
    /// A new log of what comes after `base`; on the disk, under its name, when this returns. A log of the same base, in
    /// which no commit was acknowledged, is replaced.
    ///
    /// # Errors
    /// What the disk says. Then the log before may go on if it is sound: the new one is not there, or is there without a
    /// commit.
    pub(crate) fn create(folder: &dyn Folder, base: Revision, before: Before) -> io::Result<Self> {
        let unfinished = File::NotBegun(base).name();
        let created = folder.create(&unfinished).and_then(|file| Self::begin(file, base, before));
        let created = created.and_then(|log| {
            folder.rename(&unfinished, &File::Log(base).name())?;
            folder.sync()?;
            Ok(log)
        });
        if created.is_err() {
            // It takes room.
            let _ = folder.remove(&unfinished);
        }
        created
    }

    /// The log after `base` goes on behind its first `length` bytes. A log whose header did not get to the disk begins
    /// anew.
    pub(crate) fn resume(folder: &dyn Folder, base: Revision, length: u64) -> io::Result<Self> {
        let file = folder.resume(&File::Log(base).name(), length)?;
        if length == 0 {
            Self::begin(file, base, Before::Ended)
        } else {
            Ok(Self { base, file, length, buffer: Vec::new() })
        }
    }

    fn begin(mut file: Box<dyn Append>, base: Revision, before: Before) -> io::Result<Self> {
        let mut buffer = LOG_MAGIC.to_vec();
        let header = Header { version: VERSION, revision: base, compacted: Revision(0) };
        frame::write(&mut buffer, |out| header.write(out));
        if before == Before::Cut {
            frame::write(&mut buffer, |out| {
                record::begin_group(out, base.next());
                record::write_cut(out);
            });
        }
        file.append(&buffer)?;
        file.sync()?;
        Ok(Self { base, file, length: buffer.len() as u64, buffer })
    }

    /// Writes a group of commits, the first of which is `first`. It is on the disk when this returns.
    ///
    /// # Errors
    /// What the disk says. Then nothing may be written after it. A group whose bytes were not all taken is not there,
    /// as a frame that was cut off is none; after a sync that failed it is not known what the disk has.
    pub(crate) fn append<'a, T: 'a>(
        &mut self,
        first: Revision,
        records: impl Iterator<Item = Entered<'a, T>>,
    ) -> Result<(), NotEntered> {
        self.buffer.clear();
        frame::write(&mut self.buffer, |out| {
            record::begin_group(out, first);
            for entered in records {
                match entered {
                    Entered::Commit(collection, event) => record::write_commit(out, collection, event),
                    Entered::Compact(revision) => record::write_compaction(out, revision),
                }
            }
        });
        let not_there = |error| NotEntered { error, may_be_there: false };
        if u32::try_from(self.buffer.len()).is_err() {
            return Err(not_there(io::Error::other("a value is larger than a log can hold")));
        }
        self.file.append(&self.buffer).map_err(not_there)?;
        self.file.sync().map_err(|error| NotEntered { error, may_be_there: true })?;
        self.length += self.buffer.len() as u64;
        self.buffer.shrink_to(BUFFER);
        Ok(())
    }

    /// Gives it up after a write that failed. What was not synced goes from the kernel's memory too, if it can, so that no
    /// later process reads there what the disk may not have.
    pub(crate) fn give_up(mut self) {
        let _ = self.file.cut(self.length);
    }

    /// The revision that it begins after.
    pub(crate) fn base(&self) -> Revision {
        self.base
    }

    /// Its length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }
}

/// What a log takes.
pub(crate) enum Entered<'a, T> {
    Commit(&'a Name, &'a Event<T>),
    Compact(Revision),
}

/// The first bytes of a checkpoint: its magic and header.
pub(crate) fn begin_checkpoint(out: &mut Vec<u8>, revision: Revision, compacted: Revision) {
    out.extend_from_slice(CHECKPOINT_MAGIC);
    frame::write(out, |out| Header { version: VERSION, revision, compacted }.write(out));
}

/// A file that is read from its start, and turns what it finds into errors that name it.
pub(crate) struct Reader<'a> {
    folder: &'a dyn Folder,
    file: File,
    frames: Frames<Box<dyn Read + 'a>>,
    header: Header,
}

/// How a file begins.
pub(crate) enum Opened<'a> {
    Whole(Reader<'a>),
    /// Its first write was cut off.
    Torn,
}

impl<'a> Reader<'a> {
    /// Opens a file and reads its header.
    pub(crate) fn open(folder: &'a dyn Folder, file: File) -> Result<Opened<'a>, OpenError> {
        let path = folder.path(&file.name());
        let io = |source| OpenError::Io { path: path.clone(), source };
        let (length, mut input) = folder.read(&file.name()).map_err(io)?;
        let expected = if matches!(file, File::Log(_)) { LOG_MAGIC } else { CHECKPOINT_MAGIC };
        let mut magic = Vec::new();
        (&mut input).take(MAGIC as u64).read_to_end(&mut magic).map_err(io)?;
        if length <= FIRST_WRITE && magic.iter().all(|byte| *byte == 0) {
            return Ok(Opened::Torn);
        }
        if !expected.starts_with(&magic) {
            return Err(OpenError::Foreign { path });
        }
        if magic.len() < MAGIC {
            return Ok(Opened::Torn);
        }
        let mut frames = Frames::new(input, MAGIC as u64, length);
        let body = match frames.next() {
            Ok(Some(body)) => body,
            Ok(None) | Err(Fault::Torn) => return Ok(Opened::Torn),
            Err(Fault::Io(error)) => return Err(io(error)),
            Err(Fault::Damaged(why)) => return Err(OpenError::Damaged { path, at: MAGIC as u64, why }),
        };
        let unreadable = || OpenError::Damaged { path: path.clone(), at: MAGIC as u64, why: UNREADABLE };
        let header = Header::read(&body).ok_or_else(unreadable)?;
        if header.version != VERSION {
            return Err(OpenError::Version { path, found: header.version, known: VERSION });
        }
        if header.revision != file.revision() {
            return Err(OpenError::Damaged {
                path,
                at: 0,
                why: "its name is not the one it was written under",
            });
        }
        Ok(Opened::Whole(Self { folder, file, frames, header }))
    }

    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// The end of what was read so far.
    pub(crate) fn position(&self) -> u64 {
        self.frames.position()
    }

    /// The next group of a log.
    pub(crate) fn group(&mut self) -> Result<Next<(Revision, Vec<Record>)>, OpenError> {
        self.next(record::read_group)
    }

    /// The next parts of a checkpoint.
    pub(crate) fn parts(&mut self) -> Result<Next<Vec<Part>>, OpenError> {
        self.next(record::read_parts)
    }

    fn next<B>(&mut self, read: impl FnOnce(&[u8]) -> Option<B>) -> Result<Next<B>, OpenError> {
        match self.frames.next() {
            Ok(None) => Ok(Next::End),
            Ok(Some(body)) => read(&body).map(Next::Read).ok_or_else(|| self.damaged(UNREADABLE)),
            Err(Fault::Torn) => Ok(Next::Torn),
            Err(Fault::Damaged(why)) => Err(self.damaged(why)),
            Err(Fault::Io(source)) => {
                Err(OpenError::Io { path: self.folder.path(&self.file.name()), source })
            }
        }
    }

    /// The file is damaged where reading has come to.
    pub(crate) fn damaged(&self, why: &'static str) -> OpenError {
        OpenError::Damaged { path: self.folder.path(&self.file.name()), at: self.position(), why }
    }
}

const UNREADABLE: &str = "it holds what no version of this program has written";

/// What comes next in a file.
pub(crate) enum Next<B> {
    Read(B),
    End,
    /// The rest was cut off while it was written.
    Torn,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_a_file_is_and_sort_by_revision() {
        for file in [
            File::Log(Revision(0)),
            File::Checkpoint(Revision(u64::MAX)),
            File::Unfinished(Revision(7)),
            File::NotBegun(Revision(7)),
        ] {
            assert_eq!(File::of(&file.name()), Some(file));
        }
        assert!(File::Log(Revision(9)).name() < File::Log(Revision(10)).name());
        for foreign in [
            "",
            "log",
            "log-1",
            "log--1",
            "notes.txt",
            "checkpoint-+0000000000000000001",
            "old-checkpoint-00000000000000000001",
        ] {
            assert_eq!(File::of(foreign), None, "{foreign}");
        }
    }
}
