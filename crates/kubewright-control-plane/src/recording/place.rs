//! Where a recording is written that an environment variable asks for: several programs may read the same variable.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

/// The variable that asks for a recording.
pub const VARIABLE: &str = "KUBEWRIGHT_RECORD";
/// How a file of a recording ends.
const EXTENSION: &str = "kwrec";

/// Makes a new file that this user alone can read, for what the variable says: a name that ends in `.kwrec` is that of the file, any other
/// that of a folder. A file of a folder is named by time, process and port; one that is there stays, and the new one gets a number.
///
/// # Errors
/// When the folder or the file cannot be made.
pub fn create(said: &Path, now: Timestamp, process: u32, port: u16) -> io::Result<(File, PathBuf)> {
    let first = path(said, now, process, port);
    if let Some(folder) = first.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let mut number = 1;
    loop {
        let path = numbered(&first, number);
        match create_new(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Makes a file that was not there, which this user alone can read.
///
/// # Errors
/// When it is there, or cannot be written.
pub fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn path(said: &Path, now: Timestamp, process: u32, port: u16) -> PathBuf {
    if said.extension().is_some_and(|extension| extension == EXTENSION) && !said.is_dir() {
        return said.to_owned();
    }
    // Without colons, which not every file system takes.
    let time = now.strftime("%Y-%m-%dT%H-%M-%S");
    said.join(format!("{time}-{process}-{port}.{EXTENSION}"))
}

fn numbered(first: &Path, number: u32) -> PathBuf {
    match first.file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) if number > 1 => first.with_file_name(format!("{stem}-{number}.{EXTENSION}")),
        _ => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_a_file_of_its_own() {
        let root = std::env::temp_dir().join(format!("kubewright-place-{}", std::process::id()));
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().expect("a time");
        let name = |said: &str| {
            let (_, path) = create(&root.join(said), now, 7, 6443).expect("a file");
            path.strip_prefix(&root).expect("below").display().to_string()
        };
        let names = [name("suite"), name("suite"), name("deep/one.kwrec"), name("deep/one.kwrec")];
        fs::remove_dir_all(&root).expect("removed");
        assert_eq!(
            names,
            [
                "suite/2026-01-31T12-00-00-7-6443.kwrec",
                "suite/2026-01-31T12-00-00-7-6443-2.kwrec",
                "deep/one.kwrec",
                "deep/one-2.kwrec",
            ]
        );
    }

    #[test]
    fn a_file_where_the_folder_is_to_be_is_an_error() {
        let file = std::env::temp_dir().join(format!("kubewright-no-folder-{}", std::process::id()));
        fs::write(&file, "").expect("a file");
        assert!(create(&file, Timestamp::UNIX_EPOCH, 1, 1).is_err());
        fs::remove_file(&file).expect("removed");
    }
}
