//! Paths in a folder that is `/` to whoever uses it: nothing that an image says leads out of it.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, ErrorKind},
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

/// How many symbolic links a path may lead through, as in Linux.
const MAX_LINKS: usize = 40;

/// How many folders there may be below each other; what walks over them has a stack.
pub(super) const MAX_DEPTH: usize = 256;

/// Where a path leads for a process whose `/` is `root`: symbolic links are followed, those to absolute paths from `root` on,
/// and nothing leads above it. Nobody else is to change the tree meanwhile.
///
/// # Errors
/// When it leads to nothing, through too many links, or through what is no folder.
pub fn resolve(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let parts = parts_of(path.as_os_str());
    walk(root, parts, |missing| {
        Err(io::Error::new(ErrorKind::NotFound, format!("{} is missing", missing.display())))
    })
}

/// The names in a path as it is in an archive, relative to the root. Archives have no use for `..`, but to leave it.
///
/// # Errors
/// When it leads above the root.
pub(super) fn entry_names(path: &[u8]) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for part in parts_of(OsStr::from_bytes(path)) {
        if part == ".." {
            let shown: String = String::from_utf8_lossy(path).chars().take(200).collect();
            let left = || io::Error::other(format!("its entry {shown:?} leads out of the image"));
            names.pop().ok_or_else(left)?;
        } else {
            names.push(part);
        }
    }
    Ok(names)
}

/// Where the folder of these names is, with symbolic links followed within the root; `missing` says what to do about
/// folders that are not there.
pub(super) fn folder(
    root: &Path,
    names: &[OsString],
    missing: impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let found = walk(root, names.to_vec(), missing)?;
    if found.symlink_metadata()?.is_dir() { Ok(found) } else { Err(no_folder(&found)) }
}

fn no_folder(path: &Path) -> io::Error {
    io::Error::new(ErrorKind::NotADirectory, format!("{} is no folder", path.display()))
}

/// The names in a path, and its `..`.
fn parts_of(path: &OsStr) -> Vec<OsString> {
    let parts = Path::new(path).components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    parts.collect()
}

/// Goes from `root` by these names.
fn walk(
    root: &Path,
    parts: Vec<OsString>,
    mut missing: impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let mut ahead = parts;
    ahead.reverse();
    let (mut at, mut depth, mut links) = (root.to_owned(), 0, 0);
    while let Some(part) = ahead.pop() {
        if part == ".." {
            if depth > 0 {
                at.pop();
                depth -= 1;
            }
            continue;
        }
        let next = at.join(&part);
        let kind = match next.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                missing(&next)?;
                next.symlink_metadata()?.file_type()
            }
            found => found?.file_type(),
        };
        if !kind.is_symlink() {
            if !kind.is_dir() && !ahead.is_empty() {
                return Err(no_folder(&next));
            }
            (at, depth) = (next, depth + 1);
            if depth > MAX_DEPTH {
                return Err(io::Error::other(format!(
                    "it has more than {MAX_DEPTH} folders below each other"
                )));
            }
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::other(format!(
                "{} leads through too many symbolic links",
                next.display()
            )));
        }
        let target = fs::read_link(&next)?;
        if target.is_absolute() {
            (at, depth) = (root.to_owned(), 0);
        }
        ahead.extend(parts_of(target.as_os_str()).into_iter().rev());
    }
    Ok(at)
}
