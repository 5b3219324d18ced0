//! The API of a cluster over HTTPS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kubewright_apiserver::http::authority::{Authority, AuthorityError, Credentials};
use kubewright_apiserver::http::listener::{BindError, Limits, Listener};
use kubewright_apiserver::http::tls::{self, TlsError};
use kubewright_world::World;

use crate::{Cluster, DataDirectory, DataError};

/// The names by which clients may call the server, besides its address.
const NAMES: [&str; 6] = [
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Why there is no endpoint.
#[derive(Debug, thiserror::Error)]
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
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] TlsError),
}

/// A port that is taken for a cluster, with a certificate authority of its own.
pub struct Endpoint {
    listener: Listener,
    authority: Authority,
    tls: Arc<rustls::ServerConfig>,
}

impl Endpoint {
    /// Takes a port (0: any that is free) and makes the certificates.
    ///
    /// # Errors
    /// When another program has the port, or there is no entropy.
    pub async fn bind(address: SocketAddr, world: &World) -> Result<Self, ServeError> {
        Self::with_authority(address, Authority::new(world)?).await
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
        Self::with_authority(address, data.authority(world)?).await
    }

    async fn with_authority(address: SocketAddr, authority: Authority) -> Result<Self, ServeError> {
        let listener = Listener::bind(address).await?;
        let tls = tls::server_config(&authority, &NAMES)?;
        Ok(Self { listener, authority, tls })
    }

    /// The address, with the port that was given.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// The certificate by which clients know the server.
    #[must_use]
    pub fn ca_pem(&self) -> String {
        self.authority.ca_pem()
    }

    /// A certificate by which the server knows a client: of `user`, in `groups`, for so long.
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

impl Cluster {
    pub(crate) fn serve(&mut self, endpoint: Endpoint) {
        let server = self.server().clone();
        let shutdown = self.shutdown();
        let Endpoint { listener, tls, .. } = endpoint;
        self.spawn(async move { listener.serve(server, tls, Limits::default(), shutdown).await });
    }
}
