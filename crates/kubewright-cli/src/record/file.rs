//! The file of a recording, and the key under which secrets in it are hashed.

use std::{
    fs::{File, OpenOptions},
    io::ErrorKind,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, anyhow};
use kubewright_cluster::Secret;
use kubewright_recording::{FieldPath, Redactor};

/// Makes a file that was not there, which this user alone can read.
///
/// # Errors
/// When it is there, or the folder cannot be written to.
pub(crate) fn create(path: &Path) -> anyhow::Result<File> {
    let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
    opened.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            anyhow!("the recording {} exists: choose another file, or remove it", path.display())
        }
        _ => anyhow!("the recording {} cannot be written: {error}", path.display()),
    })
}

/// What hashes secrets, under a key that is gone with this program.
///
/// # Errors
/// When the machine gives no entropy.
pub(crate) fn redactor(secrets: bool, paths: Vec<FieldPath>) -> anyhow::Result<Redactor> {
    let key = Secret::random().ok().context("the machine gives no entropy for a key")?;
    Ok(Redactor::new(key.reveal().as_bytes(), secrets, paths))
}

/// A size as people read it.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
