//! Whose files are (`pkg/volume/volume_linux.go`). Who is not root may give nothing away: files that cannot be given stay with
//! this machine's user, who is whom containers without root's rights run as.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, lchown};
use std::path::Path;

/// Gives a file to a user, a group, or both, where this machine lets us.
pub(super) fn give(path: &Path, user: Option<u32>, group: Option<u32>) {
    // The kubelet goes on without, too: a container that cannot read the file tells its user.
    let _ = lchown(path, user, group);
}

/// Gives all of a folder to `fsGroup`: who is in it may read, and write unless it is read-only, and new files belong to it too
/// (`changeFilePermission`).
pub(super) fn give_to_group(path: &Path, group: u32, read_only: bool) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            give_to_group(&entry.path(), group, read_only);
        }
    }
    give(path, None, Some(group));
    if metadata.is_symlink() {
        return;
    }
    let files = if read_only { 0o440 } else { 0o660 };
    let mask = if metadata.is_dir() { files | 0o2110 } else { files };
    // As above.
    let _ = fs::set_permissions(path, Permissions::from_mode(metadata.permissions().mode() | mask));
}
