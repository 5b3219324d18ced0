//! What can go wrong with images.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{Digest, ReferenceError};

/// How long what is told may be; names in archives can be longer than all that anybody reads.
const MAX_LINE: usize = 500;

/// Why something was not done. Each is one line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no folder that is the user's own.
    #[error(
        "HOME is not set, so there is no place for images; name one with --image-store or KUBEWRIGHT_IMAGES"
    )]
    NoHome,
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, such as `read`.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What was said.
        source: io::Error,
    },
    /// What was to be loaded is no image, or not a whole one.
    #[error("{0}")]
    Archive(String),
    /// What was to be loaded has several images, and one name was given for it.
    #[error(
        "it holds {0} images, so one name cannot be given to it; load it without a name and see what is in it"
    )]
    SeveralImages(usize),
    /// A layer cannot be unpacked.
    #[error("cannot unpack layer {layer}: {reason}")]
    Layer {
        /// The digest of the layer.
        layer: Digest,
        /// What is wrong with it.
        reason: String,
    },
    /// What the store says to have is not there, or not what it says.
    #[error("the image store is damaged: {0}; remove the image and load it again")]
    Damaged(String),
    /// Somebody removed it in between.
    #[error("image {0} is not in the image store any more")]
    Gone(Digest),
    /// A text that can be no name of an image.
    #[error("{text:?} can be no name of an image: {error}")]
    Name {
        /// The text.
        text: String,
        /// What is wrong with it.
        error: ReferenceError,
    },
    /// The beginning of several images' ids.
    #[error("{text} is the beginning of the ids of {count} images; give more of it")]
    Ambiguous {
        /// What was given.
        text: String,
        /// How many there are.
        count: usize,
    },
}

impl Error {
    /// For `map_err`: the file system refused to do `action` on `path`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// What was to be loaded is none, for this reason.
    pub(crate) fn archive(reason: impl AsRef<str>) -> Self {
        Self::Archive(one_line(reason.as_ref()))
    }
}

/// A text that may speak in the words of an archive, as a line that can be shown on a terminal.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for letter in text.chars().take(MAX_LINE) {
        if letter.is_control() { line.extend(letter.escape_default()) } else { line.push(letter) }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_archive_says_stays_in_its_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m\0 \u{9b}"), "a\\nb\\u{1b}[31m\\u{0} \\u{9b}");
        assert_eq!(one_line(&"x".repeat(10_000)).len(), MAX_LINE);
    }
}
