//! A folder in memory that fails when it is told to, holds its syncs back, and forgets what was not synced.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::disk::folder::{Append, Folder, Overwrite};

#[derive(Clone, Default)]
pub(super) struct Sim(Arc<(Mutex<Inner>, Condvar)>);

#[derive(Clone, Default)]
struct Inner {
    files: Vec<File>,
    /// Names as the process sees them, and as they are on the disk.
    names: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    operations: usize,
    fails: Option<Fails>,
    holds: bool,
    held: usize,
    syncs_of_logs: usize,
}

#[derive(Clone, Default)]
struct File {
    bytes: Vec<u8>,
    synced: usize,
    /// A sync has failed: another one would say nothing.
    is_spoiled: bool,
    /// What was there before it was overwritten in place, which the disk does as a whole or not at all.
    overwritten: Option<Vec<u8>>,
}

/// Given what is done to which file, and how often anything was done before, says how it fails.
type Fails = Arc<dyn Fn(Does, &str, usize) -> Option<ErrorKind> + Send + Sync>;

/// What is done to a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Create,
    Resume,
    Append,
    Sync,
    Cut,
    Mark,
    Rename,
    Remove,
    SyncFolder,
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
    pub(super) fn failing_from(count: usize, how: ErrorKind) -> Self {
        let sim = Self::default();
        sim.fails(move |_, _, before| (before >= count).then_some(how));
        sim
    }

    /// Operations fail as this says, from now on.
    pub(super) fn fails(&self, how: impl Fn(Does, &str, usize) -> Option<ErrorKind> + Send + Sync + 'static) {
        self.0.0.lock().fails = Some(Arc::new(how));
    }

    /// Every operation fails from now on.
    pub(super) fn fail(&self) {
        self.fails(|_, _, _| Some(ErrorKind::Other));
    }

    /// No operation fails from now on.
    pub(super) fn heal(&self) {
        self.0.0.lock().fails = None;
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
            let File { bytes, synced, overwritten, .. } = &inner.files[*file];
            let mut bytes = bytes.clone();
            if let Some(before) = overwritten {
                found.put(name, if matches!(left, Left::Synced) { before.clone() } else { bytes });
                continue;
            }
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
        inner.files.push(File { bytes, synced, ..File::default() });
        let file = inner.files.len() - 1;
        inner.names.insert(name.to_owned(), file);
        inner.durable.insert(name.to_owned(), file);
    }

    pub(super) fn get(&self, name: &str) -> Vec<u8> {
        let inner = self.0.0.lock();
        inner.files[inner.names[name]].bytes.clone()
    }

    fn operate<R>(
        &self,
        does: Does,
        name: &str,
        operation: impl FnOnce(&mut Inner) -> io::Result<R>,
    ) -> io::Result<R> {
        let mut inner = self.0.0.lock();
        let before = inner.operations;
        inner.operations += 1;
        if let Some(how) = inner.fails.as_ref().and_then(|fails| fails(does, name, before)) {
            return Err(how.into());
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
}

impl Handle {
    /// What the file is called now; nothing, if it has been removed.
    fn name(&self) -> String {
        let inner = self.sim.0.0.lock();
        let found = inner.names.iter().find(|(_, file)| **file == self.file);
        found.map(|(name, _)| name.clone()).unwrap_or_default()
    }
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
        let file = self.operate(Does::Create, name, |inner| {
            inner.files.push(File::default());
            let file = inner.files.len() - 1;
            inner.names.insert(name.to_owned(), file);
            Ok(file)
        })?;
        Ok(Box::new(Handle { sim: self.clone(), file }))
    }

    fn resume(&self, name: &str, length: u64) -> io::Result<Box<dyn Append>> {
        let file = self.operate(Does::Resume, name, |inner| {
            let file = inner.file(name)?;
            inner.files[file].bytes.truncate(length as usize);
            inner.files[file].synced = length as usize;
            Ok(file)
        })?;
        Ok(Box::new(Handle { sim: self.clone(), file }))
    }

    fn mark(&self, name: &str) -> io::Result<Box<dyn Overwrite>> {
        let file = self.operate(Does::Mark, name, |inner| {
            if !inner.names.contains_key(name) {
                inner.files.push(File::default());
                let file = inner.files.len() - 1;
                inner.names.insert(name.to_owned(), file);
            }
            inner.file(name)
        })?;
        Ok(Box::new(Handle { sim: self.clone(), file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.operate(Does::Rename, to, |inner| {
            let file = inner.file(from)?;
            inner.names.remove(from);
            inner.names.insert(to.to_owned(), file);
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.operate(Does::Remove, name, |inner| {
            inner.file(name)?;
            inner.names.remove(name);
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.operate(Does::SyncFolder, "", |inner| {
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
        let appended = self.sim.operate(Does::Append, &self.name(), |inner| {
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
        if self.name().starts_with("log") {
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
        let synced = self.sim.operate(Does::Sync, &self.name(), |inner| {
            let file = &mut inner.files[self.file];
            assert!(!file.is_spoiled, "a sync after one that has failed says nothing");
            file.synced = file.bytes.len();
            Ok(())
        });
        if synced.is_err() {
            self.sim.0.0.lock().files[self.file].is_spoiled = true;
        }
        synced
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.sim.operate(Does::Cut, &self.name(), |inner| {
            inner.files[self.file].bytes.truncate(length as usize);
            Ok(())
        })
    }
}

impl Overwrite for Handle {
    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sim.operate(Does::Mark, &self.name(), |inner| {
            let file = &mut inner.files[self.file];
            let before = std::mem::replace(&mut file.bytes, bytes.to_vec());
            file.overwritten.get_or_insert(before);
            Ok(())
        })
    }
}
