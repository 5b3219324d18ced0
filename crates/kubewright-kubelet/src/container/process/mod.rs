//! Runs containers as processes of this machine.

mod exec;
mod input;
mod mapping;
mod output;
mod probe;
mod running;
mod shim;
mod streams;
mod terminal;

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use kubewright_world::Clock;
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::wire::Namespaces;
use super::{Container, Isolation, Runtime, Spec, StartError};
use crate::files;

/// The most containers at a time. Each takes two processes and up to eight open files of this one.
const MOST_CONTAINERS: usize = 512;

/// The most commands in containers at a time.
const MOST_SESSIONS: usize = 256;

/// Runs each container as processes of this machine, kept apart by what namespaces the machine allows its user.
///
/// As root, a container's users are the machine's, without power over it: they have a user namespace, what containerd leaves
/// them of root's capabilities, and see nothing of the machine's files but what they are given. As another user, a container
/// has one user, this one, whatever it is called inside; it cannot become another.
///
/// All containers share the machine's network. None of them outlives this process, however it ends.
#[derive(Debug)]
pub struct ProcessRuntime {
    machine: Arc<Machine>,
}

/// What all containers of a runtime share.
#[derive(Debug)]
struct Machine {
    directory: PathBuf,
    launcher: PathBuf,
    clock: Clock,
    namespaces: Namespaces,
    /// Whether containers may have any user.
    any_user: bool,
    isolation: Isolation,
    ids: Mutex<BTreeSet<String>>,
    containers: Arc<Semaphore>,
    sessions: Arc<Semaphore>,
    running: TaskTracker,
    closed: CancellationToken,
    /// Held as long as the directory is this runtime's.
    _lock: File,
}

impl ProcessRuntime {
    /// A runtime that keeps what its containers write to their files in `directory`, which is made, and emptied of what an
    /// earlier runtime left there. `launcher` is a program whose `main` first calls [`helper::called_as`](super::helper::called_as).
    ///
    /// # Errors
    /// The directory cannot be used, or is another runtime's, or the launcher cannot be started.
    pub async fn open(directory: &Path, launcher: PathBuf, clock: Clock) -> io::Result<Self> {
        let lock = claim(directory)?;
        let found = probe::run(&launcher, &directory.join("probe")).await?;
        let machine = Machine {
            directory: directory.to_owned(),
            launcher,
            clock,
            namespaces: found.namespaces,
            any_user: found.any_user,
            isolation: found.isolation(),
            ids: Mutex::default(),
            containers: Arc::new(Semaphore::new(MOST_CONTAINERS)),
            sessions: Arc::new(Semaphore::new(MOST_SESSIONS)),
            running: TaskTracker::new(),
            closed: CancellationToken::new(),
            _lock: lock,
        };
        Ok(Self { machine: Arc::new(machine) })
    }

    /// Ends all containers, and returns when they have ended. No container starts after that.
    pub async fn close(&self) {
        self.machine.closed.cancel();
        self.machine.running.close();
        self.machine.running.wait().await;
    }
}

impl Drop for ProcessRuntime {
    fn drop(&mut self) {
        self.machine.closed.cancel();
    }
}

impl Runtime for ProcessRuntime {
    fn start(&self, spec: Spec) -> BoxFuture<'_, Result<Arc<dyn Container>, StartError>> {
        Box::pin(async move {
            let container: Arc<dyn Container> = running::start(&self.machine, spec).await?;
            Ok(container)
        })
    }

    fn isolation(&self) -> Isolation {
        self.machine.isolation.clone()
    }
}

/// Makes a directory this runtime's, and empties it.
fn claim(directory: &Path) -> io::Result<File> {
    fs::create_dir_all(directory)?;
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    let lock = File::options().create(true).truncate(false).write(true).open(directory.join("lock"))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::WOULDBLOCK => {
            let text = format!("{} belongs to another runtime", directory.display());
            io::Error::new(io::ErrorKind::ResourceBusy, text)
        }
        error => error.into(),
    })?;
    for entry in fs::read_dir(directory)?.flatten() {
        if entry.file_type()?.is_dir() {
            // What cannot be removed stays.
            let _ = files::remove(&entry.path());
        }
    }
    Ok(lock)
}
