//! The mark: the last revision that was acknowledged, kept beside the logs.
//!
//! A log that ends between two groups looks the same whether nobody wrote after them or somebody took what came after
//! away. The mark tells the two apart. It is written after a group is on the disk and before anybody is told of it, and
//! not synced, which would double the price of a commit. So it is a lower bound: it outlives a process that is killed, and of
//! a machine that stops it may be older than the logs, never newer.

use std::io::{self, Read};

use super::error::OpenError;
use super::folder::{Folder, Overwrite};
use super::frame::{self, Frames};
use super::writer::is_full;
use crate::Revision;

/// Its file.
pub(crate) const MARK: &str = "acknowledged";

const MAGIC: &[u8; 16] = b"kubewright mark\n";
const LENGTH: usize = MAGIC.len() + frame::HEAD + 8;

/// The mark of an open store; there is none where there was no room for it.
pub(crate) struct Mark(Option<Box<dyn Overwrite>>);

impl Mark {
    /// Sets it for the first time in this process. A full disk does not keep a store from being read: then the mark stays as it
    /// is, or there is none until the store is opened again.
    pub(crate) fn begin(folder: &dyn Folder, revision: Revision) -> io::Result<Self> {
        let mut mark = match folder.mark(MARK) {
            Err(error) if is_full(&error) => return Ok(Self(None)),
            made => Self(Some(made?)),
        };
        match mark.set(revision) {
            Err(error) if !is_full(&error) => Err(error),
            _ => Ok(mark),
        }
    }

    /// All commits up to `revision` are on the disk.
    pub(crate) fn set(&mut self, revision: Revision) -> io::Result<()> {
        let mut text = Vec::with_capacity(LENGTH);
        text.extend_from_slice(MAGIC);
        frame::write(&mut text, |out| out.extend_from_slice(&revision.0.to_le_bytes()));
        self.0.as_mut().map_or(Ok(()), |file| file.overwrite(&text))
    }
}

/// What the mark of a folder says. `None` when there is none, or when it never got to the disk (the machine stopped soon after
/// it was made): then nothing is known.
///
/// # Errors
/// [`OpenError`] when it is there, and not what was written.
pub(crate) fn read(folder: &dyn Folder, names: &[String]) -> Result<Option<Revision>, OpenError> {
    if !names.iter().any(|name| name == MARK) {
        return Ok(None);
    }
    let path = folder.path(MARK);
    let io = |source| OpenError::Io { path: path.clone(), source };
    let (length, input) = folder.read(MARK).map_err(io)?;
    let mut text = Vec::new();
    input.take(LENGTH as u64 + 1).read_to_end(&mut text).map_err(io)?;
    if length < LENGTH as u64 || text.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let damaged = |at| OpenError::Damaged { path: path.clone(), at, why: "it holds no revision" };
    let frame = text.strip_prefix(MAGIC).ok_or_else(|| damaged(0))?;
    let body = Frames::new(frame, 0, frame.len() as u64).next();
    let revision = body.ok().flatten().and_then(|body| Some(u64::from_le_bytes(body.try_into().ok()?)));
    match revision {
        Some(revision) if length == LENGTH as u64 => Ok(Some(Revision(revision))),
        _ => Err(damaged(MAGIC.len() as u64)),
    }
}
