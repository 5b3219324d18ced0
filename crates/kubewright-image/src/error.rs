//! What can go wrong with images.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{Digest, ReferenceError};

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
}
