//! Removes what no image needs any more.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Store,
    index::Entries,
    lock::Lock,
    roots,
    workspace::{self, Workspace},
};
use crate::{Digest, Error, oci::Manifest};

impl Store {
    /// Takes what no image of the list needs out of its place. It is gone when what this returns is dropped: large trees are
    /// removed after the store is unlocked. The caller has the right to change the store.
    ///
    /// As long as an image cannot be read, what it needs is not known, and nothing is removed but what processes left that
    /// ended.
    pub(super) fn sweep(&self, entries: &Entries) -> Result<Vec<Workspace>, Error> {
        let incoming = self.incoming();
        let mut unused = workspace::abandoned(&incoming).map_err(Error::io("clean up", &incoming))?;
        let (mut blobs, mut roots) = (BTreeSet::new(), BTreeSet::new());
        for descriptor in entries.manifests() {
            let (Ok(image), Ok(manifest)) =
                (self.image(entries, descriptor), self.document::<Manifest>(descriptor.digest))
            else {
                return Ok(unused);
            };
            blobs.extend([descriptor.digest, manifest.config.digest]);
            blobs.extend(manifest.layers.iter().map(|layer| layer.digest));
            roots.insert(image.files());
        }
        let workspace = Workspace::new(&incoming).map_err(Error::io("make a folder in", &incoming))?;
        for path in others(&self.blobs(), &blobs)? {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
        for path in others(&self.roots(), &roots)? {
            let in_use = Lock::try_exclusive(&path.join(roots::IN_USE)).map_err(Error::io("lock", &path))?;
            if in_use.is_some() {
                fs::rename(&path, workspace.path()).map_err(Error::io("remove", &path))?;
            }
        }
        unused.push(workspace);
        Ok(unused)
    }
}

/// What is in a folder under the names of other digests than these.
fn others(folder: &Path, kept: &BTreeSet<Digest>) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(Error::io("read", folder))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("read", folder))?;
        let digest = entry.file_name().to_str().and_then(Digest::from_hex);
        found.extend(digest.filter(|digest| !kept.contains(digest)).map(|_| entry.path()));
    }
    Ok(found)
}
