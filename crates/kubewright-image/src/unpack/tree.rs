//! The tree of files that layers are put into.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, ErrorKind, Read},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, lchown, symlink},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::path::{self, MAX_DEPTH};

/// What an archive says of a file beside its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Seconds since 1970.
    pub(super) modified: u64,
}

impl Attributes {
    /// Those of folders that no archive speaks of.
    const IMPLIED: Self = Self { mode: 0o755, uid: 0, gid: 0, modified: 0 };

    /// Gives the file to whom it should belong. Only root may; and where root's ids are mapped, not all ids are there.
    fn give(&self, path: &Path) -> io::Result<()> {
        match lchown(path, Some(self.uid), Some(self.gid)) {
            Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) => {
                Ok(())
            }
            given => given,
        }
    }

    fn permissions(&self) -> Permissions {
        Permissions::from_mode(self.mode & 0o7777)
    }

    fn modified(&self) -> Option<SystemTime> {
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(self.modified))
    }
}

/// A tree of files, whose folders are open to this user until it is finished.
pub(super) struct Tree {
    root: PathBuf,
    /// What the folders are to become.
    folders: BTreeMap<PathBuf, Attributes>,
}

impl Tree {
    pub(super) fn new(root: PathBuf) -> Self {
        let folders = BTreeMap::from([(root.clone(), Attributes::IMPLIED)]);
        Self { root, folders }
    }

    /// Where a file of these names is to be: symbolic links among its folders are followed within the root, and folders that
    /// are missing are made.
    pub(super) fn place(&mut self, names: &[OsString]) -> io::Result<PathBuf> {
        let Some((name, parents)) = names.split_last() else { return Ok(self.root.clone()) };
        let Self { root, folders } = self;
        let parent =
            path::folder(root, parents, |missing| make_folder(folders, missing, Attributes::IMPLIED))?;
        let depth = parent.strip_prefix(&self.root).unwrap_or(&parent).components().count();
        if depth >= MAX_DEPTH {
            return Err(io::Error::other(format!("it has more than {MAX_DEPTH} folders below each other")));
        }
        Ok(parent.join(name))
    }

    /// Where a file of these names is, if its folder is there.
    pub(super) fn existing(&self, names: &[OsString]) -> io::Result<Option<PathBuf>> {
        let Some((name, parents)) = names.split_last() else { return Ok(Some(self.root.clone())) };
        let missing = |_: &Path| Err(io::Error::from(ErrorKind::NotFound));
        match path::folder(&self.root, parents, missing) {
            Ok(parent) => Ok(Some(parent.join(name))),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a folder, or gives one that is there these attributes; anything else makes way.
    pub(super) fn folder(&mut self, path: &Path, attributes: Attributes) -> io::Result<()> {
        match path.symlink_metadata() {
            Ok(there) if there.is_dir() => {
                self.folders.insert(path.to_owned(), attributes);
                return Ok(());
            }
            Ok(_) => fs::remove_file(path)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        make_folder(&mut self.folders, path, attributes)
    }

    /// Makes a file; what is there makes way.
    pub(super) fn file(
        &mut self,
        path: &Path,
        attributes: Attributes,
        content: &mut impl Read,
    ) -> io::Result<()> {
        self.clear(path)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        io::copy(content, &mut file)?;
        finish_file(&file, path, attributes)
    }

    /// Makes a symbolic link, wherever it leads; what is there makes way.
    pub(super) fn symlink(&mut self, path: &Path, attributes: Attributes, target: &Path) -> io::Result<()> {
        self.clear(path)?;
        symlink(target, path)?;
        attributes.give(path)
    }

    /// Gives a file a further name; what is there makes way.
    pub(super) fn hard_link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        if path == target {
            return Ok(());
        }
        self.clear(path)?;
        fs::hard_link(target, path)
    }

    /// Removes what is there, if anything, with all that is below it.
    fn clear(&mut self, path: &Path) -> io::Result<()> {
        if path == self.root {
            return Err(io::Error::other("its root is no folder"));
        }
        self.remove(path, &BTreeSet::new()).map(drop)
    }

    /// Removes a file or folder with all that is below it, but for what is `kept` and the folders that it is in. Whether
    /// nothing is left.
    pub(super) fn remove(&mut self, path: &Path, kept: &BTreeSet<PathBuf>) -> io::Result<bool> {
        let is_folder = match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
            found => found?.is_dir(),
        };
        let is_left = is_folder && !self.empty(path, kept)?;
        if is_left || kept.contains(path) {
            return Ok(false);
        }
        if !is_folder {
            fs::remove_file(path)?;
            return Ok(true);
        }
        fs::remove_dir(path)?;
        self.folders.remove(path);
        Ok(true)
    }

    /// Removes all that is in a folder, but for what is `kept` and the folders that it is in. Whether nothing is left.
    pub(super) fn empty(&mut self, folder: &Path, kept: &BTreeSet<PathBuf>) -> io::Result<bool> {
        let mut is_empty = true;
        for entry in fs::read_dir(folder)? {
            is_empty &= self.remove(&entry?.path(), kept)?;
        }
        Ok(is_empty)
    }

    /// Gives all folders the attributes that they should have: the lower ones first, as the upper ones may not let this user
    /// in then.
    pub(super) fn finish(self) -> io::Result<()> {
        for (path, attributes) in self.folders.iter().rev() {
            let folder = File::open(path)?;
            finish_file(&folder, path, *attributes)?;
        }
        Ok(())
    }
}

/// Makes a folder that this user may write to until the tree is finished.
fn make_folder(
    folders: &mut BTreeMap<PathBuf, Attributes>,
    path: &Path,
    attributes: Attributes,
) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    folders.insert(path.to_owned(), attributes);
    Ok(())
}

/// The owner comes first: a file loses some of its mode with a new one.
fn finish_file(file: &File, path: &Path, attributes: Attributes) -> io::Result<()> {
    attributes.give(path)?;
    file.set_permissions(attributes.permissions())?;
    attributes.modified().map_or(Ok(()), |modified| file.set_modified(modified))
}
