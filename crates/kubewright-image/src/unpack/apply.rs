//! A layer: files that are put over those of the layers below, and whiteouts, which take some of these away.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use tar::{Entry, EntryType};

use super::{
    path::entry_names,
    tree::{Attributes, Tree},
};

/// What the name of a whiteout begins with, before the name of what it takes away.
const WHITEOUT: &[u8] = b".wh.";

/// The whiteout that takes away all that the layers below have in its folder.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Other names that begin like this are notes that AUFS made for itself.
const NOTE: &[u8] = b".wh..wh.";

/// The changes of one layer.
pub(super) struct Changes<'a> {
    tree: &'a mut Tree,
    /// What this layer brought: its whiteouts do not take that away.
    brought: BTreeSet<PathBuf>,
    left_out: Vec<PathBuf>,
}

impl<'a> Changes<'a> {
    pub(super) fn new(tree: &'a mut Tree) -> Self {
        Self { tree, brought: BTreeSet::new(), left_out: Vec::new() }
    }

    /// The devices and pipes of the layer: only root may make these, and a container has its own.
    pub(super) fn left_out(self) -> Vec<PathBuf> {
        self.left_out
    }

    /// Makes the change that an entry of the layer is.
    ///
    /// # Errors
    /// When it leads out of the tree, is of an unknown kind, or the file system refuses.
    pub(super) fn apply<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> io::Result<()> {
        let path = entry.path_bytes().into_owned();
        let names = entry_names(&path)?;
        let applied = match names.last().map(|name| name.as_bytes()) {
            Some(OPAQUE) => self.whiteout_folder(&names),
            Some(name) if name.starts_with(NOTE) => Ok(()),
            Some(name) if name.starts_with(WHITEOUT) => self.whiteout(&names, &name[WHITEOUT.len()..]),
            _ => self.put(entry, &names, path.ends_with(b"/")),
        };
        applied.map_err(|error| {
            let shown: String = String::from_utf8_lossy(&path).chars().take(200).collect();
            io::Error::new(error.kind(), format!("{shown}: {error}"))
        })
    }

    /// Takes away what layers below have in a folder.
    fn whiteout_folder(&mut self, names: &[OsString]) -> io::Result<()> {
        match self.tree.existing(names)?.as_deref().and_then(Path::parent) {
            Some(folder) => self.tree.empty(folder, &self.brought).map(drop),
            None => Ok(()),
        }
    }

    /// Takes away what layers below have by this name.
    fn whiteout(&mut self, names: &[OsString], name: &[u8]) -> io::Result<()> {
        if matches!(name, b"" | b"." | b"..") {
            return Err(io::Error::other("it is a whiteout of no file"));
        }
        match self.tree.existing(names)? {
            Some(path) => {
                self.tree.remove(&path.with_file_name(OsStr::from_bytes(name)), &self.brought).map(drop)
            }
            None => Ok(()),
        }
    }

    /// Puts a file in its place.
    fn put<R: Read>(
        &mut self,
        entry: &mut Entry<'_, R>,
        names: &[OsString],
        is_folder: bool,
    ) -> io::Result<()> {
        let attributes = attributes(entry)?;
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::Char | EntryType::Block | EntryType::Fifo) {
            self.left_out.push(names.iter().collect());
            return Ok(());
        }
        let path = self.tree.place(names)?;
        match kind {
            EntryType::Directory => self.tree.folder(&path, attributes)?,
            // Archives of the old form tell folders by their names.
            EntryType::Regular if is_folder => self.tree.folder(&path, attributes)?,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.tree.file(&path, attributes, entry)?;
            }
            EntryType::Symlink => {
                let target = target(entry)?;
                self.tree.symlink(&path, attributes, Path::new(OsStr::from_bytes(&target)))?;
            }
            EntryType::Link => {
                let target = self.linked(&target(entry)?)?;
                self.tree.hard_link(&path, &target)?;
            }
            other => {
                return Err(io::Error::other(format!("it is of the unknown kind {:?}", other.as_byte())));
            }
        }
        self.brought.insert(path);
        Ok(())
    }

    /// The file that a hard link is to be another name of.
    fn linked(&self, target: &[u8]) -> io::Result<PathBuf> {
        let path = self.tree.existing(&entry_names(target)?)?;
        let file = path.filter(|path| path.symlink_metadata().is_ok_and(|there| !there.is_dir()));
        file.ok_or_else(|| {
            let shown: String = String::from_utf8_lossy(target).chars().take(200).collect();
            io::Error::other(format!("it is a link to {shown:?}, which is no file"))
        })
    }
}

/// What a link leads to.
fn target<R: Read>(entry: &Entry<'_, R>) -> io::Result<Vec<u8>> {
    let target = entry.link_name_bytes().filter(|target| !target.is_empty());
    target.map(Vec::from).ok_or_else(|| io::Error::other("it is a link to nothing"))
}

/// What the header says; nothing is zero there, as in Go's reader.
fn attributes<R: Read>(entry: &Entry<'_, R>) -> io::Result<Attributes> {
    let header = entry.header();
    let id =
        |id: u64| u32::try_from(id).map_err(|_| io::Error::other(format!("its owner {id} is out of range")));
    Ok(Attributes {
        mode: header.mode()?,
        uid: id(header.uid().unwrap_or_default())?,
        gid: id(header.gid().unwrap_or_default())?,
        modified: header.mtime().unwrap_or_default(),
    })
}
