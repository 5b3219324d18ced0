//! A running control plane.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use kube::Client;
use kubewright_apiserver::http::ApiServer;
use kubewright_identity::authn::{ServiceAccounts, User};
use kubewright_serve::authority::Authority;
use kubewright_spec::Version as KubernetesVersion;
use kubewright_store::Revision;
use kubewright_world::World;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::Builder;
use crate::admin::Admin;
use crate::journal::Journal;
use crate::transport::{self, Caller, ClientOptions};

/// How long nobody must have written for a control plane to count as settled.
const QUIET: Duration = Duration::from_secs(1);

/// A control plane in this process. Dropping it ends everything that it started.
pub struct ControlPlane {
    pub(crate) server: ApiServer,
    pub(crate) world: World,
    pub(crate) shutdown: CancellationToken,
    pub(crate) tasks: Vec<JoinHandle<()>>,
    pub(crate) admin: Option<Admin>,
    pub(crate) journal: Option<Journal>,
    pub(crate) accounts: Arc<ServiceAccounts>,
    /// What is told of the endpoint; none where there is no socket. In a box: most control planes of tests have none.
    pub(crate) socket: Option<Box<Socket>>,
}

/// What is known of an endpoint that serves.
pub(crate) struct Socket {
    pub(crate) address: SocketAddr,
    pub(crate) ca: String,
    pub(crate) authority: Arc<Authority>,
}

impl ControlPlane {
    /// A control plane of settings that are made; in a simulated world unless another is said.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Runs a task for as long as the control plane is there.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(task));
    }

    /// A client that may do everything (`system:masters`), in the namespace `default`.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client_as(administrator())
    }

    /// A client that acts as somebody, under the RBAC of the control plane.
    #[must_use]
    pub fn client_as(&self, user: User) -> Client {
        self.client_of(self.caller(user), "default", false)
    }

    /// A client that acts as a service account, under the RBAC of the control plane.
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

    /// A client for a component that acts in the control plane, as `user`: no fault is in its way. Where `program` is given it is
    /// its user agent; its watches last for ten years where `watches_last` says so.
    #[must_use]
    pub fn client_of_component(
        &self,
        user: User,
        program: Option<&'static str>,
        watches_last: bool,
    ) -> Client {
        let caller = Caller { program: program.map(HeaderValue::from_static), ..self.caller(user) };
        transport::client(&self.server, caller, "default", ClientOptions { admin: None, watches_last })
    }

    fn caller(&self, user: User) -> Caller {
        Caller { user, program: None, is_noted: self.journal.is_some() }
    }

    fn client_of(&self, caller: Caller, default_namespace: &str, watches_last: bool) -> Client {
        let options = ClientOptions { admin: self.admin.clone(), watches_last };
        transport::client(&self.server, caller, default_namespace, options)
    }

    /// Time, faults and the log of requests, where it was [asked for them](Builder::admin).
    #[must_use]
    pub fn admin(&self) -> Option<&Admin> {
        self.admin.as_ref()
    }

    /// Who wrote what, where it was [asked for it](Builder::journal).
    #[must_use]
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// How tokens of service accounts are issued and verified.
    #[must_use]
    pub fn service_accounts(&self) -> &Arc<ServiceAccounts> {
        &self.accounts
    }

    /// The version of Kubernetes whose API it serves.
    #[must_use]
    pub fn kubernetes_version(&self) -> KubernetesVersion {
        self.server.engine().kinds().version()
    }

    /// Where it serves; none where there is no socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.socket.as_ref().map(|socket| socket.address)
    }

    /// The certificates by which clients know the server; empty where there is no socket.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        self.socket.as_ref().map_or("", |socket| &socket.ca)
    }

    /// The endpoint's own authority; none where there is no socket.
    #[must_use]
    pub fn authority(&self) -> Option<&Arc<Authority>> {
        self.socket.as_ref().map(|socket| &socket.authority)
    }

    /// The API as a tower service.
    #[must_use]
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Its clock and its dice, for operators that run in it.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Cancelled when it ends.
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

    /// Ends it and waits for what was started in it: controllers finish what they are at, watches end.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        for task in std::mem::take(&mut self.tasks) {
            // A task that panicked has ended too.
            let _ = task.await;
        }
    }
}

/// Who may do everything.
pub(crate) fn administrator() -> User {
    User::new("kubernetes-admin", ["system:masters"])
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.shutdown.cancel();
        for task in &self.tasks {
            task.abort();
        }
    }
}
