//! Paths that do not leave a folder, whatever links somebody put into it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// How many links are followed before somebody is taken to lead in circles (Linux' own number).
const MOST_LINKS: usize = 40;

/// What a program finds at `path` whose `/` is `root`, as a path of this machine: links are followed, absolute ones from
/// `root`, and `..` ends there (`filepath-securejoin`). What is not there yet stays in the path as it is.
///
/// # Errors
/// Links go in circles, or a folder cannot be read.
pub(super) fn resolve(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut found = PathBuf::new();
    let mut links = 0;
    let mut left: VecDeque<OsString> = parts(path);
    while let Some(part) = left.pop_front() {
        if part == ".." {
            found.pop();
            continue;
        }
        let next = found.join(&part);
        let target = match std::fs::read_link(root.join(&next)) {
            Ok(target) => target,
            Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied) => return Err(error),
            Err(_) => {
                found = next;
                continue;
            }
        };
        links += 1;
        if links > MOST_LINKS {
            return Err(io::Error::other("too many levels of symbolic links"));
        }
        if target.is_absolute() {
            found = PathBuf::new();
        }
        for part in parts(&target).into_iter().rev() {
            left.push_front(part);
        }
    }
    Ok(root.join(found))
}

/// The folder or file `path` in `folder`, as a path without links. Folders that are missing are made with the mode `make`
/// where there is one. A link that leads out of `folder` is an error, as it is to the kubelet (`pkg/volume/util/subpath`).
///
/// What is returned is without links at that moment: the pod's other containers may replace what they can write to.
///
/// # Errors
/// It lies outside, is not there, or cannot be made.
pub(super) fn at(folder: &Path, path: &Path, make: Option<u32>) -> io::Result<PathBuf> {
    let folder = folder.canonicalize()?;
    let mut found = folder.clone();
    for part in parts(path) {
        let next = found.join(&part);
        found = match (next.canonicalize(), make) {
            (Err(error), Some(mode)) if error.kind() == io::ErrorKind::NotFound && !is_there(&next) => {
                std::fs::create_dir(&next)?;
                std::fs::set_permissions(&next, Permissions::from_mode(mode))?;
                next
            }
            (there, _) => there?,
        };
        if part == ".." || !found.starts_with(&folder) {
            return Err(io::Error::other("it leads out of its volume"));
        }
    }
    Ok(found)
}

/// The path without detours, as far as its text tells (`filepath.Clean`): an absolute one does not leave `/`.
pub(super) fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir
                if matches!(cleaned.components().next_back(), Some(Component::Normal(_))) =>
            {
                cleaned.pop();
            }
            Component::ParentDir if cleaned.has_root() => {}
            Component::CurDir => {}
            other => cleaned.push(other),
        }
    }
    cleaned
}

/// What a file says that somebody else may have put there: no device, no pipe that never ends, nothing endless.
///
/// # Errors
/// It is no file, has more than `most` bytes, or cannot be read.
pub(super) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Asked first: opening a pipe waits for a writer.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    if File::open(path)?.take(most + 1).read_to_end(&mut bytes)? as u64 > most {
        return Err(io::Error::other("it is too large"));
    }
    Ok(bytes)
}

/// Whether there is anything, and be it a link to nothing.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter_map(|component| match component {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;
    use crate::inputs::fixture::Scratch;

    #[test]
    fn links_are_followed_as_from_inside() {
        let root = Scratch::new();
        fs::create_dir_all(root.join("usr/etc")).unwrap();
        fs::write(root.join("usr/etc/passwd"), "inside").unwrap();
        symlink("/usr/etc", root.join("etc")).unwrap();
        symlink("../../../../usr/etc/passwd", root.join("usr/etc/relative")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        let passwd = root.join("usr/etc/passwd");
        assert_eq!(resolve(&root, Path::new("etc/passwd")).unwrap(), passwd);
        assert_eq!(resolve(&root, Path::new("/etc/relative")).unwrap(), passwd);
        assert_eq!(resolve(&root, Path::new("../../etc/passwd")).unwrap(), passwd);
        assert_eq!(resolve(&root, Path::new("etc/none/x")).unwrap(), root.join("usr/etc/none/x"));
        assert!(resolve(&root, Path::new("circle/x")).is_err());
    }

    #[test]
    fn a_part_of_a_volume_is_made_with_the_mode_of_the_volume() {
        let volume = Scratch::new();
        let part = at(&volume, Path::new("a/./b"), Some(0o2770)).unwrap();
        assert_eq!(part, volume.join("a/b"));
        assert_eq!(part.metadata().unwrap().permissions().mode() & 0o777, 0o770);
        assert!(at(&volume, Path::new("none"), None).is_err());
    }

    #[test]
    fn a_link_out_of_a_volume_leads_nowhere() {
        let (volume, outside) = (Scratch::new(), Scratch::new());
        symlink(&*outside, volume.join("out")).unwrap();
        symlink(volume.join("none"), volume.join("dangling")).unwrap();
        symlink("real", volume.join("in")).unwrap();
        fs::create_dir(volume.join("real")).unwrap();
        for path in ["out", "out/x", "dangling", "real/../out", "../x"] {
            assert!(at(&volume, Path::new(path), Some(0o777)).is_err(), "{path}");
        }
        assert_eq!(at(&volume, Path::new("in"), Some(0o777)).unwrap(), volume.join("real"));
        assert_eq!(fs::read_dir(&*outside).unwrap().count(), 0);
    }

    #[test]
    fn only_files_are_read_and_only_short_ones() {
        let folder = Scratch::new();
        fs::write(folder.join("file"), "12345").unwrap();
        assert_eq!(read(&folder.join("file"), 5).unwrap(), b"12345");
        assert!(read(&folder.join("file"), 4).is_err());
        assert!(read(Path::new("/dev/zero"), 5).is_err());
        assert!(read(&folder, 5).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever links a container puts into its volume.
        #[test]
        fn no_path_leaves_its_folder(
            links in proptest::collection::vec(("[abc]", "(/|\\.\\./|\\./)?(\\.\\./){0,2}[abcx]?(/[abc])?"), 0..4),
            path in "/?([abc]|\\.\\.|\\.)(/([abc]|\\.\\.|\\.)){0,3}",
        ) {
            let outer = Scratch::new();
            let root = outer.join("root");
            fs::create_dir_all(root.join("d")).unwrap();
            for (name, target) in &links {
                let _ = symlink(target, root.join(name));
            }
            if let Ok(found) = resolve(&root, Path::new(&path)) {
                prop_assert!(found.starts_with(&root), "{}", found.display());
                if let Ok(real) = found.canonicalize() {
                    prop_assert!(real.starts_with(&root), "{}", real.display());
                }
            }
            if let Ok(found) = at(&root, Path::new(path.trim_start_matches('/')), Some(0o755)) {
                prop_assert!(found.canonicalize().unwrap().starts_with(&root));
            }
            prop_assert_eq!(fs::read_dir(&*outer).unwrap().count(), 1, "nothing was made outside");
        }
    }
}
