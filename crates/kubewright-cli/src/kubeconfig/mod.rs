//! Writes the kubeconfig of the cluster's administrator.

#[cfg(test)]
mod tests;

use std::{
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Read, Seek, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use kubewright_cluster::Secret;

/// The first line of a file that is ours to overwrite.
const MARK: &str = "# Written by kubewright up; it lasts as long as that runs.";

/// What kubectl needs in order to reach the cluster as its administrator.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// `https://127.0.0.1:6443`.
    pub(crate) server: String,
    /// The certificate authority of the server, PEM.
    pub(crate) ca: String,
    /// The administrator's token.
    pub(crate) token: Secret,
}

/// Where the kubeconfig goes, and the flag that says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KubeconfigTarget<'a> {
    pub(crate) path: &'a Path,
    pub(crate) flag: &'static str,
}

/// Why the kubeconfig was not written, with the remedy.
#[derive(Debug)]
pub(crate) struct NotWritten {
    path: PathBuf,
    flag: &'static str,
    why: Why,
}

#[derive(Debug)]
enum Why {
    /// The file is there, and another program's (or a human's).
    Foreign,
    /// It is that of a control plane that runs, at this server.
    InUse(String),
    /// The file system refused.
    Io(io::Error),
}

impl fmt::Display for NotWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, flag, why } = self;
        let path = path.display();
        match why {
            Why::Foreign => {
                write!(f, "{path} exists and was not written by kubewright: choose another file with {flag}")
            }
            Why::InUse(server) => write!(
                f,
                "{path} is the kubeconfig of a control plane that runs{server}: end that one, or choose another file with {flag}"
            ),
            Why::Io(error) => write!(
                f,
                "cannot write the kubeconfig {path}: {error}: choose a file in a writable folder with {flag}"
            ),
        }
    }
}

impl std::error::Error for NotWritten {}

/// A kubeconfig that was written. The file is locked while this is there, by which others know that its control plane
/// runs; the kernel unlocks it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Written {
    path: PathBuf,
    file: File,
}

impl Written {
    /// Removes the file, unless it is another one by now.
    pub(crate) fn remove(self) {
        if is_same(&self.file, fs::symlink_metadata(&self.path)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Access {
    /// Puts the kubeconfig at its place, readable by this user only, in one step: a reader sees the old file or the new one.
    /// Of two who do so at the same time one is refused.
    ///
    /// # Errors
    /// When a file is there that this function did not write, or that of a control plane that runs, or the file system
    /// refuses.
    pub(crate) fn write(&self, target: KubeconfigTarget<'_>) -> Result<Written, NotWritten> {
        let temporary = temporary(target.path);
        let written = write_private(&temporary, &self.kubeconfig()).map_err(Why::Io).and_then(|file| {
            // Whoever finds it finds it locked.
            let _ = file.try_lock();
            put(&temporary, target.path)?;
            Ok(Written { path: target.path.to_owned(), file })
        });
        let _ = fs::remove_file(&temporary);
        written.map_err(|why| target.not_written(why))
    }

    /// The kubeconfig's text.
    pub(crate) fn kubeconfig(&self) -> String {
        let (server, ca, token) = (&self.server, STANDARD.encode(&self.ca), self.token.reveal());
        format!(
            "{MARK}
apiVersion: v1
kind: Config
clusters:
- name: kubewright
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: kubewright-admin
  user:
    token: {token}
contexts:
- name: kubewright
  context:
    cluster: kubewright
    user: kubewright-admin
current-context: kubewright
"
        )
    }
}

impl KubeconfigTarget<'_> {
    /// Whether a kubeconfig may be put there: nothing is there, or one of ours whose control plane has ended.
    ///
    /// # Errors
    /// When it may not.
    pub(crate) fn check_free(self) -> Result<(), NotWritten> {
        match open(self.path).and_then(|file| check(&file).map(|()| file)) {
            Ok(file) => match file.try_lock_shared() {
                Err(TryLockError::WouldBlock) => Err(self.not_written(Why::InUse(server(&file)))),
                _ => Ok(()),
            },
            Err(Why::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(why) => Err(self.not_written(why)),
        }
    }

    fn not_written(self, why: Why) -> NotWritten {
        NotWritten { path: self.path.to_owned(), flag: self.flag, why }
    }
}

/// Moves a file to its place, where nothing is or an older one of ours. Only who has locked the older one replaces it, and
/// a link is made only where nothing is.
fn put(temporary: &Path, path: &Path) -> Result<(), Why> {
    loop {
        let older = match open(path) {
            Ok(older) => older,
            Err(Why::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                match fs::hard_link(temporary, path) {
                    Ok(()) => return Ok(()),
                    // Somebody was faster; unless what is there is a link to nothing.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !is_link(path) => continue,
                    // A file system without links, too.
                    Err(_) => return fs::rename(temporary, path).map_err(Why::Io),
                }
            }
            Err(why) => return Err(why),
        };
        check(&older)?;
        if matches!(older.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(Why::InUse(server(&older)));
        }
        // A link is followed, as it was when the older one was opened.
        if is_same(&older, fs::metadata(path)) {
            return fs::rename(temporary, path).map_err(Why::Io);
        }
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink())
}

fn open(path: &Path) -> Result<File, Why> {
    File::open(path).map_err(Why::Io)
}

/// Whether a file is one of ours.
fn check(file: &File) -> Result<(), Why> {
    let mut first = Vec::new();
    let mut head = BufReader::new(file.take(MARK.len() as u64 + 1));
    head.read_until(b'\n', &mut first).map_err(Why::Io)?;
    if first.trim_ascii_end() == MARK.as_bytes() { Ok(()) } else { Err(Why::Foreign) }
}

/// Where the server of one of our files is, in words.
fn server(mut file: &File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(1 << 20).read_to_string(&mut text));
    let found = text.lines().find_map(|line| line.trim().strip_prefix("server: "));
    read.ok().and(found).map_or_else(String::new, |server| format!(" at {server}"))
}

/// Whether this is the file that was looked at.
fn is_same(file: &File, other: io::Result<fs::Metadata>) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), other) {
        (Ok(one), Ok(other)) => identity(one) == identity(other),
        _ => false,
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

fn write_private(path: &Path, text: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}
