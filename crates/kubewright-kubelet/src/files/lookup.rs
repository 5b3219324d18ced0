//! Looks files up beneath a folder that is held.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use super::{HOLD, Held};

/// How often somebody who moves folders while we look may have us look again.
#[cfg(target_os = "linux")]
const MOST_TRIES: usize = 128;

/// Nobody waits for the other end of a pipe.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Where the links beneath a folder may lead. To what a process has open (`/proc/self/fd`), none does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// No further than the folder: a link that leads out of it, as every absolute one does, is an error
    /// (`pkg/volume/util/subpath`).
    Beneath,
    /// Where they would lead a program whose `/` is the folder: absolute ones begin there, and `..` ends there.
    Inside,
}

/// What is made of a path that is missing: folders, and at its end one of these. Whoever put something there first is let be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// A folder.
    Folder,
    /// A folder; all that are made have this mode, whatever this process' `umask`. Needs the machine's `/proc`.
    FolderOfMode(u32),
    /// An empty file, to mount something on.
    File,
}

impl Held {
    /// What is at `path` in this folder; an empty one is the folder itself. The last name may be a link too.
    ///
    /// # Errors
    /// It is not there, or a link leads where it may not; or this machine has no `openat2`.
    pub(crate) fn find(&self, path: &Path, links: Links) -> io::Result<Self> {
        self.look_up(path, HOLD.difference(OFlags::NOFOLLOW), links).map(Self::from)
    }

    /// What is at `path` in this folder, made where it is missing.
    ///
    /// # Errors
    /// As [`Held::find`]; or it cannot be made: a link to nothing is in its place, or the file system refuses.
    pub(crate) fn make(&self, path: &Path, links: Links, missing: Missing) -> io::Result<Self> {
        let (mut names, mut there) = (Vec::<OsString>::new(), path);
        let mut held = loop {
            match (self.find(there, links), there.parent()) {
                (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                    names.push(there.file_name().ok_or(error)?.to_owned());
                    there = parent;
                }
                (found, _) => break found?,
            }
        };
        while let Some(name) = names.pop() {
            held = match missing {
                Missing::File if names.is_empty() => held.make_file(&name)?,
                Missing::File | Missing::Folder => held.make_folder(&name, None)?,
                Missing::FolderOfMode(mode) => held.make_folder(&name, Some(mode))?,
            };
        }
        Ok(held)
    }

    /// What the file at `path` in this folder says, which somebody else may have put there: no device, no pipe that never ends,
    /// nothing endless.
    ///
    /// # Errors
    /// As [`Held::find`]; or it is no file, has more than `most` bytes, or cannot be read.
    pub(crate) fn read(&self, path: &Path, links: Links, most: u64) -> io::Result<Vec<u8>> {
        all_of(self.look_up(path, READ, links)?.into(), most)
    }

    fn make_folder(&self, name: &OsString, mode: Option<u32>) -> io::Result<Self> {
        let first = mode.map_or(0o755, |_| 0o700);
        let is_ours = match mkdirat(self, name, Mode::from_raw_mode(first)) {
            Err(Errno::EXIST) => false,
            made => made.map(|()| true)?,
        };
        let folder = Self::from(openat(self, name, HOLD | OFlags::DIRECTORY, Mode::empty())?);
        if let Some(mode) = mode.filter(|_| is_ours) {
            folder.set_mode(mode)?;
        }
        Ok(folder)
    }

    fn make_file(&self, name: &OsString) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(self, name, flags, Mode::from_raw_mode(0o644)) {
            Err(Errno::EXIST) => Self::entry(self, name),
            made => Ok(made?.into()),
        }
    }

    #[cfg(target_os = "linux")]
    fn look_up(&self, path: &Path, flags: OFlags, links: Links) -> io::Result<OwnedFd> {
        use rustix::fs::ResolveFlags;
        let bounds = match links {
            Links::Beneath => ResolveFlags::BENEATH,
            Links::Inside => ResolveFlags::IN_ROOT,
        };
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let mut tries = MOST_TRIES;
        loop {
            let resolve = bounds | ResolveFlags::NO_MAGICLINKS;
            match rustix::fs::openat2(self, path, flags, Mode::empty(), resolve) {
                // Something was moved meanwhile: where `..` led cannot be told.
                Err(Errno::AGAIN) if tries > 0 => tries -= 1,
                found => return found.map_err(in_words),
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn look_up(&self, _path: &Path, _flags: OFlags, _links: Links) -> io::Result<OwnedFd> {
        Err(in_words(Errno::NOSYS))
    }
}

/// What the file at a path says that nobody else can change, as [`Held::read`].
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    all_of(openat(CWD, path, READ, Mode::empty())?.into(), most)
}

fn all_of(file: File, most: u64) -> io::Result<Vec<u8>> {
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    if file.take(most + 1).read_to_end(&mut bytes)? as u64 > most {
        return Err(io::Error::other("it is too large"));
    }
    Ok(bytes)
}

fn in_words(error: Errno) -> io::Error {
    match error {
        Errno::XDEV => io::Error::other("it leads out of its folder"),
        Errno::NOSYS => io::Error::new(
            io::ErrorKind::Unsupported,
            "function openat2 not implemented: Linux has it since 5.6",
        ),
        error => error.into(),
    }
}
