//! Files that a container may move, replace or link while we look: they are looked up once, beneath a folder that is held, and
//! then held themselves. What was found is never looked up again by its path.
//!
//! Linux does the looking up (`openat2`, since 5.6): it follows the links that somebody put there, and lets none of them lead
//! out. Where that call is missing nothing is looked up, which the error says.

mod held;
mod lookup;
mod remove;
mod walk;

pub(crate) use self::held::Held;
pub(crate) use self::lookup::{Links, Missing, read};
pub use self::remove::remove;
pub(crate) use self::walk::walk;

use rustix::fs::OFlags;

/// How a file is held: what it is does not matter, it is not opened, and a link is the link itself.
#[cfg(target_os = "linux")]
const HOLD: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Where nothing can be held without opening it, nobody is to wait for the other end of a pipe.
#[cfg(not(target_os = "linux"))]
const HOLD: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// How a folder is opened whose entries are read.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests;
