//! Where something is made before it is there for all to see.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use super::{lock::Lock, make_folder, removal};

/// The file that is locked as long as a workspace is in use.
const IN_USE: &str = "in-use";

/// A folder of one process, removed when dropped. When the process ends without that, others find it by [`abandoned`].
#[derive(Debug)]
pub(crate) struct Workspace {
    folder: PathBuf,
    files: AtomicU64,
    _in_use: Lock,
}

impl Workspace {
    /// Makes one below `parent`. While this runs, nobody is to look for abandoned ones.
    pub(super) fn new(parent: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        make_folder(parent)?;
        loop {
            let name = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let folder = parent.join(name);
            match fs::create_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    let in_use = Lock::exclusive(&folder.join(IN_USE))?;
                    return Ok(Self { folder, files: AtomicU64::new(0), _in_use: in_use });
                }
            }
        }
    }

    /// A path in it that was not given to anybody yet.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(self.files.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = removal::remove(&self.folder);
    }
}

/// The workspaces below `parent` whose processes have ended, to be removed by dropping them.
pub(super) fn abandoned(parent: &Path) -> io::Result<Vec<Workspace>> {
    let entries = match fs::read_dir(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let folder = entry?.path();
        match Lock::try_exclusive(&folder.join(IN_USE)) {
            Ok(Some(in_use)) => found.push(Workspace { folder, files: AtomicU64::new(0), _in_use: in_use }),
            // Its owner is removing it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(None) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
