//! Removes what containers leave behind, however deep it is and whatever its modes.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, renameat, unlinkat};
use rustix::io::Errno;

use super::Held;
use super::walk::is_self;

/// How many folders below each other are held at a time; what lies deeper is moved up first.
const HELD: usize = 64;

/// Removes a file or folder with all that is in it, also what a container made unreadable; nobody else can change the path
/// itself. Links are removed, not followed, whoever puts them there meanwhile. What is not there is removed.
///
/// Takes neither a stack nor descriptors by the depth of the folder, as `std::fs::remove_dir_all` does: a container may have made
/// it as deep as the disk lasts.
///
/// # Errors
/// The first of the file system; as much as can be is removed.
pub fn remove(path: &Path) -> io::Result<()> {
    remove_and_count(path).map(drop)
}

/// As [`remove`]; how many folders lay so deep that they were moved up first.
pub(super) fn remove_and_count(path: &Path) -> io::Result<u64> {
    let top = match Held::entry(CWD, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        held => held?,
    };
    if !top.is_folder()? {
        return std::fs::remove_file(path).map(|()| 0);
    }
    let mut moved = 0;
    loop {
        let before = moved;
        empty(&top, &mut moved)?;
        match std::fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && moved > before => {}
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => return Ok(moved),
        }
    }
}

/// A folder that is being emptied.
struct Open {
    /// What it is called in the one that it is in.
    name: CString,
    entries: Dir,
}

impl Open {
    fn new(folder: &Held, name: CString) -> io::Result<Self> {
        // A container may have locked even itself out. Where it is not ours to open, what follows tells.
        let _ = folder.set_mode(0o700);
        Ok(Self { name, entries: folder.entries()? })
    }
}

/// Removes all that is in a folder, but what lies more than [`HELD`] folders deep: that is moved into `top` itself, under
/// numbers from `moved` on.
fn empty(top: &Held, moved: &mut u64) -> io::Result<()> {
    let mut failed = Ok(());
    let mut open = vec![Open::new(top, CString::default())?];
    while let Some(depth) = open.len().checked_sub(1) {
        let Some(entry) = open[depth].entries.next() else {
            let done = open.pop();
            if let (Some(done), Some(parent)) = (done, open.last()) {
                failed = failed.and(unlinkat(parent.entries.fd()?, &done.name, AtFlags::REMOVEDIR));
            }
            continue;
        };
        let folder = open[depth].entries.fd()?;
        let step = match entry {
            Ok(entry) if is_self(entry.file_name()) => Ok(None),
            Ok(entry) if open.len() == HELD => lift(top, folder, entry.file_name(), moved).map(|()| None),
            Ok(entry) => remove_or_open(folder, entry.file_name()),
            Err(error) => Err(error.into()),
        };
        match step {
            Ok(deeper) => open.extend(deeper),
            Err(error) => failed = failed.and(Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))),
        }
    }
    Ok(failed?)
}

/// Removes an entry of a folder, or opens it where it is a folder that is not empty.
fn remove_or_open(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<Option<Open>> {
    if remove_one(folder, name)? {
        return Ok(None);
    }
    Open::new(&Held::entry(folder, name)?, name.to_owned()).map(Some)
}

/// Removes an entry of a folder; whether it is gone, which a folder that is not empty is not.
fn remove_one(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
    let unlinked = match unlinkat(folder, name, AtFlags::empty()) {
        // By POSIX, and by Linux.
        Err(error @ (Errno::PERM | Errno::ISDIR)) => error,
        Err(Errno::NOENT) => return Ok(true),
        removed => return Ok(removed.map(|()| true)?),
    };
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTDIR) => Err(unlinked.into()),
        Err(Errno::NOENT) => Ok(true),
        removed => Ok(removed.is_ok()),
    }
}

/// Removes an entry of a folder, or moves it into `top` under the next number that is free.
fn lift(top: &Held, folder: BorrowedFd<'_>, name: &CStr, moved: &mut u64) -> io::Result<()> {
    if remove_one(folder, name)? {
        return Ok(());
    }
    // A folder takes note of where it is, for which its owner has to be let in.
    let _ = Held::entry(folder, name)?.set_mode(0o700);
    loop {
        let number = format!("{moved}");
        *moved += 1;
        match renameat(folder, name, top, &number) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            lifted => return Ok(lifted?),
        }
    }
}
