//! A running cluster.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response};
use kube::Client;
use kubewright_apiserver::authn::User;
use kubewright_apiserver::http::ApiServer;
use kubewright_apiserver::webhook::Local;
use kubewright_controllers::{Builtin, Setup};
use kubewright_kubelet::ProcessNode;
use kubewright_runtime::{Manager, webhook};
use kubewright_store::Revision;
use kubewright_world::World;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admin::Admin;
use crate::kubelets::{self, Reached};
use crate::transport::{self, Caller};
use crate::{Builder, ProcessSettings, StartError};

/// How long nobody must have written for a cluster to count as settled.
const QUIET: Duration = Duration::from_secs(1);

/// A control plane in this process. Dropping it ends everything that it started.
pub struct Cluster {
    server: ApiServer,
    world: World,
    shutdown: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    admin: Option<Admin>,
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

    pub(crate) fn new(
        server: ApiServer,
        world: World,
        shutdown: CancellationToken,
        admin: Option<Admin>,
    ) -> Self {
        Self { server, world, shutdown, tasks: Vec::new(), admin }
    }

    /// Runs built-in controllers as kube-controller-manager does: they share one cache, and each writes under its own
    /// identity. What its bootstrap role does not allow, it cannot do.
    pub(crate) fn run(&mut self, controllers: &[&Builtin], setup: &Setup) {
        let user = User::new("system:kube-controller-manager", Vec::<String>::new());
        let reader = transport::lasting(&self.server, Caller { user, program: None }, "default");
        let mut manager = Manager::in_process(reader, self.world.clone());
        for builtin in controllers {
            let writer = User::new(builtin.identity.user, builtin.identity.groups.iter().copied());
            for controller in builtin.controllers(setup) {
                let caller = Caller {
                    user: writer.clone(),
                    program: Some(HeaderValue::from_static(builtin.identity.program)),
                };
                let controller = controller.never_paused();
                manager.add(controller.acting_as(transport::client(&self.server, caller, "default")));
            }
        }
        let shutdown = self.shutdown.child_token();
        self.spawn(async move {
            if let Err(error) = manager.run(shutdown).await {
                tracing::error!(%error, "the built-in controllers have stopped");
            }
        });
    }

    /// Registers the node of this machine, and runs its kubelet until the cluster ends.
    pub(crate) async fn run_node(
        &mut self,
        settings: ProcessSettings,
        api_server: SocketAddr,
    ) -> kube::Result<()> {
        let name = settings.node();
        let client = transport::client(&self.server, kubelets::caller(&name), "default");
        let settings = settings.kubelet(client, self.world.clone(), api_server);
        let (node, run) = ProcessNode::start(settings, self.shutdown.child_token()).await?;
        self.server.kubelets().register(name, Arc::new(Reached { node, clock: self.world.clock }));
        self.spawn(run);
        Ok(())
    }

    /// Runs a task for as long as the cluster is there.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(task));
    }

    /// A client that may do everything (`system:masters`), in the namespace `default`.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client_as(administrator())
    }

    /// A client that acts as somebody, under the RBAC of the cluster.
    #[must_use]
    pub fn client_as(&self, user: User) -> Client {
        self.client_of(Caller { user, program: None }, "default")
    }

    /// A client that acts as a service account, under the RBAC of the cluster.
    #[must_use]
    pub fn client_of_service_account(&self, namespace: &str, name: &str) -> Client {
        let user = User::service_account(namespace, name, "");
        self.client_of(Caller { user, program: None }, namespace)
    }

    fn client_of(&self, caller: Caller, default_namespace: &str) -> Client {
        match &self.admin {
            Some(admin) => transport::client_behind(admin, &self.server, caller, default_namespace),
            None => transport::client(&self.server, caller, default_namespace),
        }
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
        self.server.registry().webhooks().attach(Arc::new(Mounted { host: host.into(), service }));
    }

    /// Time, faults and the log of requests, where the cluster was [asked for them](Builder::admin).
    #[must_use]
    pub fn admin(&self) -> Option<&Admin> {
        self.admin.as_ref()
    }

    /// The API as a tower service.
    #[must_use]
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The clock and the dice of the cluster, for operators that run in it.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Cancelled when the cluster ends.
    #[must_use]
    pub fn shutdown(&self) -> CancellationToken {
        self.shutdown.child_token()
    }

    /// Waits until a second of cluster time has passed in which nobody wrote. Under tokio's paused clock that takes no
    /// time. What is due later (a timer of an hour) is not waited for.
    pub async fn settle(&self) {
        let mut seen = self.revision();
        loop {
            tokio::time::sleep(QUIET).await;
            let now = self.revision();
            if now == seen {
                return;
            }
            seen = now;
        }
    }

    /// The newest revision: how often something was written.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.server.registry().store().revision()
    }

    /// Ends the cluster and waits for what it started: controllers finish what they are at, watches end.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        for task in std::mem::take(&mut self.tasks) {
            // A task that panicked has ended too.
            let _ = task.await;
        }
    }
}

/// Webhooks of this process, under a name.
struct Mounted {
    host: String,
    service: webhook::Service,
}

impl Local for Mounted {
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        let uri = request.uri();
        let called = uri.host() == Some(&*self.host) || uri.authority().is_some_and(|one| one == &*self.host);
        called.then(|| {
            let answer: BoxFuture<'static, _> = Box::pin(self.service.call(request.clone()));
            answer
        })
    }
}

/// Who may do everything.
pub(crate) fn administrator() -> User {
    User::new("kubernetes-admin", ["system:masters"])
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.shutdown.cancel();
        for task in &self.tasks {
            task.abort();
        }
    }
}
