//! The kubelet in this process: how the cluster starts it, and how the API server reaches it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use kubewright_apiserver::kubelet::{
    Duplex, Kubelet, LogOptions, LogStream, Refusal, Session, Since, Streams, Target, TerminalSize,
};
use kubewright_control_plane::{ControlPlane, ServiceCidrs};
use kubewright_identity::authn::User;
use kubewright_image::Store;
use kubewright_kubelet::container::{self, Runtime, log};
use kubewright_kubelet::{self as kubelet, ProcessNode};
use kubewright_world::{Clock, World};
use tokio::sync::{mpsc, watch};

/// The last part of the names of Services.
pub(crate) const CLUSTER_DOMAIN: &str = "cluster.local";

/// Who carries connections to Services; its role is one of those that every cluster has.
const PROXY: &str = "system:kube-proxy";

/// Where the machine says whom it asks for names.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// A node whose pods run as processes of this machine.
#[derive(Debug)]
pub struct ProcessSettings {
    /// The name of the node; without, the name of this machine, or `process-0`.
    pub name: Option<String>,
    /// What runs containers.
    pub runtime: Arc<dyn Runtime>,
    /// The images of this machine.
    pub images: Option<Store>,
    /// Where the files of pods are kept: volumes, logs. An absolute path.
    pub folder: PathBuf,
    /// Whether pods may have this machine's commands in place of an image that is not there, and its files.
    pub host_access: bool,
}

impl ProcessSettings {
    /// The addresses of the Services of this cluster, of this machine's loopback network; others for each folder.
    pub(crate) fn services(&self) -> Option<ServiceCidrs> {
        let folder = self.folder.to_string_lossy();
        ServiceCidrs::parse(&kubewright_network::service_network(&folder)).ok()
    }

    /// The name of the node.
    pub(crate) fn node(&self) -> String {
        self.name.clone().unwrap_or_else(ProcessNode::default_name)
    }

    /// The kubelet of this node, for a cluster that is reached at `api_server`.
    pub(crate) fn kubelet(
        self,
        client: kube::Client,
        world: World,
        api_server: SocketAddr,
        cluster_dns: Option<IpAddr>,
        resets: Option<watch::Receiver<u64>>,
    ) -> kubelet::Settings {
        kubelet::Settings {
            name: self.node(),
            client,
            world,
            runtime: self.runtime,
            images: self.images,
            folder: self.folder,
            api_server,
            cluster_domain: CLUSTER_DOMAIN.to_owned(),
            cluster_dns: cluster_dns.into_iter().collect(),
            host_access: self.host_access,
            max_pods: kubelet::MAX_PODS,
            resets,
        }
    }
}

/// What the network of the Services of a cluster is made of, for the pods of a node.
pub(crate) fn network(
    control_plane: &ControlPlane,
    node: &str,
    of_node: kube::Client,
    api_server: SocketAddr,
) -> kubewright_network::Settings {
    let user = User::new(PROXY, ["system:authenticated".to_owned()]);
    let first = control_plane.server().engine().settings().service_cidrs.first().address(0);
    kubewright_network::Settings {
        client: control_plane.client_of_component(user, Some("kube-proxy"), false),
        node: node.to_owned(),
        of_node,
        address: kubelet::NODE_ADDRESS,
        api_server,
        domain: CLUSTER_DOMAIN.to_owned(),
        name_server: kubewright_network::name_server(first),
        resolv_conf: std::fs::read_to_string(RESOLV_CONF).unwrap_or_default(),
    }
}

/// Who the kubelet of a node is: the authorizer for nodes says what it may do.
pub(crate) fn user(node: &str) -> User {
    User::new(format!("system:node:{node}"), ["system:nodes", "system:authenticated"])
}

/// Connection from the API server to the kubelet of a node in this process.
#[derive(Debug)]
pub(crate) struct KubeletConnection {
    pub(crate) node: ProcessNode,
    pub(crate) clock: Clock,
}

impl Kubelet for KubeletConnection {
    fn logs(
        &self,
        target: Target,
        options: LogOptions,
    ) -> BoxFuture<'_, Result<BoxStream<'static, std::io::Result<bytes::Bytes>>, Refusal>> {
        let since = options.since.map(|since| match since {
            Since::Time(time) => time,
            Since::Ago(ago) => self.clock.now().saturating_sub(ago).unwrap_or(jiff::Timestamp::MIN),
        });
        let wanted = log::Options {
            follow: options.follow,
            tail: options.tail_lines,
            since,
            timestamps: options.timestamps,
            limit: options.limit_bytes,
            stream: match options.stream {
                LogStream::All => None,
                LogStream::Stdout => Some(log::Stream::Stdout),
                LogStream::Stderr => Some(log::Stream::Stderr),
            },
        };
        Box::pin(async move { self.node.logs(&of(target), wanted, options.previous).map_err(refusal) })
    }

    fn exec(
        &self,
        target: Target,
        command: Vec<String>,
        streams: Streams,
    ) -> BoxFuture<'_, Result<Session, Refusal>> {
        Box::pin(async move {
            let session = self.node.exec(&of(target), command, wanted(streams)).await;
            session.map(connected).map_err(refusal)
        })
    }

    fn attach(&self, target: Target, streams: Streams) -> BoxFuture<'_, Result<Session, Refusal>> {
        Box::pin(async move {
            let session = self.node.attach(&of(target), wanted(streams)).await;
            session.map(connected).map_err(refusal)
        })
    }

    fn port_forward(&self, target: Target, port: u16) -> BoxFuture<'_, Result<Box<dyn Duplex>, Refusal>> {
        Box::pin(async move {
            let stream = self.node.port_forward(&of(target), port).await.map_err(refusal)?;
            Ok(Box::new(stream) as Box<dyn Duplex>)
        })
    }
}

fn of(target: Target) -> kubelet::Target {
    let Target { namespace, pod, uid, container } = target;
    kubelet::Target { namespace, pod, uid, container }
}

fn wanted(streams: Streams) -> container::Streams {
    let Streams { stdin, stdout, stderr, tty } = streams;
    container::Streams { stdin, stdout, stderr, tty }
}

fn refusal(refusal: kubelet::Refusal) -> Refusal {
    match refusal {
        kubelet::Refusal::BadRequest(message) => Refusal::BadRequest(message),
        kubelet::Refusal::NotFound(message) => Refusal::NotFound(message),
        kubelet::Refusal::Failed(message) => Refusal::Failed(message),
    }
}

fn connected(session: container::Session) -> Session {
    let container::Session { stdin, stdout, stderr, resize, exit } = session;
    Session {
        stdin,
        stdout,
        stderr,
        resize: resize.map(resized),
        exit: Box::pin(async move { exit.await.map(|exit| exit.code).map_err(|error| error.to_string()) }),
    }
}

/// Sizes in the API server's words are passed on in the runtime's.
fn resized(to: mpsc::Sender<container::TerminalSize>) -> mpsc::Sender<TerminalSize> {
    let (sender, mut sizes) = mpsc::channel::<TerminalSize>(1);
    tokio::spawn(async move {
        while let Some(TerminalSize { width, height }) = sizes.recv().await {
            if to.send(container::TerminalSize { width, height }).await.is_err() {
                return;
            }
        }
    });
    sender
}
