//! Volumes in memory (`emptyDir` with `medium: Memory`): a tmpfs, as the kubelet mounts it. Only root may mount something; for others
//! it is a folder.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Mounts a tmpfs of at most so many bytes (of half of the machine's memory, where nothing is said) on a folder that is there, unless one
/// is, or nobody may.
pub(super) fn provide(folder: &Path, most: Option<u64>) -> io::Result<()> {
    if is_mounted(folder)? {
        return Ok(());
    }
    let size = most.map(|bytes| format!(",size={bytes}")).unwrap_or_default();
    let options = std::ffi::CString::new(format!("mode=777{size}"))?;
    match mount("tmpfs", folder, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str()) {
        Err(Errno::PERM | Errno::ACCESS) => Ok(()),
        mounted => Ok(mounted?),
    }
}

/// Takes away what is mounted on the folders in this one. Who still uses it keeps it as long.
pub(super) fn end_all(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && is_mounted(&path)? {
            unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
        }
    }
    Ok(())
}

/// Whether a folder is on another file system than the one that it is in.
fn is_mounted(folder: &Path) -> io::Result<bool> {
    let parent = folder.parent().unwrap_or(folder);
    Ok(fs::symlink_metadata(folder)?.dev() != fs::symlink_metadata(parent)?.dev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_in_memory_is_mounted_once_and_taken_away_by_root_and_is_a_folder_for_others() {
        let root = std::env::temp_dir().join(format!("kubewright-memory-{}", std::process::id()));
        let volume = root.join("cache");
        fs::create_dir_all(&volume).expect("a folder");
        provide(&volume, Some(1 << 20)).expect("provided");
        provide(&volume, Some(1 << 20)).expect("again");
        fs::write(volume.join("file"), "text").expect("written");
        let was_mounted = is_mounted(&volume).expect("a folder");
        end_all(&root).expect("ended");
        assert!(!is_mounted(&volume).expect("a folder"));
        assert_eq!(volume.join("file").exists(), !was_mounted, "what was in memory is gone");
        end_all(&root.join("none")).expect("nothing to end");
        fs::remove_dir_all(&root).expect("removed");
    }
}
