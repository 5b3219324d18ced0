//! Locks on files, which the system releases when their process ends, however it ends.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

/// A lock that is held.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until nobody else has it in any way.
    pub(super) fn exclusive(path: &Path) -> io::Result<Self> {
        Self::take(path, File::lock)
    }

    /// Waits until nobody else has it for himself.
    pub(super) fn shared(path: &Path) -> io::Result<Self> {
        Self::take(path, File::lock_shared)
    }

    /// Takes it if nobody else has it in any way.
    pub(super) fn try_exclusive(path: &Path) -> io::Result<Option<Self>> {
        match Self::take(path, |file| file.try_lock().map_err(io::Error::from)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            taken => taken.map(Some),
        }
    }

    /// Locks the file of this name, also when it is removed and made anew while somebody waits for it.
    fn take(path: &Path, lock: impl Fn(&File) -> io::Result<()>) -> io::Result<Self> {
        loop {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            lock(&file)?;
            let locked = file.metadata()?;
            match path.metadata() {
                Ok(named) if (named.dev(), named.ino()) == (locked.dev(), locked.ino()) => {
                    return Ok(Self { _file: file });
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
}
