//! What the API server asks the kubelet of a node for, on behalf of its clients: logs, commands in containers, and
//! connections to ports of pods.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::Timestamp;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// A container of a pod that exists and is bound to the node that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// The name of the container, of any of the pod's three lists.
    pub container: String,
}

/// Which part of a log is wanted (`PodLogOptions`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Go on with what is written later, until the container has ended.
    pub follow: bool,
    /// Of the container's run before this one.
    pub previous: bool,
    /// Nothing older than this.
    pub since: Option<Since>,
    /// Each line after the time when it was written.
    pub timestamps: bool,
    /// The last lines only.
    pub tail_lines: Option<u64>,
    /// No more than so many bytes.
    pub limit_bytes: Option<u64>,
    /// Which streams.
    pub stream: LogStream,
}

/// From when on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// So long ago.
    Ago(Duration),
    /// This time.
    Time(Timestamp),
}

/// Which of the streams of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogStream {
    /// Both.
    #[default]
    All,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Which streams of a process a client wants.
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

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// A connection to a process: dropped when the client has gone.
pub struct Session {
    /// Its standard input; dropping it ends the input.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// Its standard output.
    pub stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Its standard error.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Takes new sizes of its terminal, where it has one.
    pub resize: Option<mpsc::Sender<TerminalSize>>,
    /// The exit code of the process, once it ended; or why that is not known.
    pub exit: BoxFuture<'static, Result<i32, String>>,
}

/// A connection to a port.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Why a kubelet does not do what it is asked for, with its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The container is not there, waits to start, or has no such log (400).
    #[error("{0}")]
    BadRequest(String),
    /// The pod is not there (404).
    #[error("{0}")]
    NotFound(String),
    /// Anything else (500).
    #[error("{0}")]
    Failed(String),
}

/// The kubelet of a node, as the API server sees it.
pub trait Kubelet: fmt::Debug + Send + Sync {
    /// The log of a container.
    fn logs(
        &self,
        target: Target,
        options: LogOptions,
    ) -> BoxFuture<'_, Result<BoxStream<'static, std::io::Result<Bytes>>, Refusal>>;

    /// A command in a running container.
    fn exec(
        &self,
        target: Target,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'_, Result<Session, Refusal>>;

    /// The first process of a running container.
    fn attach(&self, target: Target, streams: Streams) -> BoxFuture<'_, Result<Session, Refusal>>;

    /// A port of a running pod; [`Target::container`] is empty.
    fn port_forward(&self, target: Target, port: u16) -> BoxFuture<'_, Result<Box<dyn Duplex>, Refusal>>;
}

/// The log of a container, in pieces.
pub type LogStreamed = BoxStream<'static, std::io::Result<Bytes>>;

/// A pod of a simulated node, for what can be known of it though nothing runs.
pub trait SimulatedPod: fmt::Debug + Send + Sync {
    /// The log of a container; `None` where it is not known what it would have written.
    fn logs(&self, container: &str, options: LogOptions) -> Option<Result<LogStreamed, Refusal>>;

    /// A command in a running container; `None` where it is not known what it would do.
    fn exec(&self, container: &str, command: &[String], streams: Streams)
    -> Option<Result<Session, Refusal>>;
}

/// The kubelets that an API server can reach, by the names of their nodes, and which nodes have none because they are
/// simulated. Clones share them.
#[derive(Clone, Default)]
pub struct Kubelets(Arc<Known>);

/// Says of a Node whether nothing runs the pods on it.
type IsSimulated = dyn Fn(&Value) -> bool + Send + Sync;

/// The Pod as it is now; `None` when it is gone.
pub type PodLookup = Arc<dyn Fn() -> Option<Value> + Send + Sync>;

/// The time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Gives who answers for a pod of a simulated node, as far as it is known what would be answered.
type Simulate = dyn Fn(PodLookup, Now) -> Arc<dyn SimulatedPod> + Send + Sync;

#[derive(Default)]
struct Known {
    reached: RwLock<BTreeMap<String, Arc<dyn Kubelet>>>,
    simulated: Option<(Box<IsSimulated>, Box<Simulate>)>,
}

impl Kubelets {
    /// None yet; `is_simulated` says of a Node whether nothing runs the pods on it, and `simulate` gives who answers for such
    /// pods.
    #[must_use]
    pub fn beside(
        is_simulated: impl Fn(&Value) -> bool + Send + Sync + 'static,
        simulate: impl Fn(PodLookup, Now) -> Arc<dyn SimulatedPod> + Send + Sync + 'static,
    ) -> Self {
        let simulated =
            Some((Box::new(is_simulated) as Box<IsSimulated>, Box::new(simulate) as Box<Simulate>));
        Self(Arc::new(Known { reached: RwLock::default(), simulated }))
    }

    /// Whether nothing runs the pods on a node.
    #[must_use]
    pub fn simulated(&self, node: &Value) -> bool {
        self.0.simulated.as_ref().is_some_and(|(is_simulated, _)| is_simulated(node))
    }

    /// Who answers for a pod of a simulated node; `None` where no nodes are simulated.
    #[must_use]
    pub fn simulate(&self, pod: PodLookup, now: Now) -> Option<Arc<dyn SimulatedPod>> {
        self.0.simulated.as_ref().map(|(_, simulate)| simulate(pod, now))
    }

    /// From now on this kubelet answers for this node.
    pub fn register(&self, node: impl Into<String>, kubelet: Arc<dyn Kubelet>) {
        self.0.reached.write().insert(node.into(), kubelet);
    }

    /// The kubelet of a node, where it has one that can be reached.
    #[must_use]
    pub fn of(&self, node: &str) -> Option<Arc<dyn Kubelet>> {
        self.0.reached.read().get(node).cloned()
    }
}

impl fmt::Debug for Kubelets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.reached.read().keys()).finish()
    }
}
