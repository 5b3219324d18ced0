//! Why a store cannot be opened.

use std::io;
use std::path::PathBuf;

use crate::Revision;

/// Why a store on a disk cannot be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("{} is in use by another process{}", path.display(), holder(by))]
    Busy {
        /// The folder.
        path: PathBuf,
        /// The id of the process; empty when it is not known.
        by: String,
    },
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A file does not hold what was written to it. What is in it cannot be trusted, so nothing of it is served.
    #[error("{} is damaged at byte {at}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        at: u64,
        /// How that is known.
        why: &'static str,
    },
    /// A file was written by another version of this program.
    #[error("{} has format version {found}, and this program knows version {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// A file is not one of ours, or its first bytes are damaged.
    #[error("{} is no file of a kubewright store", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A file is not there that was.
    #[error("{} is missing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The newest commits are not there, though they were acknowledged: the end of the log was cut off from outside, or the
    /// files are older ones than the mark beside them.
    #[error(
        "{} ends at revision {found}, and commits up to revision {acknowledged} were acknowledged: {} are lost; removing {} \
         goes on without them",
        path.display(), acknowledged.0 - found.0, mark.display()
    )]
    Lost {
        /// The last log.
        path: PathBuf,
        /// The last revision in it.
        found: Revision,
        /// The last revision that was acknowledged, as far as it is known.
        acknowledged: Revision,
        /// The file that says so.
        mark: PathBuf,
    },
    /// A stored value makes no sense to the store's owner.
    #[error("the value of {key} in {collection} cannot be read: {why}")]
    Value {
        /// Its collection.
        collection: String,
        /// Its key.
        key: String,
        /// What its owner says.
        why: String,
    },
}

fn holder(by: &str) -> String {
    if by.is_empty() { String::new() } else { format!(" (process {by})") }
}
