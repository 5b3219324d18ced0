//! A node whose pods run on this machine: how it is started, and what it is asked for.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::ContainerStatus;
use kube::Client;
use kubewright_image::Store;
use kubewright_meta::text::is_dns_subdomain;
use kubewright_world::World;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::container::{Container, Isolation, Runtime, Session, Streams, log};
use crate::events::EventRecorder;
use crate::images::Images;
use crate::inputs::Node;
use crate::node::{Heartbeat, Identity, Machine, NODE_ADDRESS, PodTable, Pods, allocatable};
use crate::pod::{NodeContext, Preparer, View};
use crate::probe;

/// How many pods a kubelet takes unless it is told otherwise (`maxPods`).
pub const MAX_PODS: usize = 110;
/// How long a port of a pod may take to answer.
const CONNECT: Duration = Duration::from_secs(10);

/// What a [`ProcessNode`] is made of.
pub struct Settings {
    /// The name of the node.
    pub name: String,
    /// Acts as `system:node:<name>` in the group `system:nodes`, or as somebody with the rights of such a one.
    pub client: Client,
    /// Its clock and dice.
    pub world: World,
    /// What runs containers.
    pub runtime: Arc<dyn Runtime>,
    /// The images of this machine.
    pub images: Option<Store>,
    /// Where the files of pods are kept: volumes, logs. Absolute.
    pub folder: PathBuf,
    /// Where the API server listens.
    pub api_server: SocketAddr,
    /// The last part of the names of Services, such as `cluster.local`.
    pub cluster_domain: String,
    /// Where the names of Services are answered (`--cluster-dns`); nowhere, where none is given.
    pub cluster_dns: Vec<IpAddr>,
    /// Whether pods may have this machine's commands in place of an image that is not there, and its files.
    pub host_access: bool,
    /// How many pods it takes.
    pub max_pods: usize,
    /// Tells that the cluster was made as it was at its start: the node registers again then.
    pub resets: Option<watch::Receiver<u64>>,
}

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

/// Which container of which pod is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The namespace of the pod.
    pub namespace: String,
    /// The name of the pod.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// The name of the container; empty where the pod itself is meant.
    pub container: String,
}

/// A node whose pods are processes of this machine. Clones are the same.
#[derive(Clone)]
pub struct ProcessNode {
    table: PodTable,
    node: Arc<Node>,
    runtime: Arc<dyn Runtime>,
}

impl ProcessNode {
    /// What a node of this machine is called unless somebody names it: the machine's name, or `process-0` where that is no
    /// name for a node.
    #[must_use]
    pub fn default_name() -> String {
        let name = Machine::read(Path::new("/")).hostname;
        if is_dns_subdomain(&name) { name } else { "process-0".to_owned() }
    }

    /// Registers the node. The future runs its pods until `shutdown` is cancelled, and then until their containers have
    /// ended; dropping it ends them too.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn start(
        settings: Settings,
        shutdown: CancellationToken,
    ) -> kube::Result<(Self, impl Future<Output = ()> + Send)> {
        let Settings {
            name,
            client,
            world,
            runtime,
            images,
            folder,
            api_server,
            cluster_domain,
            cluster_dns,
            host_access,
            max_pods,
            resets,
        } = settings;
        let host = IpAddr::V4(NODE_ADDRESS);
        let machine = Machine::read(&folder);
        let node = Arc::new(Node {
            folder,
            api_server,
            addresses: vec![host],
            allocatable: allocatable(&machine, max_pods),
            cluster_domain,
            cluster_dns,
            host_access,
        });
        let (events, write_events) = EventRecorder::new(client.clone(), world.clone(), name.as_str().into());
        let identity = Identity { name, machine, address: host, max_pods };
        let heartbeat =
            Heartbeat { client: client.clone(), world: world.clone(), identity, events: events.clone() };
        let registered = heartbeat.register().await?;
        let preparer = Preparer {
            client: client.clone(),
            world: world.clone(),
            images: Images { store: images, host_commands: host_access },
            node: Arc::clone(&node),
        };
        let context = NodeContext { client, world, runtime: Arc::clone(&runtime), preparer, events, host };
        let table = PodTable::default();
        let pods = Pods::new(context, registered.clone(), table.clone(), shutdown);
        let run = async move {
            tokio::select! {
                biased;
                () = pods.run() => {}
                () = heartbeat.run(registered, resets) => {}
                () = write_events => {}
            }
        };
        Ok((Self { table, node, runtime }, run))
    }

    /// What keeps the containers of the node apart from this machine.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.runtime.isolation()
    }

    /// The log of a container; `previous`, of its run before this one.
    ///
    /// # Errors
    /// The container, or that run of it, is not there or has not started (`validateContainerLogStatus`).
    pub fn logs(
        &self,
        target: &Target,
        options: log::Options,
        previous: bool,
    ) -> Result<BoxStream<'static, std::io::Result<Bytes>>, Refusal> {
        let view =
            self.pod(target).ok_or_else(|| Refusal::NotFound(format!("pod \"{}\" not found", target.pod)))?;
        let run = run_of_log(target, view.status_of(&target.container), previous)?;
        let path = self.node.log(&view.pod(), &target.container, run);
        let container = if previous { None } else { view.container(&target.container) };
        match log::read(&path, options, container.and_then(|container| container.log())) {
            Ok(log) => Ok(log.boxed()),
            Err(error) => {
                Err(Refusal::BadRequest(format!("failed to open log file {:?}: {error}", path.display())))
            }
        }
    }

    /// Runs a command in a running container.
    ///
    /// # Errors
    /// It does not run, or the command cannot be started.
    pub async fn exec(
        &self,
        target: &Target,
        command: Vec<String>,
        streams: Streams,
    ) -> Result<Session, Refusal> {
        let container = self.container(target)?;
        container.exec(command, streams, None).await.map_err(|error| Refusal::Failed(error.to_string()))
    }

    /// Connects to the first process of a running container.
    ///
    /// # Errors
    /// It does not run.
    pub async fn attach(&self, target: &Target, streams: Streams) -> Result<Session, Refusal> {
        let container = self.container(target)?;
        container.attach(streams).await.map_err(|error| Refusal::Failed(error.to_string()))
    }

    /// Connects to a port of a running pod: at its address, or where nothing listens there, at `127.0.0.1`, which is the
    /// same for all pods.
    ///
    /// # Errors
    /// The pod does not run, or nothing listens.
    pub async fn port_forward(&self, target: &Target, port: u16) -> Result<TcpStream, Refusal> {
        let address = self.pod(target).and_then(|view| view.address());
        let address = address.ok_or_else(|| {
            Refusal::NotFound(format!("pod not found (\"{}_{}\")", target.pod, target.namespace))
        })?;
        match probe::connect(&address.to_string(), port, CONNECT).await {
            Ok(stream) => Ok(stream),
            Err(problem) => match probe::connect("127.0.0.1", port, CONNECT).await {
                Ok(stream) => Ok(stream),
                Err(_) => {
                    Err(Refusal::Failed(format!("failed to connect to port {port} of the pod: {problem}")))
                }
            },
        }
    }

    fn pod(&self, target: &Target) -> Option<View> {
        self.table.find(&target.uid)
    }

    fn container(&self, target: &Target) -> Result<Arc<dyn Container>, Refusal> {
        let container = self.pod(target).and_then(|view| view.container(&target.container));
        container.ok_or_else(|| Refusal::Failed(format!("container not found (\"{}\")", target.container)))
    }
}

impl fmt::Debug for ProcessNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessNode").field("folder", &self.node.folder).finish_non_exhaustive()
    }
}

/// Which run of a container has the log that is asked for.
fn run_of_log(target: &Target, status: Option<ContainerStatus>, previous: bool) -> Result<u32, Refusal> {
    let (container, pod) = (&target.container, &target.pod);
    let refuse = |message: String| Err(Refusal::BadRequest(message));
    let named = format!("container \"{container}\" in pod \"{pod}\"");
    let Some(status) = status else { return refuse(format!("{named} is not available")) };
    let now = u32::try_from(status.restart_count).unwrap_or_default();
    let state = status.state.unwrap_or_default();
    let last = status.last_state.and_then(|state| state.terminated);
    let last_ran = last.as_ref().is_some_and(|last| last.container_id.is_some());
    // While it waits to start again, the run that ended last is the newest.
    let last_run = if state.waiting.is_some() { now } else { now.saturating_sub(1) };
    if previous {
        return match last_ran {
            true => Ok(last_run),
            false => refuse(format!("previous terminated {named} not found")),
        };
    }
    match (state.running, state.terminated, state.waiting) {
        (Some(_), ..) => Ok(now),
        (_, Some(ended), _) if ended.container_id.is_some() => Ok(now),
        (_, Some(_), _) if last_ran => Ok(last_run),
        _ if last_ran => Ok(last_run),
        (_, Some(_), _) => refuse(format!("{named} is terminated")),
        _ if last.is_some() => refuse(format!("{named} is terminated")),
        (_, _, waiting) => {
            let why = match waiting.and_then(|waiting| waiting.reason).unwrap_or_default().as_str() {
                "ErrImagePull" => "image can't be pulled".to_owned(),
                "ImagePullBackOff" => "trying and failing to pull image".to_owned(),
                reason => reason.to_owned(),
            };
            refuse(format!("{named} is waiting to start: {why}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(status: serde_json::Value, previous: bool) -> Result<u32, String> {
        let target = Target {
            namespace: "n".to_owned(),
            pod: "p".to_owned(),
            uid: String::new(),
            container: "c".to_owned(),
        };
        let mut status = status;
        for (field, value) in [("name", json!("c")), ("image", json!("")), ("imageID", json!(""))] {
            status[field] = value;
        }
        status["ready"] = json!(false);
        let status = kubewright_objects::from_value(status).expect("a status");
        run_of_log(&target, Some(status), previous).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn the_log_of_the_newest_run_is_told_and_that_of_the_one_before_on_request() {
        let ended = json!({"terminated": {"exitCode": 1, "containerID": "kubewright://x"}});
        let running = json!({"restartCount": 2, "state": {"running": {}}, "lastState": ended});
        assert_eq!((run(running.clone(), false), run(running, true)), (Ok(2), Ok(1)));
        let waiting = json!({"restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended});
        assert_eq!((run(waiting.clone(), false), run(waiting, true)), (Ok(2), Ok(2)));
        let first = json!({"restartCount": 0, "state": {"waiting": {"reason": "ErrImagePull"}}});
        assert_eq!(
            run(first.clone(), false),
            Err("container \"c\" in pod \"p\" is waiting to start: image can't be pulled".to_owned())
        );
        assert_eq!(
            run(first, true),
            Err("previous terminated container \"c\" in pod \"p\" not found".to_owned())
        );
    }

    #[test]
    fn a_machine_without_a_proper_name_is_process_0() {
        assert!(is_dns_subdomain("my-machine.local") && is_dns_subdomain("a1"));
        for bad in ["", "My", "-a", "a_b", "a..b", "(none)"] {
            assert!(!is_dns_subdomain(bad), "{bad}");
        }
    }
}
