//! What `kubewright image load` is given: an OCI image layout or what `docker save` writes, as a folder or an archive.

mod blobs;
mod docker;
mod files;
mod layout;

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

#[cfg(feature = "registry")]
pub(crate) use self::layout::best;
use self::{blobs::Blobs, files::Files};
use crate::{
    Digest, Error, Reference,
    limits::Limits,
    oci::{Descriptor, INDEX_FILE, LAYOUT_FILE},
    store::Workspace,
};

/// Where images are loaded from.
pub enum Source<'a> {
    /// A file or folder.
    Path(&'a Path),
    /// An archive that comes in.
    Stream(&'a mut dyn Read),
}

/// What was found, all of it checked and in files of its own.
#[derive(Debug)]
pub(crate) struct ArchiveImages {
    /// The images for this machine.
    pub(crate) images: Vec<FoundImage>,
    /// Their manifests, configurations and layers.
    pub(crate) blobs: BTreeMap<Digest, PathBuf>,
}

/// An image that was found.
#[derive(Debug)]
pub(crate) struct FoundImage {
    /// What it is called there.
    pub(crate) names: Vec<Reference>,
    /// Its manifest.
    pub(crate) manifest: Descriptor,
    /// What its name stands for there, where that is a list of builds.
    pub(crate) index: Option<Digest>,
}

/// Reads all the images of a source, and copies what they consist of into the workspace.
///
/// # Errors
/// When there is none, or something of one is missing or is not what it is said to be.
pub(crate) fn read(
    source: Source<'_>,
    workspace: &Workspace,
    limits: Limits,
) -> Result<ArchiveImages, Error> {
    let files = match source {
        Source::Path(path) if path.is_dir() => Files::Folder(path.to_owned()),
        Source::Path(path) => {
            let file = fs::File::open(path).map_err(Error::io("read", path))?;
            files::unpack(file, workspace, limits)?
        }
        Source::Stream(reader) => files::unpack(reader, workspace, limits)?,
    };
    let mut blobs = Blobs::new(&files, workspace);
    let images = if files.has(INDEX_FILE) && files.has(LAYOUT_FILE) {
        layout::images(&mut blobs)?
    } else if files.has(docker::MANIFEST_FILE) {
        docker::images(&mut blobs)?
    } else {
        let told = "it is no image: neither an OCI image layout (oci-layout, index.json) nor what docker save writes (manifest.json)";
        return Err(Error::archive(told));
    };
    if images.is_empty() {
        return Err(Error::archive("it holds no image"));
    }
    Ok(ArchiveImages { images, blobs: blobs.taken() })
}

/// Reads a name that an archive gives to an image.
fn name(text: &str) -> Result<Reference, Error> {
    let shown: String = text.chars().take(300).collect();
    Reference::parse(text).map_err(|error| Error::archive(format!("it calls an image {shown:?}: {error}")))
}
