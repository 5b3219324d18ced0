//! A folder in memory that fails when it is told to, holds its syncs back, and forgets what was not synced.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::disk::folder::{Append, Folder};

#[derive(Clone, Default)]
pub(super) struct Sim(Arc<(Mutex<Inner>, Condvar)>);

#[derive(Clone, Default)]
struct Inner {
    files: Vec<File>,
    /// Names as the process sees them, and as they are on the disk.
    names: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    operations: usize,
    fails_from: Option<usize>,
    holds: bool,
    held: usize,
    syncs_of_logs: usize,
}

#[derive(Clone, Default)]
struct File {
    bytes: Vec<u8>,
    synced: usize,
}

/// What is left of a folder after its machine, or only its process, has stopped.
#[derive(Clone, Copy, Debug)]
pub(super) enum Left {
    /// All that was written: the process was killed.
    Everything,
    /// What was synced, and nothing else.
    Synced,
    /// All names, and of what was not synced the first half.
    Half,
    /// All names and lengths, and zeros for what was not synced.
    Zeros,
}

impl Left {
    pub(super) const ALL: [Self; 4] = [Self::Everything, Self::Synced, Self::Half, Self::Zeros];
}

impl Sim {
    /// Every operation from the `count`th on fails.
    pub(super) fn failing_from(count: usize) -> Self {
        let sim = Self::default();
        sim.0.0.lock().fails_from = Some(count);
        sim
    }

    /// Every operation fails from now on.
    pub(super) fn fail(&self) {
        self.0.0.lock().fails_from = Some(0);
    }

    /// Syncs of logs do not return before [`Self::release`].
    pub(super) fn hold(&self) {
        self.0.0.lock().holds = true;
    }

    pub(super) fn release(&self) {
        self.0.0.lock().holds = false;
        self.0.1.notify_all();
    }

    /// Waits until a sync is being held.
    pub(super) fn wait_until_held(&self) {
        let mut inner = self.0.0.lock();
        while inner.held == 0 {
            self.0.1.wait(&mut inner);
        }
    }

    pub(super) fn syncs_of_logs(&self) -> usize {
        self.0.0.lock().syncs_of_logs
    }

    pub(super) fn operations(&self) -> usize {
        self.0.0.lock().operations
    }

    /// The folder as the next process finds it.
    pub(super) fn after(&self, left: Left) -> Self {
        let inner = self.0.0.lock();
        let names = if matches!(left, Left::Synced) { &inner.durable } else { &inner.names };
        let found = Self::default();
        for (name, file) in names {
            let File { bytes, synced } = &inner.files[*file];
            let mut bytes = bytes.clone();
            match left {
                Left::Everything => {}
                Left::Synced => bytes.truncate(*synced),
                Left::Half => bytes.truncate(synced + (bytes.len() - synced) / 2),
                Left::Zeros => bytes[*synced..].fill(0),
            }
            found.put(name, bytes);
        }
        found
    }

    /// Puts a file there.
    pub(super) fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut inner = self.0.0.lock();
        let synced = bytes.len();
        inner.files.push(File { bytes, synced });
        let file = inner.files.len() - 1;
        inner.names.insert(name.to_owned(), file);
        inner.durable.insert(name.to_owned(), file);
    }

    pub(super) fn get(&self, name: &str) -> Vec<u8> {
        let inner = self.0.0.lock();
        inner.files[inner.names[name]].bytes.clone()
    }

    fn operate<R>(&self, operation: impl FnOnce(&mut Inner) -> io::Result<R>) -> io::Result<R> {
        let mut inner = self.0.0.lock();
        inner.operations += 1;
        if inner.fails_from.is_some_and(|from| inner.operations > from) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        operation(&mut inner)
    }
}

impl Inner {
    fn file(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

struct Handle {
    sim: Sim,
    file: usize,
    is_log: bool,
}

impl Folder for Sim {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.0.lock().names.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<(u64, Box<dyn Read + '_>)> {
        let inner = self.0.0.lock();
        let bytes = inner.files[inner.file(name)?].bytes.clone();
        Ok((bytes.len() as u64, Box::new(io::Cursor::new(bytes))))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Append>> {
        let file = self.operate(|inner| {
            assert!(!inner.names.contains_key(name), "{name} is there");
            inner.files.push(File::default());
            let file = inner.files.len() - 1;
            inner.names.insert(name.to_owned(), file);
            Ok(file)
        })?;
        Ok(Box::new(Handle { sim: self.clone(), file, is_log: name.starts_with("log") }))
    }

    fn resume(&self, name: &str, length: u64) -> io::Result<Box<dyn Append>> {
        let file = self.operate(|inner| {
            let file = inner.file(name)?;
            inner.files[file].bytes.truncate(length as usize);
            inner.files[file].synced = length as usize;
            Ok(file)
        })?;
        Ok(Box::new(Handle { sim: self.clone(), file, is_log: true }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.operate(|inner| {
            let file = inner.file(from)?;
            inner.names.remove(from);
            inner.names.insert(to.to_owned(), file);
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.operate(|inner| {
            inner.file(name)?;
            inner.names.remove(name);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.operate(|inner| {
            inner.durable = inner.names.clone();
            Ok(())
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/sim").join(name)
    }
}

impl Append for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let appended = self.sim.operate(|inner| {
            inner.files[self.file].bytes.extend_from_slice(bytes);
            Ok(())
        });
        if appended.is_err() {
            // A disk that is full takes what fits.
            let mut inner = self.sim.0.0.lock();
            inner.files[self.file].bytes.extend_from_slice(&bytes[..bytes.len() / 3]);
        }
        appended
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.is_log {
            let (inner, changed) = &*self.sim.0;
            let mut inner = inner.lock();
            inner.syncs_of_logs += 1;
            inner.held += 1;
            changed.notify_all();
            while inner.holds {
                changed.wait(&mut inner);
            }
            inner.held -= 1;
        }
        self.sim.operate(|inner| {
            let file = &mut inner.files[self.file];
            file.synced = file.bytes.len();
            Ok(())
        })
    }
}
