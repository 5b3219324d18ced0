//! The API of a cluster over HTTPS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kubewright_apiserver::http::listener::{BindError, Limits, Listener};
use kubewright_identity::trust::{Bundle, BundleError};
use kubewright_serve::authority::{Authority, AuthorityError, Credentials};
use kubewright_serve::tls::{ServerTls, ServingCertificate, TlsError};
use kubewright_world::World;

use crate::admin::service::AdminService;
use crate::{ControlPlane, DataDirectory, DataError};

/// The names by which clients may call the server, besides its address.
const NAMES: [&str; 6] = [
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Error of an endpoint that could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The port cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A certificate cannot be made.
    #[error("the cluster's certificates cannot be made: {0}")]
    Authority(#[from] AuthorityError),
    /// The certificate authority was not kept well.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The authority's own certificate cannot be trusted.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// What a server shows, and whom it trusts; all is made where nothing is given.
#[derive(Debug, Default)]
pub struct Serving {
    /// The server's certificate and key. None: one for loopback addresses and the names of the service `kubernetes`,
    /// signed by an authority of the endpoint's own.
    pub certificate: Option<ServingCertificate>,
    /// The client certificates that these vouch for say who a client is, beside those that the endpoint issues itself.
    pub client_ca: Option<Bundle>,
}

/// A port that is taken for a cluster, with a certificate authority of its own.
pub struct Endpoint {
    listener: Listener,
    authority: Arc<Authority>,
    certificate: ServingCertificate,
    /// What clients are given to know the server by.
    ca: String,
    clients: Bundle,
}

impl Endpoint {
    /// Takes a port (0: any that is free) and makes the certificates.
    ///
    /// # Errors
    /// When another program has the port, or there is no entropy.
    pub async fn bind(address: SocketAddr, world: &World) -> Result<Self, ServeError> {
        Self::bind_with(address, world, Serving::default()).await
    }

    /// As [`Self::bind`], with certificates that are given.
    ///
    /// # Errors
    /// As [`Self::bind`]. Whether the key is the certificate's is seen when the cluster starts.
    pub async fn bind_with(address: SocketAddr, world: &World, serving: Serving) -> Result<Self, ServeError> {
        Self::with_authority(address, Authority::new(world)?, serving).await
    }

    /// As [`Self::bind`], with the certificate authority that `data` keeps: who has trusted it goes on to do so.
    ///
    /// # Errors
    /// As [`Self::bind`], or when the authority was not kept well.
    pub async fn bind_with_data(
        address: SocketAddr,
        world: &World,
        data: &DataDirectory,
    ) -> Result<Self, ServeError> {
        Self::with_authority(address, data.authority(world)?, Serving::default()).await
    }

    async fn with_authority(
        address: SocketAddr,
        authority: Authority,
        serving: Serving,
    ) -> Result<Self, ServeError> {
        let listener = Listener::bind(address).await?;
        let (certificate, ca) = match serving.certificate {
            Some(given) => {
                let ca = given.chain_pem();
                (given, ca)
            }
            None => (authority.serving_certificate(&names(address))?.into(), authority.ca_pem()),
        };
        let clients =
            Bundle::of_der([authority.ca_der().clone()])?.and(&serving.client_ca.unwrap_or_default());
        Ok(Self { listener, authority: Arc::new(authority), certificate, ca, clients })
    }

    /// The address, with the port that was given.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// The certificates by which clients know the server: its authority's, or its own where one was given.
    #[must_use]
    pub fn ca_pem(&self) -> String {
        self.ca.clone()
    }

    /// What the server shows, so that it can be kept.
    #[must_use]
    pub fn certificate(&self) -> &ServingCertificate {
        &self.certificate
    }

    /// The endpoint's own authority, one of those whose client certificates are trusted.
    pub(crate) fn authority(&self) -> Arc<Authority> {
        Arc::clone(&self.authority)
    }

    /// Whose client certificates are trusted.
    pub(crate) fn clients(&self) -> &Bundle {
        &self.clients
    }

    /// A certificate of the endpoint's own authority by which the server knows a client: of `user`, in `groups`, for so long.
    ///
    /// # Errors
    /// When there is no entropy for a key.
    pub fn client_certificate(
        &self,
        user: &str,
        groups: &[&str],
        ttl: Duration,
    ) -> Result<Credentials, ServeError> {
        Ok(self.authority.client_certificate(user, groups, ttl)?)
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Endpoint({})", self.address())
    }
}

/// The names under which clients may call a server at an address.
fn names(address: SocketAddr) -> Vec<String> {
    let own = Some(address.ip()).filter(|ip| !ip.is_unspecified()).map(|ip| ip.to_string());
    let mut names: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    names.extend(own.filter(|own| !NAMES.contains(&own.as_str())));
    names
}

/// Where time may jump, a connection does not end for what did not happen in it: clients live by their own.
fn limits(world: &World) -> Limits {
    const FOR_EVER: Duration = Duration::from_secs(30 * 366 * 24 * 3600);
    match world.clock.may_jump() {
        true => {
            let limits = Limits::default();
            Limits {
                handshake: FOR_EVER,
                request_head: FOR_EVER,
                unread: FOR_EVER,
                ping_after: FOR_EVER,
                ..limits
            }
        }
        false => Limits::default(),
    }
}

impl ControlPlane {
    /// Serves, and tells clients that these proxies are trusted, too.
    pub(crate) fn serve(&mut self, endpoint: Endpoint, proxies: Option<&Bundle>) -> Result<(), TlsError> {
        let server = self.server().clone();
        let shutdown = self.shutdown();
        let Endpoint { listener, certificate, clients, .. } = endpoint;
        let asked = proxies.map_or_else(|| clients.clone(), |proxies| clients.clone().and(proxies));
        let tls = ServerTls::showing(certificate.certified()?).http_2().without_resumption();
        let tls =
            tls.asking_clients(asked.subjects()).clock(self.world().clock).build().map_err(TlsError::from)?;
        let limits = limits(self.world());
        match self.admin() {
            Some(admin) => {
                let service = AdminService::new(server, admin.clone());
                self.spawn(async move { listener.serve(service, tls, limits, shutdown).await });
            }
            None => self.spawn(async move { listener.serve(server, tls, limits, shutdown).await }),
        }
        Ok(())
    }
}
