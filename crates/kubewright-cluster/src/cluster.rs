//! A running cluster.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use kubewright_control_plane::{ControlPlane, StartError, User, admin::Admin};
use kubewright_controllers::{Builtin, Setup};
use kubewright_identity::webhook::Local;
use kubewright_kubelet::ProcessNode;
use kubewright_network::Network;
use kubewright_runtime::{Backlog, Manager, webhook};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::kubelets::{self, KubeletConnection};
use crate::{Builder, ProcessSettings};

/// A [control plane](ControlPlane) in this process with what acts in it. Dropping it ends everything that it started.
pub struct Cluster {
    control_plane: ControlPlane,
    /// Whether nobody reaches the webhooks that are mounted.
    unplugged: Arc<AtomicBool>,
    /// The names under which webhooks are, or were.
    mounted: Mutex<BTreeSet<String>>,
    backlog: Backlog,
    /// Where names of Services are answered, or why they are not; where there is a node of this machine.
    names: Option<Result<IpAddr, String>>,
}

impl Cluster {
    /// A cluster in a simulated world with all built-in controllers and one simulated node.
    ///
    /// # Errors
    /// [`StartError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// A cluster of other settings.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(control_plane: ControlPlane) -> Self {
        let unplugged = Arc::default();
        let (mounted, backlog) = (Mutex::default(), Backlog::default());
        Self { control_plane, unplugged, mounted, backlog, names: None }
    }

    /// Runs built-in controllers as kube-controller-manager does: they share one cache, and each writes under its own
    /// identity. What its bootstrap role does not allow, it cannot do.
    pub(crate) fn run(&mut self, controllers: &[&Builtin], nodes: usize) {
        let control_plane = &mut self.control_plane;
        let setup = Setup {
            ca: control_plane.ca_pem().to_owned(),
            nodes,
            all_nodes: nodes > 0,
            accounts: Arc::clone(control_plane.service_accounts()),
            authority: control_plane.authority().cloned(),
            kubernetes: control_plane.kubernetes_version(),
            resets: control_plane.admin().map(Admin::resets),
        };
        let user = User::new("system:kube-controller-manager", Vec::<String>::new());
        let reader = control_plane.client_of_component(user, None, true);
        let mut manager = Manager::in_process(reader, control_plane.world().clone());
        // Some read all pods of a namespace, or of all of them, in each pass.
        manager.as_values();
        self.backlog = manager.backlog().clone();
        let kinds = control_plane.server().engine().kinds();
        let has_subject = |builtin: &Builtin| {
            builtin
                .subject()
                .is_none_or(|(group, version, plural)| kinds.get(group, version, plural).is_some())
        };
        for builtin in controllers.iter().filter(|builtin| has_subject(builtin)) {
            let writer = User::new(builtin.identity.user, builtin.identity.groups.iter().copied());
            let program = Some(builtin.identity.program);
            let writer = control_plane.client_of_component(writer, program, false);
            builtin.add_to(&mut manager, &setup, &writer);
        }
        let shutdown = control_plane.shutdown();
        control_plane.spawn(async move {
            if let Err(error) = manager.run(shutdown).await {
                tracing::error!(%error, "the built-in controllers have stopped");
            }
        });
    }

    /// Registers the node of this machine, and runs its kubelet and the network of its Services until the cluster ends.
    pub(crate) async fn run_node(&mut self, settings: ProcessSettings) -> kube::Result<()> {
        let control_plane = &mut self.control_plane;
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let api_server = control_plane.address().unwrap_or(nowhere);
        let (name, world) = (settings.node(), control_plane.world().clone());
        let client = control_plane.client_of_component(kubelets::user(&name), Some("kubelet"), false);
        let resets = control_plane.admin().map(Admin::resets);
        let network =
            Network::open(kubelets::network(control_plane, &name, client.clone(), api_server)).await;
        let names = network.name_server();
        let cluster_dns = names.as_ref().ok().copied();
        control_plane.spawn(network.run(control_plane.shutdown()));
        let settings = settings.kubelet(client, world.clone(), api_server, cluster_dns, resets);
        let (node, run) = ProcessNode::start(settings, control_plane.shutdown()).await?;
        let connection = KubeletConnection { node, clock: world.clock };
        control_plane.server().kubelets().register(name, Arc::new(connection));
        control_plane.spawn(run);
        self.names = Some(names);
        Ok(())
    }

    /// Lets webhooks of this process be called by the API server, without a socket: those of an operator whose
    /// configurations lead to `host`, such as `hooks.default.svc` (a service's name; the service need not exist),
    /// `127.0.0.1` or `127.0.0.1:9443`. Under a paused clock nothing else works.
    ///
    /// ```no_run
    /// # async fn example(cluster: kubewright_cluster::Cluster, webhooks: kubewright_runtime::webhook::Webhooks) {
    /// use kubewright_runtime::webhook::{Reach, Server};
    ///
    /// let server = Server::new(webhooks).in_process(Reach::service("default", "hooks"));
    /// cluster.mount_webhooks("hooks.default.svc", server.service());
    /// tokio::spawn(server.run(cluster.client(), cluster.world().clone(), cluster.shutdown()));
    /// # }
    /// ```
    pub fn mount_webhooks(&self, host: impl Into<String>, service: webhook::Service) {
        self.mount(host.into(), Some(service), CancellationToken::new());
    }

    /// As [`Self::mount_webhooks`] until `ended` is cancelled: then those are called that were mounted under the name before
    /// and are still there, and where there are none the API server is answered with 503.
    pub fn mount_webhooks_until(
        &self,
        host: impl Into<String>,
        service: webhook::Service,
        ended: CancellationToken,
    ) {
        let host = host.into();
        if self.mounted.lock().insert(host.clone()) {
            self.mount(host.clone(), None, CancellationToken::new());
        }
        self.mount(host, Some(service), ended);
    }

    fn mount(&self, host: String, service: Option<webhook::Service>, ended: CancellationToken) {
        let unplugged = Arc::clone(&self.unplugged);
        self.server().engine().webhooks().attach(Arc::new(Mounted { host, service, ended, unplugged }));
    }

    /// Whether the API server reaches the webhooks that are mounted; it does until this says otherwise. Where it does
    /// not, it is answered with 503, and does what their `failurePolicy` says.
    pub fn plug_webhooks(&self, reached: bool) {
        self.unplugged.store(!reached, Ordering::Relaxed);
    }

    /// Where the names of Services are answered, or why they are not. `None` without a node of this machine.
    #[must_use]
    pub fn name_server(&self) -> Option<&Result<IpAddr, String>> {
        self.names.as_ref()
    }

    /// What the built-in controllers have still to do.
    #[must_use]
    pub fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    /// Ends the cluster and waits for what it started: controllers finish what they are at, watches end.
    pub async fn stop(self) {
        self.control_plane.stop().await;
    }
}

impl Deref for Cluster {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        &self.control_plane
    }
}

impl From<Cluster> for ControlPlane {
    fn from(cluster: Cluster) -> Self {
        cluster.control_plane
    }
}

/// Webhooks of this process, under a name.
struct Mounted {
    host: String,
    /// None where nobody serves any more.
    service: Option<webhook::Service>,
    ended: CancellationToken,
    unplugged: Arc<AtomicBool>,
}

impl Local for Mounted {
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        let uri = request.uri();
        let called = uri.host() == Some(&*self.host) || uri.authority().is_some_and(|one| one == &*self.host);
        if !called || self.ended.is_cancelled() {
            return None;
        }
        Some(match &self.service {
            Some(service) if !self.unplugged.load(Ordering::Relaxed) => {
                Box::pin(service.call(request.clone()))
            }
            _ => {
                let mut answer = Response::new(Bytes::new());
                *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                Box::pin(std::future::ready(answer))
            }
        })
    }
}
