//! Removes trees of files whose modes may forbid it.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// Removes a file or folder with all that is in it. What is not there is removed.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
    if !metadata.is_dir() {
        return fs::remove_file(path);
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

/// Lets this user into all folders of a tree. How many are below each other, unpacking has a limit for.
fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}
