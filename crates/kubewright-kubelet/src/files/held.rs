//! A file or folder that is held.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat, Uid, fstat, openat};

use super::{FOLDER, HOLD};

/// A file or folder that is held: it stays the same whatever somebody puts where it was found.
#[derive(Debug)]
pub(crate) struct Held(OwnedFd);

impl Held {
    /// What is at a path that nobody else can change; links in it are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(openat(CWD, path, HOLD.difference(OFlags::NOFOLLOW), Mode::empty())?))
    }

    /// What has this name in the folder, and be it a link.
    pub(crate) fn entry(folder: impl AsFd, name: impl rustix::path::Arg) -> io::Result<Self> {
        Ok(Self(openat(folder, name, HOLD, Mode::empty())?))
    }

    /// What it is, and whose.
    pub(crate) fn stat(&self) -> io::Result<Stat> {
        Ok(fstat(&self.0)?)
    }

    /// Whether it is a folder.
    pub(crate) fn is_folder(&self) -> io::Result<bool> {
        Ok(FileType::from_raw_mode(self.stat()?.st_mode) == FileType::Directory)
    }

    /// The entries of this folder.
    pub(crate) fn entries(&self) -> io::Result<Dir> {
        Ok(Dir::new(openat(&self.0, c".", FOLDER, Mode::empty())?)?)
    }

    /// Gives it to a user, a group, or both.
    pub(crate) fn give(&self, user: Option<u32>, group: Option<u32>) -> io::Result<()> {
        let (user, group) = (user.map(Uid::from_raw), group.map(Gid::from_raw));
        Ok(rustix::fs::chownat(&self.0, c"", user, group, AtFlags::EMPTY_PATH)?)
    }

    /// Sets its mode. A link has none.
    #[cfg(target_os = "linux")]
    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        use std::os::fd::AsRawFd as _;
        if FileType::from_raw_mode(self.stat()?.st_mode) == FileType::Symlink {
            return Err(rustix::io::Errno::OPNOTSUPP.into());
        }
        // By number, since what is only held has no modes to the calls that take a descriptor (but to those of Linux 6.6).
        let number = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        Ok(rustix::fs::chmod(number, Mode::from_raw_mode(mode & 0o7777))?)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(&self.0, Mode::from_raw_mode(mode as rustix::fs::RawMode & 0o7777))?)
    }
}

impl From<OwnedFd> for Held {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
