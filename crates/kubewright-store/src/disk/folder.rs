//! The few things that the backend does with files. Tests put a folder in its place that fails and forgets on purpose.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// A folder of files that are written from front to end.
pub(crate) trait Folder: Send + Sync + 'static {
    /// The names of what is in it.
    fn names(&self) -> io::Result<Vec<String>>;
    /// A file's length, and its bytes from the start.
    fn read(&self, name: &str) -> io::Result<(u64, Box<dyn Read + '_>)>;
    /// An empty file; what was there under its name goes.
    fn create(&self, name: &str) -> io::Result<Box<dyn Append>>;
    /// A file to be continued after its first `length` bytes; what is behind them goes.
    fn resume(&self, name: &str, length: u64) -> io::Result<Box<dyn Append>>;
    /// A file of a few bytes that are overwritten in place; made when it is missing.
    fn mark(&self, name: &str) -> io::Result<Box<dyn Overwrite>>;
    /// Gives a file another name; the file that had that name goes.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Waits until the disk has what was created, renamed and removed.
    fn sync(&self) -> io::Result<()>;
    /// How a person finds a file.
    fn path(&self, name: &str) -> PathBuf;
}

/// A file that grows at its end.
pub(crate) trait Append: Send {
    /// Writes at its end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Waits until the disk has what was written. Once it has failed nothing may be relied on but what an earlier one
    /// has brought to the disk: the kernel may have dropped what it could not write.
    fn sync(&mut self) -> io::Result<()>;
    /// Lets what is behind the first `length` bytes go.
    fn cut(&mut self, length: u64) -> io::Result<()>;
}

/// A file that is overwritten. What is written outlives the process at once, and the machine when it happens to get to
/// the disk.
pub(crate) trait Overwrite: Send {
    /// Writes at its start.
    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// A folder of this machine, which no other process uses at the same time.
pub(crate) struct Directory {
    path: PathBuf,
    /// Locked for as long as it is open. The kernel unlocks it when the process ends, however it ends.
    _lock: File,
}

/// The file whose lock says that the folder is in use; it holds the id of the process that has it.
pub(crate) const LOCK: &str = "lock";

/// Why a folder cannot be had.
pub(crate) enum NotHad {
    /// Another process has it (its id, if it could be read).
    Busy(String),
    Io(io::Error),
}

impl Directory {
    /// Takes a folder; makes it, for this user alone, when it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, NotHad> {
        make(path).map_err(NotHad::Io)?;
        let name = path.join(LOCK);
        let mut lock = private().read(true).create(true).truncate(false).open(&name).map_err(NotHad::Io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = lock.take(20).read_to_string(&mut holder);
                return Err(NotHad::Busy(holder.trim().to_owned()));
            }
            Err(TryLockError::Error(error)) => return Err(NotHad::Io(error)),
        }
        lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id())).map_err(NotHad::Io)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }
}

/// Makes a folder, and those that it is in, when they are missing. They are on the disk when this returns.
fn make(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    make(parent)?;
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    File::open(parent)?.sync_all()
}

/// For files that only this user may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

impl Folder for Directory {
    fn names(&self) -> io::Result<Vec<String>> {
        fs::read_dir(&self.path)?
            .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn read(&self, name: &str) -> io::Result<(u64, Box<dyn Read + '_>)> {
        let file = File::open(self.path(name))?;
        let length = file.metadata()?.len();
        Ok((length, Box::new(BufReader::with_capacity(1 << 20, file))))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Append>> {
        Ok(Box::new(private().create(true).truncate(true).open(self.path(name))?))
    }

    fn resume(&self, name: &str, length: u64) -> io::Result<Box<dyn Append>> {
        let file = OpenOptions::new().append(true).open(self.path(name))?;
        file.set_len(length)?;
        file.sync_all()?;
        Ok(Box::new(file))
    }

    fn mark(&self, name: &str) -> io::Result<Box<dyn Overwrite>> {
        Ok(Box::new(private().create(true).truncate(false).open(self.path(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Append for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

impl Overwrite for File {
    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.rewind()?;
        self.write_all(bytes)
    }
}
