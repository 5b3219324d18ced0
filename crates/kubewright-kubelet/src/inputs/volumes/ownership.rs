//! Whose files are (`pkg/volume/volume_linux.go`). Who is not root may give nothing away: files that cannot be given stay with
//! this machine's user, who is whom containers without root's rights run as.

use std::io;
use std::os::unix::fs::lchown;
use std::path::Path;

use rustix::fs::FileType;

use crate::files::{Held, walk};

/// Gives a file to a user, where this machine lets us.
pub(super) fn give(path: &Path, user: u32) {
    // The kubelet goes on without, too: a container that cannot read the file tells its user.
    let _ = lchown(path, Some(user), None);
}

/// Gives all of a folder to `fsGroup`: who is in it may read, and write unless it is read-only, and new files belong to it too
/// (`changeFilePermission`). Containers may write there meanwhile: no link of theirs is followed.
///
/// # Errors
/// The folder is not there, or is too deep.
pub(super) fn give_to_group(folder: &Path, group: u32, read_only: bool) -> io::Result<()> {
    walk(&Held::open(folder)?, |held| {
        // As above.
        let _ = give_one(held, group, read_only);
    })
}

fn give_one(held: &Held, group: u32, read_only: bool) -> io::Result<()> {
    let found = held.stat()?;
    let given = held.give(None, Some(group));
    let files = if read_only { 0o440 } else { 0o660 };
    // Without the right to give it away its mode is set all the same.
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink => given,
        FileType::Directory => held.set_mode(found.st_mode | files | 0o2110),
        _ => held.set_mode(found.st_mode | files),
    }
}
