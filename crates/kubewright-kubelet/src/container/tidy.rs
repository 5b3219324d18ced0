//! Removes what containers leave behind.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Removes a folder with all that is in it, also what a container made unreadable. What cannot be removed stays.
pub(super) fn remove(directory: &Path) {
    if fs::remove_dir_all(directory).is_ok() {
        return;
    }
    open_up(directory);
    let _ = fs::remove_dir_all(directory);
}

fn open_up(directory: &Path) {
    let _ = fs::set_permissions(directory, Permissions::from_mode(0o700));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
