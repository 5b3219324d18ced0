//! The file of a recording.

use std::{fs::File, io::ErrorKind, path::Path};

use anyhow::anyhow;
use kubewright_cluster::recording::place;

/// Makes a file that was not there, which this user alone can read.
///
/// # Errors
/// When it is there, or the folder cannot be written to.
pub(crate) fn create(path: &Path) -> anyhow::Result<File> {
    place::create_new(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            anyhow!("the recording {} exists: choose another file, or remove it", path.display())
        }
        _ => anyhow!("the recording {} cannot be written: {error}", path.display()),
    })
}

/// A size as people read it.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
