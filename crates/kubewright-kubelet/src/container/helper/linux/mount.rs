//! Mounts that are prepared first, while the machine's files are in sight, and attached later, when only the container's
//! are: no symbolic link of an image leads out of it.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, StatVfsMountFlags, statvfs};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, mount_remount, move_mount, open_tree,
};

/// A file system, or a part of one, that is not attached yet.
pub(super) struct Detached {
    tree: OwnedFd,
    folder: bool,
}

/// What is at `source`, with everything mounted below it.
pub(super) fn bind(source: &Path) -> io::Result<Detached> {
    let folder = fs::metadata(source)?.is_dir();
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    flags.set(OpenTreeFlags::AT_RECURSIVE, folder);
    Ok(Detached { tree: open_tree(CWD, source, flags)?, folder })
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
    /// Attaches it at `target`, which is made where it is missing.
    pub(super) fn attach(&self, target: &Path) -> io::Result<()> {
        make_point(target, self.folder)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
        Ok(move_mount(self.tree.as_fd(), "", CWD, target, flags)?)
    }
}

/// A file or folder that something can be mounted on.
fn make_point(target: &Path, folder: bool) -> io::Result<()> {
    if fs::metadata(target).is_ok() {
        return Ok(());
    }
    if folder {
        return fs::create_dir_all(target);
    }
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::File::create(target).map(drop)
}

/// Makes what is mounted at `target` read-only here.
pub(super) fn make_read_only(target: &Path) -> io::Result<()> {
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    // What the machine has locked must be asked for again.
    let found = statvfs(target)?.f_flag;
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
    Ok(mount_remount(target, flags, CString::default().as_c_str())?)
}
