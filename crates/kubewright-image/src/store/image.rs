//! What a store says about one of its images.

use serde::Serialize;

use crate::{Config, Digest, Reference, digest::Hasher};

/// An image of a [`Store`](super::Store).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The digest of its configuration: `docker images` calls it IMAGE ID, the CRI `id`.
    pub id: Digest,
    /// What it is called, with tags; there may be none.
    pub references: Vec<Reference>,
    /// What it is called by digest: each of its repositories with the digest that its name stands for there (`imageID` in a
    /// container's status).
    pub repo_digests: Vec<Reference>,
    /// How many bytes it has: its configuration and its layers as they came.
    pub size: u64,
    /// How it is to be run.
    pub config: Config,
    /// Its layers, the lowest first.
    pub layers: Vec<Layer>,
}

/// A layer of an [`Image`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Layer {
    /// The digest of what the store has of it, which may be compressed.
    pub digest: Digest,
    /// The digest of it uncompressed.
    pub diff_id: Digest,
    /// How many bytes the store has of it.
    pub size: u64,
}

impl Image {
    /// What it shares its files with: all images of the same layers (`ChainID` in OCI's `config.md`, but for its form).
    pub(super) fn files(&self) -> Digest {
        let mut hasher = Hasher::new();
        for layer in &self.layers {
            hasher.update(layer.diff_id.to_string().as_bytes());
        }
        hasher.finish()
    }
}
