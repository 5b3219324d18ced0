//! The images of this machine, in a folder. It is an OCI image layout, and beside that:
//!
//! - `lock`: held for reading, or for changing what is there; the latter for moments only;
//! - `incoming/`: what is being made, a [`Workspace`] for each who makes it. It is moved to its place when it is whole, so that
//!   whoever ends in the middle leaves nothing but a folder there, which the next one removes;
//! - `roots/`: unpacked images.

mod image;
mod index;
mod lock;
pub(crate) mod removal;
mod roots;
mod select;
mod sweep;
mod workspace;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs::{self, DirBuilder, File},
    io::{self, Read},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use serde::de::DeserializeOwned;

pub use self::image::{Image, Layer};
pub(crate) use self::workspace::Workspace;
use self::{index::Entries, lock::Lock};
use crate::{
    Digest, Error, Reference,
    archive::{self, Source},
    limits::Limits,
    oci::{ConfigFile, Descriptor, MAX_DOCUMENT, Manifest},
};

/// The images of this machine, in a folder. Several processes may use one at the same time; clones are the same store.
///
/// A process that ends in the middle of something leaves a store that is as it was before.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    limits: Limits,
    /// The unpacked images that were asked for: nobody removes these as long as this store is in use.
    held: Mutex<BTreeMap<Digest, Lock>>,
}

/// An image that was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The image.
    pub image: Image,
    /// What it was called by what it was loaded from.
    pub names: Vec<Reference>,
}

/// What was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The names that no image has any more.
    pub names: Vec<Reference>,
    /// The image, if it had no other name.
    pub image: Option<Digest>,
}

impl Store {
    /// Where a user's images are unless told otherwise: `$KUBEWRIGHT_IMAGES`, else `$XDG_DATA_HOME/kubewright/images`, else
    /// `~/.local/share/kubewright/images`.
    ///
    /// # Errors
    /// When the environment does not even name a home.
    pub fn default_path() -> Result<PathBuf, Error> {
        default_path(|name| std::env::var_os(name)).ok_or(Error::NoHome)
    }

    /// The store in this folder, which is made where it is missing; only this user may read what it is made of.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Self::with_limits(folder, Limits::default())
    }

    /// Like [`Store::open`]; what is loaded and unpacked may be as large as this.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn with_limits(folder: &Path, limits: Limits) -> Result<Self, Error> {
        make_folder(folder).map_err(Error::io("make the image store", folder))?;
        Ok(Self { shared: Arc::new(Shared { folder: folder.to_owned(), limits, held: Mutex::default() }) })
    }

    /// Loads the images of an OCI image layout or of what `docker save` wrote, as folder or archive, plain or compressed by
    /// gzip or zstd. Of an image for several machines, the one for this machine is taken. They are called what it says there,
    /// or what `name` says where there is one image only; images that had these names lose them, and go with their last one.
    ///
    /// # Errors
    /// When there is no image for this machine, or something is missing, damaged, or too large. Nothing is loaded then.
    pub fn load(&self, source: Source<'_>, name: Option<&Reference>) -> Result<Vec<Loaded>, Error> {
        let workspace = self.workspace()?;
        let mut found = archive::read(source, &workspace, self.shared.limits)?;
        if let Some(name) = name {
            let [image] = &mut found.images[..] else { return Err(Error::SeveralImages(found.images.len())) };
            image.names = vec![name.clone()];
        }
        let lock = self.lock()?;
        self.adopt(&found.blobs)?;
        let mut entries = Entries::read(self.folder())?;
        for image in &found.images {
            let names: BTreeSet<Reference> = image.names.iter().map(Reference::without_digest).collect();
            entries.insert(&names, image.index.unwrap_or(image.manifest.digest), &image.manifest);
        }
        entries.write(self.folder())?;
        let loaded = found
            .images
            .into_iter()
            .map(|image| Ok(Loaded { image: self.image(&entries, &image.manifest)?, names: image.names }));
        let loaded = loaded.collect::<Result<_, Error>>()?;
        let unused = self.sweep(&entries)?;
        drop(lock);
        drop(unused);
        Ok(loaded)
    }

    /// The image of this name: by digest where the reference has one, else by tag.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn get(&self, reference: &Reference) -> Result<Option<Image>, Error> {
        let _lock = self.lock_shared()?;
        let entries = Entries::read(self.folder())?;
        let entry = entries.0.iter().find(|entry| entry.is(reference));
        entry.map(|entry| self.image(&entries, &entry.manifest)).transpose()
    }

    /// The digest of the manifest of the image of this name, as [`Store::get`] finds it: of the one for this machine.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn manifest(&self, reference: &Reference) -> Result<Option<Digest>, Error> {
        let _lock = self.lock_shared()?;
        let entries = Entries::read(self.folder())?;
        Ok(entries.0.iter().find(|entry| entry.is(reference)).map(|entry| entry.manifest.digest))
    }

    /// The image that somebody means: by its id or that of its manifest, by its name, or by the beginning of its id.
    ///
    /// # Errors
    /// When the text is no name, several ids begin with it, or the store cannot be read.
    pub fn find(&self, text: &str) -> Result<Option<Image>, Error> {
        let _lock = self.lock_shared()?;
        let entries = Entries::read(self.folder())?;
        let selected = self.select(&entries, text)?;
        selected.first().map(|entry| self.image(&entries, &entry.manifest)).transpose()
    }

    /// All images, by name; those without one are the last.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(&self) -> Result<Vec<Image>, Error> {
        let _lock = self.lock_shared()?;
        let entries = Entries::read(self.folder())?;
        entries.manifests().into_iter().map(|manifest| self.image(&entries, manifest)).collect()
    }

    /// Takes a name from an image, and removes the image with its last one; an id (see [`Store::find`]) stands for all of an
    /// image's names. Unpacked files that somebody uses ([`Store::root`]) stay as long as he does. `None` is for no such image.
    ///
    /// # Errors
    /// When the text is no name, several ids begin with it, or the store cannot be changed.
    pub fn remove(&self, text: &str) -> Result<Option<Removed>, Error> {
        let lock = self.lock()?;
        let mut entries = Entries::read(self.folder())?;
        let selected = self.select(&entries, text)?;
        let Some(manifest) = selected.first().map(|entry| entry.manifest.digest) else { return Ok(None) };
        let id = self.id(manifest).ok();
        entries.0.retain(|entry| !selected.contains(entry));
        entries.write(self.folder())?;
        let is_left = entries.0.iter().any(|entry| entry.manifest.digest == manifest);
        let unused = self.sweep(&entries)?;
        drop(lock);
        drop(unused);
        let names = selected.into_iter().filter_map(|entry| entry.name).collect();
        Ok(Some(Removed { names, image: id.filter(|_| !is_left) }))
    }

    /// How large what is loaded may be.
    #[cfg(feature = "registry")]
    pub(crate) fn limits(&self) -> Limits {
        self.shared.limits
    }

    /// The folder, which is an OCI image layout.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// The right to change the store; for moments only.
    fn lock(&self) -> Result<Lock, Error> {
        let path = self.folder().join("lock");
        Lock::exclusive(&path).map_err(Error::io("lock the image store by", &path))
    }

    /// The right to read the store while nobody changes it.
    fn lock_shared(&self) -> Result<Lock, Error> {
        let path = self.folder().join("lock");
        Lock::shared(&path).map_err(Error::io("lock the image store by", &path))
    }

    /// A place to make something.
    pub(crate) fn workspace(&self) -> Result<Workspace, Error> {
        let _lock = self.lock()?;
        let parent = self.incoming();
        Workspace::new(&parent).map_err(Error::io("make a folder in", &parent))
    }

    fn incoming(&self) -> PathBuf {
        self.folder().join("incoming")
    }

    fn blobs(&self) -> PathBuf {
        self.folder().join("blobs/sha256")
    }

    /// Moves blobs to their places, over what is there: that is the same, or damaged.
    fn adopt(&self, blobs: &BTreeMap<Digest, PathBuf>) -> Result<(), Error> {
        let folder = self.blobs();
        let adopted = fs::create_dir_all(&folder).and_then(|()| {
            blobs.iter().try_for_each(|(digest, path)| fs::rename(path, folder.join(digest.hex())))?;
            File::open(&folder)?.sync_all()
        });
        adopted.map_err(Error::io("put blobs into", &folder))
    }

    /// What the store says of the image with this manifest.
    fn image(&self, entries: &Entries, manifest: &Descriptor) -> Result<Image, Error> {
        let entries = || entries.0.iter().filter(|entry| entry.manifest.digest == manifest.digest);
        let Manifest { config: descriptor, layers, .. } = self.document(manifest.digest)?;
        let config: ConfigFile = self.document(descriptor.digest)?;
        let size = layers.iter().fold(descriptor.size, |size, layer| size.saturating_add(layer.size));
        let layers = layers.into_iter().zip(config.diff_ids());
        let layers = layers
            .map(|(layer, diff_id)| Layer { digest: layer.digest, diff_id: *diff_id, size: layer.size })
            .collect();
        let names = || entries().filter_map(|entry| Some((entry.name.as_ref()?, entry.target)));
        let references: BTreeSet<Reference> =
            names().map(|(name, _)| name.clone()).filter(|name| name.tag().is_some()).collect();
        let repo_digests: BTreeSet<Reference> =
            names().map(|(name, target)| name.by_digest(target)).collect();
        Ok(Image {
            id: descriptor.digest,
            references: references.into_iter().collect(),
            repo_digests: repo_digests.into_iter().collect(),
            size,
            config: config.into_config(),
            layers,
        })
    }

    /// The id of the image with this manifest.
    fn id(&self, manifest: Digest) -> Result<Digest, Error> {
        self.document::<Manifest>(manifest).map(|manifest| manifest.config.digest)
    }

    /// A document of the store, checked.
    fn document<T: DeserializeOwned>(&self, digest: Digest) -> Result<T, Error> {
        let path = self.blobs().join(digest.hex());
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Damaged(format!("{} is missing", path.display())));
            }
            file => file.map_err(Error::io("read", &path))?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_DOCUMENT).read_to_end(&mut bytes).map_err(Error::io("read", &path))?;
        if Digest::of(&bytes) != digest {
            return Err(Error::Damaged(format!("{} is not what it was", path.display())));
        }
        serde_json::from_slice(&bytes).map_err(|error| Error::Damaged(format!("{}: {error}", path.display())))
    }
}

/// Makes a folder, where it is missing, that only this user sees into: unpacked files may have any mode, also one that runs
/// them as their owner.
fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// [`Store::default_path`] of an environment. What is empty is not set; a relative `$XDG_DATA_HOME` does not count (XDG Base
/// Directory Specification).
fn default_path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = || folder("XDG_DATA_HOME").filter(|data| data.is_absolute());
    let home = || folder("HOME").map(|home| home.join(".local/share"));
    folder("KUBEWRIGHT_IMAGES").or_else(|| Some(data().or_else(home)?.join("kubewright/images")))
}
