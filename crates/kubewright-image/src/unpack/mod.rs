//! The files of an image: its layers, one on the other (OCI's `layer.md`).

mod apply;
mod path;
mod tree;

#[cfg(test)]
mod tests;

use std::{
    io::{self, Read},
    path::PathBuf,
};

pub use self::path::resolve;
use self::{apply::Changes, tree::Tree};
use crate::{
    Digest,
    compression::uncompressed,
    digest::Hasher,
    limits::Limits,
    tarball::{self, Budget},
};

/// How many of the entries that are left out are named.
const TOLD: usize = 5;

/// Unpacks layers into a folder that nobody else writes to.
pub(crate) struct Unpacker {
    tree: Tree,
    budget: Budget,
    left_out: Vec<PathBuf>,
}

impl Unpacker {
    /// Unpacks into this empty folder.
    pub(crate) fn new(root: PathBuf, limits: Limits) -> Self {
        Self { tree: Tree::new(root), budget: Budget::new(limits), left_out: Vec::new() }
    }

    /// Unpacks the next layer, which has this digest uncompressed.
    ///
    /// # Errors
    /// When it has another digest, is no archive, leads out of the folder, or is too large; or the file system refuses. What
    /// was unpacked until then stays.
    pub(crate) fn layer(&mut self, layer: impl Read, diff_id: Digest) -> io::Result<()> {
        let mut content = Hashed { inner: uncompressed(layer)?, hasher: Hasher::new() };
        let mut changes = Changes::new(&mut self.tree);
        tarball::read(&mut content, &mut self.budget, |entry| changes.apply(entry))?;
        self.left_out.extend(changes.left_out());
        let digest = content.hasher.finish();
        if digest != diff_id {
            return Err(io::Error::other(format!("its content is {digest}, and should be {diff_id}")));
        }
        Ok(())
    }

    /// Gives folders the modes that they should have, once nothing more is to be put into them.
    pub(crate) fn finish(self) -> io::Result<()> {
        if !self.left_out.is_empty() {
            let names: Vec<String> =
                self.left_out.iter().take(TOLD).map(|path| path.display().to_string()).collect();
            let more = if self.left_out.len() > TOLD { ", ..." } else { "" };
            tracing::warn!(
                "{} devices and pipes of the image are not unpacked: {}{more}",
                self.left_out.len(),
                names.join(", ")
            );
        }
        self.tree.finish()
    }
}

/// Content whose digest is made while it is read.
struct Hashed<R> {
    inner: R,
    hasher: Hasher,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}
