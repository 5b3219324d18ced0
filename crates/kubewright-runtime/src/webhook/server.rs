//! The webhooks, their certificates and their registration, as one thing that runs.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use kube::Client;
use kubewright_serve::tls::ServerTls;
use kubewright_world::World;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    Certificates, Reach, Registration, Service, Trust, Webhook, Webhooks, context::Reading,
    listener::Listener, registration,
};
use crate::{Cache, Error, cache::Connection, metrics::CertificateMetrics};

/// The port of controller-runtime's webhook server.
const PORT: u16 = 9443;

/// Serves webhooks over HTTPS, sees to certificates, and tells the cluster of all that.
///
/// By default: on `127.0.0.1:9443`, with an authority in memory, and registered at that address: for an operator on the
/// machine of its API server. In a cluster:
///
/// ```
/// # use kubewright_runtime::webhook::Webhooks;
/// use kubewright_runtime::webhook::{Certificates, Reach, Server};
/// # fn server(webhooks: Webhooks) -> Server {
/// Server::new(webhooks)
///     .bind(([0, 0, 0, 0], 9443).into())
///     .reached_at(Reach::service("my-system", "my-operator-webhook"))
///     .certificates(Certificates::in_secret("my-system", "my-operator-webhook-ca"))
/// # }
/// ```
///
/// With cert-manager, whose Secret is mounted, and configurations that are installed with the operator:
///
/// ```
/// # use kubewright_runtime::webhook::Webhooks;
/// use kubewright_runtime::webhook::{Certificates, Registration, Server};
/// # fn server(webhooks: Webhooks) -> Server {
/// Server::new(webhooks)
///     .bind(([0, 0, 0, 0], 9443).into())
///     .certificates(Certificates::in_folder("/tmp/k8s-webhook-server/serving-certs"))
///     .registration(Registration::Nothing)
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    webhooks: Webhooks,
    service: Service,
    listen: Option<SocketAddr>,
    reach: Option<Reach>,
    certificates: Certificates,
    registration: Registration,
    trust: Trust,
    client_ca: Option<PathBuf>,
    counts: Option<CertificateMetrics>,
    listening: watch::Sender<Option<SocketAddr>>,
}

/// Whether a server serves; clones tell the same.
#[derive(Clone, Debug)]
pub struct Listening(watch::Receiver<Option<SocketAddr>>);

impl Listening {
    /// The address, with the port that was given; `None` before it serves (a check for readiness).
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        *self.0.borrow()
    }

    /// Waits until it serves; `None` when it has ended and never will.
    pub async fn wait(&mut self) -> Option<SocketAddr> {
        self.0.wait_for(Option::is_some).await.ok().and_then(|address| *address)
    }
}

impl Server {
    /// A server of these webhooks.
    #[must_use]
    pub fn new(webhooks: Webhooks) -> Self {
        Self {
            service: Service::new(&webhooks),
            webhooks,
            listen: Some((Ipv4Addr::LOCALHOST, PORT).into()),
            reach: None,
            certificates: Certificates::in_memory(),
            registration: Registration::default(),
            trust: Trust::Later,
            client_ca: None,
            counts: None,
            listening: watch::Sender::new(None),
        }
    }

    /// Listens there; port 0 is any that is free.
    #[must_use]
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Opens no socket: somebody in this process calls the [service](Self::service) under the names of `reach`. There are
    /// no certificates then.
    #[must_use]
    pub fn in_process(mut self, reach: Reach) -> Self {
        self.listen = None;
        self.reach = Some(reach);
        self
    }

    /// Where the API server finds it. By default at the address that it listens on.
    #[must_use]
    pub fn reached_at(mut self, reach: Reach) -> Self {
        self.reach = Some(reach);
        self
    }

    /// Where its certificate comes from.
    #[must_use]
    pub fn certificates(mut self, certificates: Certificates) -> Self {
        self.certificates = certificates;
        self
    }

    /// What it writes into the cluster.
    #[must_use]
    pub fn registration(mut self, registration: Registration) -> Self {
        self.registration = registration;
        self
    }

    /// Leaves the `caBundle` of what it registers to cert-manager: of its Certificate `<namespace>/<name>`.
    #[must_use]
    pub fn trusted_by_cert_manager(mut self, certificate: impl Into<String>) -> Self {
        self.trust = Trust::CertManager(certificate.into());
        self
    }

    /// Serves only clients that show a certificate of the authority in this file (PEM), which is read when it starts: API servers that are told
    /// which certificate to show, by the kubeconfig of an `AdmissionConfiguration`. Others do not get past the TLS handshake.
    /// (controller-runtime's `ClientCAName`.)
    #[must_use]
    pub fn client_ca(mut self, file: impl Into<PathBuf>) -> Self {
        self.client_ca = Some(file.into());
        self
    }

    /// Counts how often it reads its certificate from files (`certwatcher_*`), as in [`Manager::serve`](crate::Manager::serve).
    pub(crate) fn counting(mut self, counts: CertificateMetrics) -> Self {
        self.counts = Some(counts);
        self
    }

    /// What it serves, as a function: for tests, and for control planes in this process.
    #[must_use]
    pub fn service(&self) -> Service {
        self.service.clone()
    }

    pub(crate) fn parts(&self) -> (&Webhooks, Registration, &Certificates) {
        (&self.webhooks, self.registration, &self.certificates)
    }

    /// Whether it is to open a port.
    pub(crate) fn listens(&self) -> bool {
        self.listen.is_some()
    }

    /// Whether, and where it serves.
    #[must_use]
    pub fn listening(&self) -> Listening {
        Listening(self.listening.subscribe())
    }

    /// Runs until `shutdown`. Requests that are being answered then may finish, for ten seconds.
    ///
    /// The cluster is told of the webhooks when they can be called.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] before anything starts; when the port cannot be had, or a certificate cannot be made.
    pub async fn run(self, client: Client, world: World, shutdown: CancellationToken) -> Result<(), Error> {
        self.check()?;
        self.serve_without_caches(&client, &world, &shutdown)?;
        let client_ca = self.client_authority()?;
        let listener = match self.listen {
            Some(address) => Some(Listener::bind(address).await?),
            None => None,
        };
        let reach = self.reach(listener.as_ref().map(|listener| listener.address))?;
        let (shown, newest) = watch::channel(None);
        let Some(listener) = listener else {
            let end = async {
                shutdown.cancelled().await;
                Ok(())
            };
            return self.register(&client, &reach, &newest, end).await;
        };
        let names = self.names(&reach, listener.address);
        let certificates =
            self.certificates.clone().run(&client, &world, &names, self.counts.as_ref(), &shown);
        let serve = async {
            let mut first = newest.clone();
            // The sender lives as long as this function.
            let _ = first.wait_for(Option::is_some).await;
            self.listening.send_replace(Some(listener.address));
            tracing::info!(address = %listener.address, "serving webhooks");
            let served = listener.serve(self.service.clone(), newest.clone(), client_ca, shutdown.clone());
            self.register(&client, &reach, &newest, served).await
        };
        let result = tokio::select! {
            biased;
            ended = certificates => ended,
            ended = serve => ended,
            // Before there is a certificate; a listener ends by itself.
            () = shutdown.cancelled(), if self.listening.borrow().is_none() => Ok(()),
        };
        self.listening.send_replace(None);
        result
    }

    /// Keeps the cluster told until `end`.
    async fn register(
        &self,
        client: &Client,
        reach: &Reach,
        newest: &watch::Receiver<Option<super::certificates::Shown>>,
        end: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        let kept = registration::keep(&self.webhooks, client, self.registration, reach, &self.trust, newest);
        tokio::select! {
            biased;
            ended = end => ended,
            failed = kept => failed,
        }
    }

    /// # Errors
    /// [`Error::Misconfigured`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.webhooks.check()?;
        let mistake = self.reach.as_ref().and_then(Reach::mistake).or_else(|| self.certificates.mistake());
        mistake.map_or(Ok(()), |mistake| Err(Error::Misconfigured(mistake)))
    }

    /// Who vouches for clients, in PEM.
    fn client_authority(&self) -> Result<Option<Vec<u8>>, Error> {
        let Some(file) = self.client_ca.as_ref().filter(|_| self.listens()) else { return Ok(None) };
        let wrong = |error: &dyn std::fmt::Display| {
            Error::Misconfigured(format!("webhooks: the authority of clients, {}: {error}", file.display()))
        };
        let authority = std::fs::read(file).map_err(|error| wrong(&error))?;
        ServerTls::showing_newest(|| None).requiring_clients_of(&authority).map_err(|error| wrong(&error))?;
        Ok(Some(authority))
    }

    /// Lets handlers read what these caches hold.
    pub(crate) fn serve_with(&self, client: &Client, world: &World, cache: &Cache) {
        self.service.serve_with(client, world, cache);
    }

    /// Lets handlers work with a client, if no manager did; an error where one wants to read caches.
    fn serve_without_caches(
        &self,
        client: &Client,
        world: &World,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        let none = Cache::new(client.clone(), Connection::Network, world.clone(), shutdown.clone());
        let served = self.service.serve_with(client, world, &none);
        let reading = self.webhooks.admission.iter().filter(|webhook| !webhook.reads.is_empty());
        match reading.map(Webhook::path).find(|path| served.contains(path)) {
            None => Ok(()),
            Some(path) => Err(Error::Misconfigured(format!(
                "webhook {path}: it reads caches, and there are none without a manager: hand the server to Manager::serve"
            ))),
        }
    }

    /// The kinds that its webhooks read.
    pub(crate) fn reads(&self) -> impl Iterator<Item = &Reading> {
        self.webhooks.admission.iter().flat_map(|webhook| &webhook.reads)
    }

    fn reach(&self, address: Option<SocketAddr>) -> Result<Reach, Error> {
        match (&self.reach, address) {
            (Some(reach), _) => Ok(reach.clone()),
            (None, Some(address)) if !address.ip().is_unspecified() => {
                Ok(Reach::Url(format!("https://{address}")))
            }
            // Nobody is told of it.
            (None, Some(address)) if self.registration == Registration::Nothing => {
                Ok(Reach::Url(format!("https://{address}")))
            }
            (None, _) => Err(Error::Misconfigured(
                "webhooks: a server on all addresses has to say where it is reached: Server::reached_at"
                    .to_owned(),
            )),
        }
    }

    /// The names that its certificate is for.
    fn names(&self, reach: &Reach, address: SocketAddr) -> Vec<String> {
        let mut names = reach.names();
        if !address.ip().is_unspecified() && !names.contains(&address.ip().to_string()) {
            names.push(address.ip().to_string());
        }
        names
    }
}
