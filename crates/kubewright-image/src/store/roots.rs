//! Unpacked images: `roots/<digest of their layers>/rootfs`.

use std::{
    collections::btree_map::Entry,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::PoisonError,
};

use super::{Image, Store, lock::Lock, make_folder};
use crate::{Digest, Error, error::one_line, unpack::Unpacker};

/// What is locked by those who use an unpacked image, beside its files.
pub(super) const IN_USE: &str = "in-use";

/// The files.
const ROOTFS: &str = "rootfs";

impl Store {
    /// Where the files of an image are: its layers, one on the other. They are unpacked when first asked for, and shared by
    /// all who ask: nobody is to write there. They stay, also when the image is removed, until this store and its clones are
    /// dropped.
    ///
    /// They belong to whom the image says where this user may do that, else to this user. Devices are left out, and so are
    /// extended attributes.
    ///
    /// # Errors
    /// When a layer is not what the image says, wants to leave its folder, or is too large; or the file system refuses.
    pub fn root(&self, image: &Image) -> Result<PathBuf, Error> {
        let files = image.files();
        if let Some(root) = self.hold(files)? {
            return Ok(root);
        }
        let turn = self.roots().join(format!("{}.unpacking", files.hex()));
        make_folder(&self.roots()).map_err(Error::io("make", &self.roots()))?;
        let unpacking = Lock::exclusive(&turn).map_err(Error::io("lock", &turn))?;
        let root = match self.hold(files)? {
            Some(root) => Ok(root),
            None => self.unpack(image, files),
        };
        let _ = fs::remove_file(&turn);
        drop(unpacking);
        root
    }

    pub(super) fn roots(&self) -> PathBuf {
        self.folder().join("roots")
    }

    fn root_of(&self, files: Digest) -> PathBuf {
        self.roots().join(files.hex())
    }

    /// The files of an image, if they are unpacked; they stay from then on.
    fn hold(&self, files: Digest) -> Result<Option<PathBuf>, Error> {
        let mut held = self.shared.held.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = self.root_of(files);
        if let Entry::Vacant(vacant) = held.entry(files) {
            let _lock = self.lock_shared()?;
            if !folder.exists() {
                return Ok(None);
            }
            vacant.insert(Lock::shared(&folder.join(IN_USE)).map_err(Error::io("lock", &folder))?);
        }
        Ok(Some(folder.join(ROOTFS)))
    }

    /// Unpacks the files of an image aside, and moves them to their place when they are whole.
    fn unpack(&self, image: &Image, files: Digest) -> Result<PathBuf, Error> {
        let workspace = self.workspace()?;
        let made = workspace.path();
        let rootfs = made.join(ROOTFS);
        fs::create_dir_all(&rootfs).map_err(Error::io("make", &rootfs))?;
        let mut unpacker = Unpacker::new(rootfs, self.shared.limits);
        for layer in &image.layers {
            let blob = self.open_layer(&layer.digest, image.id)?;
            let unpacked = unpacker.layer(blob, layer.diff_id);
            unpacked.map_err(|reason| Error::Layer {
                layer: layer.digest,
                reason: one_line(&reason.to_string()),
            })?;
        }
        unpacker.finish().map_err(Error::io("finish", &made))?;
        File::create(made.join(IN_USE)).map_err(Error::io("make", &made))?;
        self.place(&made, files)?;
        self.hold(files)?.ok_or(Error::Gone(image.id))
    }

    fn open_layer(&self, layer: &Digest, image: Digest) -> Result<File, Error> {
        let path = self.blobs().join(layer.hex());
        File::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Gone(image),
            _ => Error::io("read", &path)(error),
        })
    }

    /// Moves an unpacked image to its place. Nobody else unpacks it.
    fn place(&self, made: &Path, files: Digest) -> Result<(), Error> {
        let _lock = self.lock()?;
        let place = self.root_of(files);
        fs::rename(made, &place).map_err(Error::io("move an image to", &place))
    }
}
