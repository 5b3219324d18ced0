//! Mounts that are prepared first, while the machine's files are in sight, and attached later, when only the container's
//! are: no link of an image leads out of it. What is mounted, and on what, is held from when it was looked up: other containers
//! may change what is at a path at any time.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, StatVfsMountFlags, fstatvfs, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, mount_remount, move_mount, open_tree,
};
use rustix::process::fchdir;

use crate::files::{Held, Links, Missing};

/// A file system, or a part of one, that is not attached yet.
pub(super) struct Detached {
    tree: OwnedFd,
    folder: bool,
}

/// What is mounted somewhere, wherever that is by now.
pub(super) struct Attached(OwnedFd);

/// What is held, with everything mounted below it.
pub(super) fn bind(held: &Held) -> io::Result<Detached> {
    let folder = held.is_folder()?;
    let mut flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    flags.set(OpenTreeFlags::AT_RECURSIVE, folder);
    Ok(Detached { tree: open_tree(held, c"", flags)?, folder })
}

/// What is at a path of the machine that no container can change.
pub(super) fn bind_path(source: &Path) -> io::Result<Detached> {
    bind(&Held::open(source)?)
}

/// A new file system.
pub(super) fn new(kind: &str, options: &[(&str, &str)], attributes: MountAttrFlags) -> io::Result<Detached> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), *key, *value)?;
    }
    fsconfig_create(context.as_fd())?;
    let tree = fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    Ok(Detached { tree, folder: true })
}

impl Detached {
    /// Attaches it at a path in `root`, which is made where it is missing. Links on the way lead where they lead the
    /// container's programs, but to nothing that a process has open.
    pub(super) fn attach(self, root: &Held, target: &Path) -> io::Result<Attached> {
        let missing = if self.folder { Missing::Folder } else { Missing::File };
        self.attach_on(&root.make(target, Links::Inside, missing)?)
    }

    /// Attaches it on what is held.
    pub(super) fn attach_on(self, point: &Held) -> io::Result<Attached> {
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(self.tree.as_fd(), c"", point.as_fd(), c"", flags)?;
        Ok(Attached(self.tree))
    }
}

/// What this process has open, by number, as the machine shows it. What is mounted can be changed by this name, which no
/// container can give to something else, whatever it puts at the place itself or at `/proc`.
pub(super) struct Numbers(OwnedFd);

impl Numbers {
    /// To be asked for while the machine's files are in sight.
    pub(super) fn open() -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, "/proc/self/fd", flags, Mode::empty())?))
    }

    /// Makes what is mounted read-only here. This process is in `/` afterwards.
    pub(super) fn make_read_only(&self, mounted: &Attached) -> io::Result<()> {
        self.remount_read_only(mounted.0.as_fd())
    }

    /// Makes the root of this process read-only.
    pub(super) fn make_root_read_only(&self) -> io::Result<()> {
        self.remount_read_only(Held::open(Path::new("/"))?.as_fd())
    }

    fn remount_read_only(&self, mounted: BorrowedFd<'_>) -> io::Result<()> {
        let mut flags = MountFlags::BIND | MountFlags::RDONLY;
        // What the machine has locked must be asked for again.
        let found = fstatvfs(mounted)?.f_flag;
        for (is, keep) in [
            (StatVfsMountFlags::NODEV, MountFlags::NODEV),
            (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
            (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
            (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
            (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
            (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
        ] {
            flags.set(keep, found.contains(is));
        }
        // The call takes a path and nothing else.
        fchdir(&self.0)?;
        let number = mounted.as_raw_fd().to_string();
        let made = mount_remount(number.as_str(), flags, CString::default().as_c_str());
        std::env::set_current_dir("/")?;
        Ok(made?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::inputs::fixture::Scratch;

    /// Runs something in a mount namespace that no other thread sees, where this user may have one.
    fn apart(act: impl FnOnce(&Path) + Send) {
        let folder = Scratch::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if super::super::root::apart().is_ok() {
                    act(&folder);
                }
            });
        });
    }

    fn folders<const N: usize>(parent: &Path, names: [&str; N]) -> [std::path::PathBuf; N] {
        names.map(|name| {
            fs::create_dir(parent.join(name)).unwrap();
            parent.join(name)
        })
    }

    #[test]
    fn what_was_held_is_mounted_whatever_took_its_place() {
        apart(|folder| {
            let [part, outside, point] = folders(folder, ["part", "outside", "point"]);
            fs::write(part.join("own"), "").unwrap();
            fs::write(outside.join("token"), "").unwrap();
            let held = Held::open(folder).unwrap().find(Path::new("part"), Links::Beneath).unwrap();
            fs::rename(&part, folder.join("moved")).unwrap();
            symlink(&outside, &part).unwrap();
            bind(&held).unwrap().attach(&Held::open(folder).unwrap(), Path::new("point")).unwrap();
            assert!(point.join("own").exists() && !point.join("token").exists());
        });
    }

    #[test]
    fn what_was_mounted_is_made_read_only_whatever_its_path_leads_to_by_then() {
        apart(|folder| {
            let [kept, own, one, two] = folders(folder, ["kept", "own", "one", "two"]);
            let (root, numbers) = (Held::open(folder).unwrap(), Numbers::open().unwrap());
            bind_path(&own).unwrap().attach(&root, Path::new("/two")).unwrap();
            symlink("one", folder.join("x")).unwrap();
            let attached = bind_path(&kept).unwrap().attach(&root, Path::new("/x")).unwrap();
            fs::remove_file(folder.join("x")).unwrap();
            symlink("two", folder.join("x")).unwrap();
            numbers.make_read_only(&attached).unwrap();
            let refused = fs::write(one.join("new"), "").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ReadOnlyFilesystem);
            fs::write(two.join("new"), "").unwrap();
        });
    }

    #[test]
    fn what_is_missing_is_made_where_a_containers_links_lead() {
        apart(|folder| {
            let [own, image] = folders(folder, ["own", "image"]);
            fs::write(own.join("file"), "text").unwrap();
            fs::create_dir(image.join("run")).unwrap();
            symlink("/run", image.join("var")).unwrap();
            // A name that nothing else of this machine has.
            let nowhere = format!("nowhere-{}", std::process::id());
            symlink(format!("/{nowhere}"), image.join("dangling")).unwrap();
            let root = Held::open(&image).unwrap();
            bind_path(&own).unwrap().attach(&root, Path::new("/var/a/b")).unwrap();
            bind_path(&own.join("file")).unwrap().attach(&root, Path::new("/var/c/file")).unwrap();
            assert_eq!(fs::read(image.join("run/a/b/file")).unwrap(), b"text");
            assert_eq!(fs::read(image.join("run/c/file")).unwrap(), b"text");
            assert!(bind_path(&own).unwrap().attach(&root, Path::new("/dangling/x")).is_err());
            assert!(!Path::new("/").join(&nowhere).exists() && !image.join(&nowhere).exists());
        });
    }
}
