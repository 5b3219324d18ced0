//! What containers write, kept in CRI's format of log files and read back as the kubelet does
//! (`k8s.io/cri-api`, `k8s.io/cri-client/pkg/logs`).

mod filter;
mod read;
mod tail;
mod write;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

pub use read::read;
pub use write::Growing;
pub(crate) use write::Log;

/// One of the two that a program writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// What log files call it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// What somebody wants to read of a log (`PodLogOptions`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether to wait for what is written later, until the container has ended.
    pub follow: bool,
    /// How many of the last entries.
    pub tail: Option<u64>,
    /// Nothing older than that.
    pub since: Option<Timestamp>,
    /// Whether every line begins with its time.
    pub timestamps: bool,
    /// The most bytes.
    pub limit: Option<u64>,
    /// One of the two streams instead of both.
    pub stream: Option<Stream>,
}

/// The longest line that is kept in one piece, as containerd's `max_container_log_line_size`.
pub(crate) const LONGEST_LINE: usize = 16 << 10;

/// The kubelet's `containerLogMaxSize` and `containerLogMaxFiles`.
const LARGEST_FILE: u64 = 10 << 20;
const MOST_FILES: u64 = 5;

/// Removes a log and what was rotated out of it.
///
/// # Errors
/// Those of the file system, but that there is no such file.
pub fn remove(path: &Path) -> io::Result<()> {
    for age in 0..MOST_FILES {
        match std::fs::remove_file(aged(path, age)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// What a log is called after so many rotations.
fn aged(path: &Path, age: u64) -> PathBuf {
    if age == 0 {
        return path.to_owned();
    }
    let mut name = OsString::from(path);
    name.push(format!(".{age}"));
    PathBuf::from(name)
}
