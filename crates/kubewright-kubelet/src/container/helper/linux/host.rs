//! This machine's own files as a container's root: what it writes is laid over them.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::mount::{MountFlags, mount};

use super::mount::{Numbers, bind_path};
use super::root::overlay;
use crate::container::wire::Files;
use crate::files::Held;

/// What a container has of its own.
const APART: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The largest file that is copied where folders cannot be laid over each other; larger ones are shown read-only.
const COPIED: u64 = 1 << 20;

/// Builds a view of the machine's files at `root`: a folder of links, copies and overlays, since one overlay shows neither
/// other file systems below it nor a folder that holds what is written to it.
pub(super) fn assemble(root: &Path, files: &Files, numbers: &Numbers) -> io::Result<()> {
    mount("tmpfs", root, "tmpfs", MountFlags::empty(), c"mode=755")?;
    let mut apart = mount_points()?;
    // The view itself is mounted too by now.
    apart.retain(|point| !point.starts_with(&files.directory));
    apart.extend(APART.map(PathBuf::from));
    apart.insert(files.directory.clone());
    apart.extend(files.mounts.iter().filter_map(|mount| unmakeable(&mount.target)));
    let memory = files.directory.join("memory");
    fs::create_dir(&memory)?;
    mount("tmpfs", &memory, "tmpfs", MountFlags::empty(), c"mode=755")?;
    let view = View { apart, directory: files.directory.clone(), overlays: Cell::new(0), numbers };
    view.folder(Path::new("/"), root)
}

/// What of a path is missing in a folder of the machine where this user could not make it, nor in what lies over it.
fn unmakeable(path: &Path) -> Option<PathBuf> {
    let present = path.ancestors().find(|ancestor| ancestor.exists())?;
    let missing = path.strip_prefix(present).ok()?.components().next()?;
    let present = present.canonicalize().ok()?;
    let makeable = accessat(CWD, &present, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    (!makeable).then(|| present.join(missing))
}

struct View<'a> {
    /// Folders that no overlay may lie over.
    apart: BTreeSet<PathBuf>,
    directory: PathBuf,
    overlays: Cell<usize>,
    numbers: &'a Numbers,
}

impl View<'_> {
    fn folder(&self, from: &Path, to: &Path) -> io::Result<()> {
        let siblings = self.directory.parent();
        for entry in fs::read_dir(from)?.flatten() {
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let Ok(found) = fs::symlink_metadata(&from) else { continue };
            if found.is_symlink() {
                symlink(fs::read_link(&from)?, &to)?;
            } else if !found.is_dir() {
                self.file(&from, &to, &found);
            } else {
                fs::create_dir(&to)?;
                fs::set_permissions(&to, fs::Permissions::from_mode(found.mode() & 0o7777))?;
                // Neither what the container has of its own nor what belongs to others.
                let empty = APART.iter().any(|apart| Path::new(apart) == from) || Some(&*from) == siblings;
                if !empty {
                    self.show(&from, &to);
                }
            }
        }
        Ok(())
    }

    /// What this user cannot see stays empty.
    fn show(&self, from: &Path, to: &Path) {
        let below = self.apart.range(from.to_owned()..).take_while(|path| path.starts_with(from));
        let below: Vec<&PathBuf> = below.filter(|path| *path != from).collect();
        let laid = if below.is_empty() {
            self.lay(from, to, "writes")
        } else if below.iter().all(|path| **path == self.directory) {
            // What is written must not be kept in what it is laid over.
            self.lay(from, to, "memory").and_then(|()| self.hide_siblings(from, to))
        } else {
            self.folder(from, to)
        };
        if laid.is_err() && below.is_empty() {
            let _ = self.bind(from, to);
        }
    }

    fn lay(&self, from: &Path, to: &Path, writes: &str) -> io::Result<()> {
        let number = self.overlays.get();
        self.overlays.set(number + 1);
        overlay(from, &self.directory.join(writes).join(number.to_string()), to)
    }

    /// What cannot be read is not there.
    fn file(&self, from: &Path, to: &Path, found: &fs::Metadata) {
        let _ = if found.is_file() && found.len() <= COPIED {
            fs::copy(from, to).map(drop)
        } else {
            fs::File::create(to).and_then(|_| self.bind(from, to))
        };
    }

    /// Shows a file or folder of the machine read-only, on one that is there.
    fn bind(&self, from: &Path, to: &Path) -> io::Result<()> {
        let attached = bind_path(from)?.attach_on(&Held::open(to)?)?;
        self.numbers.make_read_only(&attached)
    }

    /// Covers the folder of all containers in a view of one that it is in.
    fn hide_siblings(&self, from: &Path, to: &Path) -> io::Result<()> {
        let siblings = self.directory.parent().and_then(|siblings| siblings.strip_prefix(from).ok());
        let Some(siblings) = siblings else { return Ok(()) };
        Ok(mount("tmpfs", to.join(siblings), "tmpfs", MountFlags::RDONLY, c"mode=755")?)
    }
}

/// Where file systems are mounted, by the kernel's account.
fn mount_points() -> io::Result<BTreeSet<PathBuf>> {
    let mounts = fs::read("/proc/self/mountinfo")?;
    let fields =
        mounts.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    Ok(fields.map(|field| PathBuf::from(std::ffi::OsString::from_vec(unescaped(field)))).collect())
}

/// The kernel writes spaces and their like as three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, more)) = rest.split_first() {
        let code = (*first == b'\\').then(|| more.get(..3)).flatten();
        let code = code.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[3..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    bytes
}

/// Copies a folder with all that is below it: where nothing can be laid over an image.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let found = fs::symlink_metadata(&from)?;
        if found.is_symlink() {
            symlink(fs::read_link(&from)?, &to)?;
        } else if found.is_dir() {
            fs::create_dir(&to)?;
            copy(&from, &to)?;
        } else if found.is_file() {
            fs::copy(&from, &to)?;
        } else {
            continue;
        }
        // An ordinary user's images are all its own.
        let _ = std::os::unix::fs::lchown(&to, Some(found.uid()), Some(found.gid()));
        if !found.is_symlink() {
            fs::set_permissions(&to, fs::Permissions::from_mode(found.mode() & 0o7777))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_as_the_kernel_writes_them() {
        assert_eq!(unescaped(br"/a\040b\134c"), br"/a b\c");
        assert_eq!(unescaped(br"/a\9"), br"/a\9");
        assert!(mount_points().unwrap().contains(Path::new("/proc")));
    }

    #[test]
    fn a_copy_is_what_was_copied() {
        let directory = std::env::temp_dir().join(format!("kubewright-copy-{}", std::process::id()));
        let (from, to) = (directory.join("from"), directory.join("to"));
        fs::create_dir_all(from.join("folder")).unwrap();
        fs::create_dir_all(&to).unwrap();
        fs::write(from.join("folder/file"), "text").unwrap();
        fs::set_permissions(from.join("folder/file"), fs::Permissions::from_mode(0o750)).unwrap();
        symlink("folder/file", from.join("link")).unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("folder/file"));
        assert_eq!(fs::read(to.join("link")).unwrap(), b"text");
        assert_eq!(fs::metadata(to.join("folder/file")).unwrap().mode() & 0o7777, 0o750);
        fs::remove_dir_all(directory).unwrap();
    }
}
