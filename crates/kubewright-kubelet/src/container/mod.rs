//! Containers, as the kubelet asks for them: what is to run ([`Spec`]), what runs ([`Container`]), and what runs it
//! ([`Runtime`]). What a kubelet asks of containerd by CRI, less sandboxes and images.

#[cfg(unix)]
pub mod helper;
pub mod log;
#[cfg(unix)]
mod process;
pub(crate) mod sysctls;
#[cfg(unix)]
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

#[cfg(unix)]
pub use process::ProcessRuntime;

/// What a container sees as `/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// The unpacked layers of an image, which several containers share: what a container writes, it alone sees.
    Image(PathBuf),
    /// This machine's own files: for commands of this machine, where its user allows that.
    Host,
}

/// A file or folder of this machine that a container sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Where it is on this machine: a path that no container can change.
    pub source: PathBuf,
    /// What of it is seen; all of it where this is empty. Containers may have put links into the source: they are followed when
    /// the container starts, and one that leads out of the source keeps it from starting.
    pub sub_path: PathBuf,
    /// Where the container sees it: absolute. It need not be there in the image.
    pub target: PathBuf,
    /// Whether the container cannot write to it.
    pub read_only: bool,
}

/// Who the process is, inside the container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The further groups.
    pub groups: Vec<u32>,
}

/// A container that is to run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What nobody else is called: letters, digits, `-` and `_`.
    pub id: String,
    /// Its files.
    pub root: Root,
    /// Whether it may write to [`Spec::root`] (`readOnlyRootFilesystem`).
    pub read_only_root: bool,
    /// The program and its arguments; a program without `/` is looked for in the container's `PATH`. Never empty.
    pub command: Vec<String>,
    /// All of its environment: nothing of this machine's is added.
    pub environment: BTreeMap<String, String>,
    /// Where it starts; made where it is missing.
    pub working_directory: PathBuf,
    /// Who it is.
    pub identity: Identity,
    /// What it is told that this machine is called.
    pub hostname: String,
    /// Kernel parameters of its ipc namespace, by their names with dots.
    pub sysctls: BTreeMap<String, String>,
    /// What else it sees. A later one may lie inside an earlier one.
    pub mounts: Vec<Mount>,
    /// Whether somebody may write to its standard input later ([`Container::attach`]); else it is empty.
    pub stdin: bool,
    /// Whether standard input ends when the first who attached leaves.
    pub stdin_once: bool,
    /// Whether it runs on a terminal.
    pub tty: bool,
    /// Where what it writes is kept, in CRI's format of log files (`k8s.io/cri-api`); made anew, kept after its end.
    pub log: PathBuf,
}

/// Why a container did not start, in the kubelet's words for a waiting container.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The runtime could not prepare it (`CreateContainerError`).
    #[error("{0}")]
    Create(String),
    /// It was prepared, and its program could not be started (`RunContainerError`): not there, not executable.
    #[error("{0}")]
    Run(String),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; 128 and the number of the signal where one ended it, as runc tells it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether this machine ended it because it took too much memory.
    pub out_of_memory: bool,
    /// When that was.
    pub at: SystemTime,
}

/// A signal, by its number on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(pub i32);

impl Signal {
    /// Asks to end.
    pub const TERMINATE: Self = Self(15);
    /// Ends.
    pub const KILL: Self = Self(9);
}

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// Which streams somebody wants to have of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// Write to it.
    pub stdin: bool,
    /// Read what it writes.
    pub stdout: bool,
    /// Read what it complains of. With a terminal, both come out of `stdout`.
    pub stderr: bool,
    /// On a terminal.
    pub tty: bool,
}

/// A connection to a process. Dropping it leaves an attached container running, and ends a process of [`Container::exec`].
pub struct Session {
    /// Its standard input; dropping it ends the input.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// Its standard output.
    pub stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Its standard error.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Takes new sizes of its terminal, where it has one.
    pub resize: Option<mpsc::Sender<TerminalSize>>,
    /// How it ended, once it did. A process of [`Container::exec`] ends when this is dropped.
    pub exit: BoxFuture<'static, Result<Exit, ExecError>>,
}

/// Why a command was not run in a container.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecError {
    /// The container has ended.
    #[error("container not running")]
    NotRunning,
    /// The program could not be started.
    #[error("{0}")]
    Start(String),
    /// It was ended because it took longer than it was given.
    #[error("failed to exec in container: timeout {}s exceeded: context deadline exceeded", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The connection to it broke.
    #[error("{0}")]
    Broken(String),
}

/// What the machine lets a runtime keep apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// The namespaces that containers have of their own, such as `user`, `mount`, `pid`.
    pub namespaces: Vec<&'static str>,
    /// What is not kept apart though it was tried, each with the machine's reason, for a person.
    pub missing: Vec<String>,
}

/// What runs containers.
pub trait Runtime: fmt::Debug + Send + Sync {
    /// Starts a container.
    fn start(&self, spec: Spec) -> BoxFuture<'_, Result<Arc<dyn Container>, StartError>>;

    /// What keeps its containers apart from this machine.
    fn isolation(&self) -> Isolation;
}

/// A container that was started. Dropping it does not end it.
pub trait Container: fmt::Debug + Send + Sync {
    /// When it was started.
    fn started_at(&self) -> SystemTime;

    /// How it ended, once it did: for everybody who asks, also later. By then its log is whole, and no process of it is left.
    fn exited(&self) -> BoxFuture<'static, Exit>;

    /// Its log as it grows, for [`log::read`] to follow; `None` where this runtime keeps none.
    fn log(&self) -> Option<log::Growing>;

    /// Sends a signal to its first process; nothing happens when it has ended. [`Signal::KILL`] ends all its processes.
    fn signal(&self, signal: Signal);

    /// Runs a further command in it, which ends with it, and after `timeout` where one is given.
    fn exec(
        &self,
        command: Vec<String>,
        streams: Streams,
        timeout: Option<Duration>,
    ) -> BoxFuture<'_, Result<Session, ExecError>>;

    /// Connects to its first process: what it writes from now on, and its standard input where [`Spec::stdin`] is set.
    fn attach(&self, streams: Streams) -> BoxFuture<'_, Result<Session, ExecError>>;
}
