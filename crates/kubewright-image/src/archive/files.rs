//! The files of a source, by their names in it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use tar::EntryType;

use crate::{
    Digest, Error,
    compression::uncompressed,
    digest::Hasher,
    limits::Limits,
    oci::MAX_DOCUMENT,
    store::Workspace,
    tarball::{self, Budget},
};

/// How many files an archive of images may have; those of real ones have some for each layer.
const MAX_FILES: u64 = 100_000;

/// How many links may lead to a file, one after the other.
const MAX_LINKS: usize = 8;

/// A file in the workspace.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) path: PathBuf,
    pub(super) digest: Digest,
    pub(super) size: u64,
}

/// The files of a source, by their names in it.
#[derive(Debug)]
pub(super) enum Files {
    /// As they are.
    Folder(PathBuf),
    /// Those of an archive, which are in the workspace by now.
    Archive {
        /// The content.
        files: BTreeMap<String, Taken>,
        /// Names that are other names.
        links: BTreeMap<String, String>,
    },
}

impl Files {
    /// Whether there is a file of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::Folder(folder) => folder.join(name).is_file(),
            Self::Archive { .. } => self.archived(name).is_some(),
        }
    }

    /// The content of a small file.
    pub(super) fn document(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = match self {
            Self::Folder(folder) => folder.join(inside(name)?),
            Self::Archive { .. } => self.archived(name).ok_or_else(|| missing(name))?.path.clone(),
        };
        let file = File::open(&path).map_err(Error::io("read", &path))?;
        let mut bytes = Vec::new();
        file.take(MAX_DOCUMENT + 1).read_to_end(&mut bytes).map_err(Error::io("read", &path))?;
        if bytes.len() as u64 > MAX_DOCUMENT {
            return Err(Error::archive(format!("{name} has more than {MAX_DOCUMENT} bytes")));
        }
        Ok(bytes)
    }

    /// A copy of a file, in the workspace.
    pub(super) fn take(&self, name: &str, workspace: &Workspace) -> Result<Taken, Error> {
        let Self::Folder(folder) = self else {
            return self.archived(name).cloned().ok_or_else(|| missing(name));
        };
        let path = folder.join(inside(name)?);
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(name)),
            Err(error) => Err(Error::io("read", &path)(error)),
            Ok(file) => copy(file, &workspace.path()).map_err(Error::io("copy", &path)),
        }
    }

    fn archived(&self, name: &str) -> Option<&Taken> {
        let Self::Archive { files, links } = self else { return None };
        let mut name = name;
        for _ in 0..MAX_LINKS {
            if let Some(file) = files.get(name) {
                return Some(file);
            }
            name = links.get(name)?;
        }
        None
    }
}

fn missing(name: &str) -> Error {
    Error::archive(format!("it is not whole: {name} is missing"))
}

/// A name that an archive of images gives to one of its files, as a path that stays within the folder.
fn inside(name: &str) -> Result<&Path, Error> {
    match plain(name) {
        Some(plain) if plain == name => Ok(Path::new(name)),
        _ => Err(Error::archive(format!("{name:?} is not the name of a file in it"))),
    }
}

/// A name without `.` and `..`; `None` where it leads out of the archive.
fn plain(name: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in name.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

/// Copies the files of an archive into the workspace. Which of them count is known at its end only, and a stream cannot be
/// read twice.
pub(super) fn unpack(reader: impl Read, workspace: &Workspace, limits: Limits) -> Result<Files, Error> {
    let mut budget = Budget::new(Limits { entries: limits.entries.min(MAX_FILES), ..limits });
    let (mut files, mut links) = (BTreeMap::new(), BTreeMap::new());
    let read = uncompressed(reader).and_then(|reader| {
        tarball::read(reader, &mut budget, |entry| {
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let Some(plain) = plain(&name) else { return Ok(()) };
            let target = String::from_utf8_lossy(&entry.link_name_bytes().unwrap_or_default()).into_owned();
            match entry.header().entry_type() {
                EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse if !name.ends_with('/') => {
                    files.insert(plain, copy(entry, &workspace.path())?);
                }
                EntryType::Symlink => {
                    links.extend(self::plain(&format!("{plain}/../{target}")).map(|target| (plain, target)));
                }
                EntryType::Link => links.extend(self::plain(&target).map(|target| (plain, target))),
                _ => {}
            }
            Ok(())
        })
    });
    read.map_err(|error| Error::archive(format!("it cannot be read as an archive of images: {error}")))?;
    Ok(Files::Archive { files, links })
}

/// Copies to a new file, which is on the disk when this returns.
fn copy(mut from: impl Read, to: &Path) -> io::Result<Taken> {
    let mut file = fs::File::create_new(to)?;
    let (mut hasher, mut size, mut buffer) = (Hasher::new(), 0, vec![0; 64 << 10]);
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        hasher.update(&buffer[..read]);
        file.write_all(&buffer[..read])?;
        size += read as u64;
    }
    file.sync_all()?;
    Ok(Taken { path: to.to_owned(), digest: hasher.finish(), size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_of_the_archive_are_none() {
        for (name, expected) in [
            ("blobs/sha256/x", Some("blobs/sha256/x")),
            ("./a//b/", Some("a/b")),
            ("a/../b", Some("b")),
            ("/etc/passwd", Some("etc/passwd")),
            ("..", None),
            ("a/../../b", None),
        ] {
            assert_eq!(plain(name).as_deref(), expected, "{name}");
        }
        for name in ["/etc/passwd", "../x", "a/../../x", "./x"] {
            assert!(inside(name).is_err(), "{name}");
        }
    }
}
