//! What can go wrong.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why a project is as it was.
#[derive(Debug, Error)]
pub enum Error {
    /// What was asked for makes no sense: the exit status of a command is 2.
    #[error("{0}")]
    Usage(String),
    /// What was asked for cannot be done with the project as it is.
    #[error("{0}")]
    Refused(String),
    /// The `PROJECT` file cannot be used.
    #[error("PROJECT cannot be used: {0}")]
    Project(String),
    /// The machine did not do what it was asked to.
    #[error("cannot {what} {}: {error}{}", path.display(), remedy(error))]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the machine says.
        #[source]
        error: io::Error,
    },
}

impl Error {
    /// The exit status of a command that ends with it: 2 when its user has to say something else, 1 otherwise.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Refused(_) | Self::Project(_) | Self::Io { .. } => 1,
        }
    }

    /// What is told of an I/O error.
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { what, path, error }
    }
}

/// What to do about an error of the machine, where that can be said.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            " (make it writable, and run the command again)"
        }
        io::ErrorKind::StorageFull => " (make room, and run the command again)",
        _ => "",
    }
}
