//! How volumes get onto this machine.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::{Change, Content, Planned, VolumeError, atomic, memory, ownership};
use crate::files::{self, Held, Links, Missing};
use crate::inputs::place::Node;

/// Makes a volume what it is planned to be. Calling it again is without effect when it already is; while the pod runs it is of
/// use for those that [follow changes](Planned::follows_changes). `now` only names a folder. Blocks for as long as the files
/// take.
///
/// # Errors
/// A path in it leads elsewhere, a `hostPath` is not what it has to be, or the file system refuses.
pub fn write(name: &str, planned: &Planned, pod: &Pod, now: Timestamp) -> Result<Change, VolumeError> {
    let group = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()?.fs_group);
    let group = group.and_then(|group| u32::try_from(group).ok());
    let give = |folder: &Path, read_only: bool| {
        group.map_or(Ok(()), |group| ownership::give_to_group(folder, group, read_only))
    };
    let made = match &planned.content {
        Content::Files { folder, payload, mount_points } => open_folder(folder)
            .and_then(|_| make_points(folder, mount_points))
            .map_err(|error| format!("{}: {error}", folder.display()))
            .and_then(|()| atomic::write(folder, payload, now, || give(folder, true))),
        Content::Scratch { folder } | Content::Memory { folder, .. } | Content::Lasting { folder } => {
            open_folder(folder)
                .and_then(|change| {
                    if let Content::Memory { most, .. } = planned.content {
                        memory::provide(folder, most)?;
                    }
                    let is_lasting = matches!(planned.content, Content::Lasting { .. });
                    if change == Change::Written || is_lasting {
                        give(folder, planned.read_only)?;
                    }
                    Ok(change)
                })
                .map_err(|error| format!("{}: {error}", folder.display()))
        }
        Content::Host { path, kind } => check(path, kind).map(|()| Change::None),
        Content::Image { .. } => Ok(Change::None),
    };
    made.map_err(|message| VolumeError::set_up(name, message))
}

/// Removes the folder of a pod that is gone, with its volumes, but not those of its claims, nor its logs. Links are removed, not
/// followed.
///
/// # Errors
/// The file system refuses.
pub fn remove(node: &Node, pod: &Pod) -> io::Result<()> {
    let folder = node.pod_folder(pod);
    memory::end_all(&folder.join("volumes/kubernetes.io~empty-dir"))?;
    files::remove(&folder)
}

/// A folder that everybody may write to, whatever this process' `umask` (`emptyDir.setupDir`).
fn open_folder(folder: &Path) -> io::Result<Change> {
    if folder.is_dir() {
        return Ok(Change::None);
    }
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o777))?;
    Ok(Change::Written)
}

/// Folders for other volumes, which a volume that no container can write to has to have.
fn make_points(folder: &Path, points: &[PathBuf]) -> io::Result<()> {
    let held = Held::open(folder)?;
    points.iter().try_for_each(|point| held.make(point, Links::Beneath, Missing::Folder).map(drop))
}

/// Whether the files of this machine are what a `hostPath` says (`checkTypeInternal`); what it wants created is. Where it says
/// nothing, a missing folder is made, as containerd does.
fn check(path: &Path, kind: &str) -> Result<(), String> {
    let metadata = path.metadata().ok();
    let is = |wanted: fn(&fs::Metadata) -> bool, what: &str| match &metadata {
        Some(metadata) if wanted(metadata) => Ok(()),
        _ => Err(format!("hostPath type check failed: {} is not {what}", path.display())),
    };
    match kind {
        "" if metadata.is_some() => Ok(()),
        "" | "DirectoryOrCreate" if metadata.is_none() => {
            fs::create_dir_all(path).map_err(|error| format!("mkdir {}: {error}", path.display()))
        }
        "DirectoryOrCreate" | "Directory" => is(fs::Metadata::is_dir, "a directory"),
        "FileOrCreate" if metadata.is_none() => {
            fs::write(path, []).map_err(|error| format!("open {}: {error}", path.display()))
        }
        "FileOrCreate" | "File" => is(fs::Metadata::is_file, "a file"),
        "Socket" => is(|metadata| metadata.file_type().is_socket(), "a socket file"),
        "CharDevice" => is(|metadata| metadata.file_type().is_char_device(), "a character device"),
        "BlockDevice" => is(|metadata| metadata.file_type().is_block_device(), "a block device"),
        _ => Err(format!("{kind} is an invalid volume type")),
    }
}
