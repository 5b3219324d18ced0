//! Files that change all at once (`pkg/volume/util/atomic_writer.go`).
//!
//! What a reader opens are links: `name -> ..data/name`, `..data -> ..2026_01_01_00_00_00.0`. New contents are written
//! into a new folder, and `..data` is moved to it in one step, so that nobody ever sees some files of before and some of after
//! in one folder. Whoever watches `..data` is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;

use super::ownership;
use super::payload::{File, Payload};

const DATA: &str = "..data";
const NEXT_DATA: &str = "..data_tmp";

/// The longest name of a file, and the longest path, in bytes.
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4096;

/// Whether something had to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// All was as it should be.
    None,
    /// Something was not, and is now.
    Written,
}

/// Makes `folder`, which is there and belongs to one writer at a time, hold these files and no others. `owners` is called
/// before they are seen.
///
/// # Errors
/// A path leaves the folder, is too long or starts with `..`, and nothing was touched; or the file system refused: what was
/// there is still seen whole, and calling again repairs.
pub(super) fn write(
    folder: &Path,
    payload: &Payload,
    now: Timestamp,
    owners: impl Fn() -> io::Result<()>,
) -> Result<Change, String> {
    let files = clean(payload)?;
    replace(folder, &files, now, owners).map_err(|error| format!("{}: {error}", folder.display()))
}

type Files<'a> = BTreeMap<PathBuf, &'a File>;

fn replace(
    folder: &Path,
    files: &Files<'_>,
    now: Timestamp,
    owners: impl Fn() -> io::Result<()>,
) -> io::Result<Change> {
    let data = folder.join(DATA);
    let old = match fs::read_link(&data) {
        Ok(target) => Some(folder.join(target)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let gone = match &old {
        Some(old) => no_longer(old, files)?,
        None => BTreeSet::new(),
    };
    let is_current = match &old {
        Some(old) => gone.is_empty() && is_written(old, files)?,
        None => false,
    };
    if !is_current {
        let new = new_folder(folder, now, old.as_deref())?;
        let name = new.file_name().unwrap_or_default();
        let published = write_files(&new, files).and_then(|()| {
            owners()?;
            remove_if_there(&folder.join(NEXT_DATA))?;
            symlink(name, folder.join(NEXT_DATA))?;
            fs::rename(folder.join(NEXT_DATA), &data)
        });
        if let Err(error) = published {
            // The folder that nobody saw is of no use; the error is what counts.
            let _ = fs::remove_dir_all(&new);
            return Err(error);
        }
    }
    let linked = link(folder, files)?;
    for path in gone.iter().filter(|path| path.components().count() == 1) {
        remove_if_there(&folder.join(path))?;
    }
    if is_current {
        return Ok(if linked { Change::Written } else { Change::None });
    }
    remove_old(folder)?;
    Ok(Change::Written)
}

/// Removes the folders of before, also those that a process left that ended in the middle.
fn remove_old(folder: &Path) -> io::Result<()> {
    let current = fs::read_link(folder.join(DATA))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_ours = entry.file_name().as_bytes().starts_with(b"..") && entry.file_type()?.is_dir();
        if is_ours && entry.file_name() != current {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// The files by their paths without detours (`validatePayload`).
fn clean(payload: &Payload) -> Result<Files<'_>, String> {
    let files = payload.0.iter().map(|(path, file)| {
        validate(path)?;
        let parts = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
        Ok((parts.collect(), file))
    });
    files.collect()
}

/// Whether a path stays in its folder, and out of what is the writer's (`validatePath`).
fn validate(path: &str) -> Result<(), String> {
    if path.is_empty() {
        return Err(r#"invalid path: must not be empty: """#.to_owned());
    }
    if path.starts_with('/') {
        return Err(format!("invalid path: must be relative path: {path}"));
    }
    if path.len() > LONGEST_PATH {
        return Err(format!("invalid path: must be less than or equal to {LONGEST_PATH} characters"));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(format!("invalid path: must not contain '..': {path}"));
    }
    if path.split('/').any(|part| part.len() > LONGEST_NAME) {
        return Err(format!(
            "invalid path: filenames must be less than or equal to {LONGEST_NAME} characters"
        ));
    }
    let parts = || path.split('/').filter(|part| !matches!(*part, "" | "."));
    match parts().next() {
        Some(first) if first.starts_with("..") => {
            Err(format!("invalid path: must not start with '..': {path}"))
        }
        Some(_) => Ok(()),
        None => Err(format!("invalid path: must name a file: {path}")),
    }
}

/// The paths in the old folder that are neither files nor folders of the new (`pathsToRemove`).
fn no_longer(old: &Path, files: &Files<'_>) -> io::Result<BTreeSet<PathBuf>> {
    let mut kept: BTreeSet<&Path> = BTreeSet::new();
    for path in files.keys() {
        kept.extend(path.ancestors());
    }
    let mut gone = BTreeSet::new();
    let mut left = vec![PathBuf::new()];
    while let Some(path) = left.pop() {
        let entries = match fs::read_dir(old.join(&path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = path.join(entry.file_name());
            if !kept.contains(path.as_path()) {
                gone.insert(path.clone());
            }
            if entry.file_type()?.is_dir() {
                left.push(path);
            }
        }
    }
    Ok(gone)
}

/// Whether all files are there and say what they should (`shouldWritePayload`). Modes do not count: they come from the pod, where
/// they cannot change.
fn is_written(old: &Path, files: &Files<'_>) -> io::Result<bool> {
    for (path, file) in files {
        match fs::read(old.join(path)) {
            Ok(data) if data == file.data => {}
            Ok(_) => return Ok(false),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(false);
            }
            // Who wrote it may not read it: a mode without reading, and no root. It is written anew.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A new folder, called after the time and, within a second, by number: never as an old one, whose name somebody may still
/// hold.
fn new_folder(folder: &Path, now: Timestamp, old: Option<&Path>) -> io::Result<PathBuf> {
    let stamp = now.strftime("..%Y_%m_%d_%H_%M_%S.").to_string();
    let old = old.and_then(|old| old.file_name()?.to_str()?.strip_prefix(&stamp)?.parse::<u64>().ok());
    let mut number = old.map_or(0, |number| number.wrapping_add(1));
    loop {
        let new = folder.join(format!("{stamp}{number}"));
        match fs::create_dir(&new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number = number.wrapping_add(1),
            made => {
                made?;
                fs::set_permissions(&new, Permissions::from_mode(0o755))?;
                return Ok(new);
            }
        }
    }
}

fn write_files(folder: &Path, files: &Files<'_>) -> io::Result<()> {
    for (path, file) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &file.data)?;
        fs::set_permissions(&path, Permissions::from_mode(file.mode))?;
        if let Some(owner) = file.owner {
            ownership::give(&path, owner);
        }
    }
    Ok(())
}

/// Makes the links that are missing, of files and of the outermost folders (`createUserVisibleFiles`). Whether one was.
fn link(folder: &Path, files: &Files<'_>) -> io::Result<bool> {
    let outermost: BTreeSet<_> = files.keys().filter_map(|path| path.components().next()).collect();
    let mut linked = false;
    for name in outermost {
        match symlink(Path::new(DATA).join(name), folder.join(name)) {
            Ok(()) => linked = true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(linked)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests;
