//! Goes through a folder that somebody may change meanwhile.

use std::ffi::CStr;
use std::io;

use rustix::fs::{Dir, FileType};

use super::Held;

/// How many folders below each other are gone into: so many descriptors are held.
pub(super) const DEEPEST: usize = 128;

/// Shows a file or folder with all that is below it, each of them held, a folder before what is in it. Links are shown and not
/// followed. What goes meanwhile, or does not let this user in, is passed over.
///
/// # Errors
/// More than [`DEEPEST`] folders are below each other.
pub(crate) fn walk(held: &Held, mut show: impl FnMut(&Held)) -> io::Result<()> {
    show(held);
    let mut open: Vec<Dir> = held.entries().into_iter().collect();
    while let Some(folder) = open.last_mut() {
        let Some(entry) = folder.next() else {
            open.pop();
            continue;
        };
        // A folder whose entries cannot be read any more has no others.
        let Ok(entry) = entry else { continue };
        if is_self(entry.file_name()) {
            continue;
        }
        let Ok(held) = folder.fd().map_err(io::Error::from).and_then(|fd| Held::entry(fd, entry.file_name()))
        else {
            continue;
        };
        show(&held);
        let may_be_folder = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        if may_be_folder && held.is_folder().unwrap_or_default() {
            if open.len() == DEEPEST {
                let text = format!("more than {DEEPEST} folders are below each other");
                return Err(io::Error::other(text));
            }
            open.extend(held.entries());
        }
    }
    Ok(())
}

/// Whether an entry is the folder itself, or the one that it is in.
pub(super) fn is_self(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}
