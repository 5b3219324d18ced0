//! A running cluster.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode};
use kube::Client;
use kubewright_apiserver::http::ApiServer;
use kubewright_controllers::{Builtin, Setup};
use kubewright_identity::authn::User;
use kubewright_identity::webhook::Local;
use kubewright_kubelet::ProcessNode;
use kubewright_runtime::{Backlog, Manager, webhook};
use kubewright_store::Revision;
use kubewright_world::World;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::admin::Admin;
use crate::journal::Journal;
use crate::kubelets::{self, KubeletConnection};
use crate::transport::{self, Caller, ClientOptions};
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
    /// Whether nobody reaches the webhooks that are mounted.
    unplugged: Arc<AtomicBool>,
    /// The names under which webhooks are, or were.
    mounted: Mutex<BTreeSet<String>>,
    journal: Option<Journal>,
    backlog: Backlog,
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
        journal: Option<Journal>,
    ) -> Self {
        let unplugged = Arc::default();
        Self {
            server,
            world,
            shutdown,
            tasks: Vec::new(),
            admin,
            unplugged,
            mounted: Mutex::default(),
            journal,
            backlog: Backlog::default(),
        }
    }

    /// Runs built-in controllers as kube-controller-manager does: they share one cache, and each writes under its own
    /// identity. What its bootstrap role does not allow, it cannot do.
    pub(crate) fn run(&mut self, controllers: &[&Builtin], setup: &Setup) {
        let user = User::new("system:kube-controller-manager", Vec::<String>::new());
        let options = ClientOptions { admin: None, watches_last: true };
        let reader = transport::client(&self.server, self.caller(user), "default", options);
        let mut manager = Manager::in_process(reader, self.world.clone());
        self.backlog = manager.backlog().clone();
        for builtin in controllers {
            let writer = User::new(builtin.identity.user, builtin.identity.groups.iter().copied());
            for controller in builtin.controllers(setup) {
                let caller = Caller {
                    program: Some(HeaderValue::from_static(builtin.identity.program)),
                    ..self.caller(writer.clone())
                };
                let controller = controller.never_paused();
                let writer = transport::client(&self.server, caller, "default", ClientOptions::default());
                manager.add(controller.acting_as(writer));
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
        let caller = kubelets::caller(&name, self.journal.is_some());
        let client = transport::client(&self.server, caller, "default", ClientOptions::default());
        let settings = settings.kubelet(client, self.world.clone(), api_server);
        let (node, run) = ProcessNode::start(settings, self.shutdown.child_token()).await?;
        self.server.kubelets().register(name, Arc::new(KubeletConnection { node, clock: self.world.clock }));
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
        self.client_of(self.caller(user), "default", false)
    }

    /// A client that acts as a service account, under the RBAC of the cluster.
    #[must_use]
    pub fn client_of_service_account(&self, namespace: &str, name: &str) -> Client {
        let user = User::service_account(namespace, name, "");
        self.client_of(self.caller(user), namespace, false)
    }

    /// A client for an operator: it acts as its service account, `program` is its user agent (and so owns the fields that
    /// it writes), and its watches last for ten years and have no bookmarks, so that virtual years are not spent on them.
    /// That is all in which they differ from those of another client.
    ///
    /// # Errors
    /// When `program` cannot be in a header.
    pub fn client_of_operator(
        &self,
        namespace: &str,
        service_account: &str,
        program: &str,
    ) -> Result<Client, http::header::InvalidHeaderValue> {
        let user = User::service_account(namespace, service_account, "");
        let caller = Caller { program: Some(HeaderValue::from_str(program)?), ..self.caller(user) };
        Ok(self.client_of(caller, namespace, true))
    }

    fn caller(&self, user: User) -> Caller {
        Caller { user, program: None, is_noted: self.journal.is_some() }
    }

    fn client_of(&self, caller: Caller, default_namespace: &str, watches_last: bool) -> Client {
        let options = ClientOptions { admin: self.admin.clone(), watches_last };
        transport::client(&self.server, caller, default_namespace, options)
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
        self.server.engine().webhooks().attach(Arc::new(Mounted { host, service, ended, unplugged }));
    }

    /// Whether the API server reaches the webhooks that are mounted; it does until this says otherwise. Where it does
    /// not, it is answered with 503, and does what their `failurePolicy` says.
    pub fn plug_webhooks(&self, reached: bool) {
        self.unplugged.store(!reached, Ordering::Relaxed);
    }

    /// Time, faults and the log of requests, where the cluster was [asked for them](Builder::admin).
    #[must_use]
    pub fn admin(&self) -> Option<&Admin> {
        self.admin.as_ref()
    }

    /// Who wrote what, where the cluster was [asked for it](Builder::journal).
    #[must_use]
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// What the built-in controllers have still to do.
    #[must_use]
    pub fn backlog(&self) -> &Backlog {
        &self.backlog
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
        self.server.engine().store().revision()
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
