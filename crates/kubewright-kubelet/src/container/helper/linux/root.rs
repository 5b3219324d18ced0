//! A container's root: its image, or this machine's files, with what the container writes laid over them, and its mounts.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change, unmount,
};
use rustix::process::pivot_root;
use rustix::thread::UnshareFlags;

use super::super::Failure;
use super::mount::{Detached, Numbers, bind};
use super::{devices, host};
use crate::container::wire::Files;
use crate::container::{Mount, Root};
use crate::files::{Held, Links};

/// The machine's own answer to how names are resolved, unless a mount says otherwise.
const RESOLVER: &str = "/etc/resolv.conf";

/// Makes a mount namespace and moves into the container's root.
pub(in crate::container::helper) fn enter(files: &Files) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::of("error preparing rootfs")(error);
    apart().map_err(failed)?;
    let mounts = resolver(files).into_iter().chain(files.mounts.clone());
    let mounts = mounts
        .map(|mount| Ok((devices::mounting(&source(&mount), &target(&mount), detach(&mount))?, mount)))
        .collect::<Result<Vec<_>, Failure>>()?;
    let devices = devices::prepare()?;
    let numbers = Numbers::open().map_err(failed)?;
    let root = build(files, &numbers).map_err(failed)?;
    change_root(&root).map_err(Failure::of("error jailing process inside rootfs: pivot_root"))?;
    let root = Held::open(Path::new("/")).map_err(failed)?;
    devices.attach(&root, &numbers)?;
    for (tree, mount) in mounts {
        let outcome = tree.attach(&root, &mount.target).and_then(|attached| match mount.read_only {
            true => numbers.make_read_only(&attached),
            false => Ok(()),
        });
        devices::mounting(&source(&mount), &target(&mount), outcome)?;
    }
    if files.read_only_root {
        numbers.make_root_read_only().map_err(Failure::of("error setting rootfs as readonly"))?;
    }
    Ok(())
}

/// What a mount shows: looked up and held here, in the namespace that it is mounted in, and never looked up again.
fn detach(mount: &Mount) -> io::Result<Detached> {
    let source = Held::open(&mount.source)?;
    match part(mount) {
        Some(part) => bind(&source.find(part, Links::Beneath)?),
        None => bind(&source),
    }
}

fn part(mount: &Mount) -> Option<&Path> {
    Some(mount.sub_path.as_path()).filter(|part| !part.as_os_str().is_empty())
}

fn source(mount: &Mount) -> String {
    part(mount).map_or_else(|| mount.source.clone(), |part| mount.source.join(part)).display().to_string()
}

fn target(mount: &Mount) -> String {
    mount.target.display().to_string()
}

fn resolver(files: &Files) -> Option<Mount> {
    let path = Path::new(RESOLVER);
    let wanted = matches!(files.root, Root::Image(_)) && path.is_file();
    wanted.then(|| Mount {
        source: path.into(),
        sub_path: PathBuf::new(),
        target: path.into(),
        read_only: true,
    })
}

/// A mount namespace from which nothing reaches the machine's.
pub(super) fn apart() -> io::Result<()> {
    super::unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?)
}

fn build(files: &Files, numbers: &Numbers) -> io::Result<PathBuf> {
    let root = files.directory.join("root");
    fs::create_dir(&root)?;
    match &files.root {
        Root::Host => host::assemble(&root, files, numbers)?,
        Root::Image(image) => {
            let laid = overlay(image, &files.directory.join("writes"), &root);
            if laid.is_err() {
                host::copy(image, &root)?;
                mount_bind_recursive(&root, &root)?;
            }
        }
    }
    Ok(root)
}

/// Shows `lower` at `target`; what is written there is kept in `writes`, a folder that is made.
pub(super) fn overlay(lower: &Path, writes: &Path, target: &Path) -> io::Result<()> {
    let (upper, work) = (writes.join("upper"), writes.join("work"));
    fs::create_dir_all(&upper)?;
    fs::create_dir_all(&work)?;
    let found = fs::metadata(lower)?;
    fs::set_permissions(&upper, found.permissions())?;
    let open = |path: &Path| rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let (lower, upper, work) = (open(lower)?, open(&upper)?, open(&work)?);
    own(&upper, &found);
    // By number, because a path may hold what separates options.
    let by_number = |fd: &std::os::fd::OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let (lower, upper, work) = (by_number(&lower), by_number(&upper), by_number(&work));
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work},userxattr");
    let lay = |options: String| -> io::Result<()> {
        let options = CString::new(options)?;
        Ok(mount("overlay", target, "overlay", MountFlags::empty(), options.as_c_str())?)
    };
    // What is written goes with the container: nobody waits for a disk, where the kernel can do without (5.10).
    lay(format!("{options},volatile")).or_else(|_| lay(options))
}

/// The upper folder is what the container sees as its root.
fn own(folder: impl AsFd, found: &fs::Metadata) {
    use std::os::unix::fs::MetadataExt;
    let (user, group) =
        (rustix::process::Uid::from_raw(found.uid()), rustix::process::Gid::from_raw(found.gid()));
    // Without the right to, it stays this user's, who also is the container's root.
    let _ = rustix::fs::chownat(folder, "", Some(user), Some(group), rustix::fs::AtFlags::EMPTY_PATH);
}

/// Makes `root`, which is mounted, the root of this process, and forgets the machine's.
pub(super) fn change_root(root: &Path) -> io::Result<()> {
    std::env::set_current_dir(root)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")
}
