//! Requests that go on to API servers behind Services, their bodies and answers as streams
//! (`k8s.io/kube-aggregator/pkg/apiserver/{handler_proxy,resolvers}.go`). The ways there are those to a webhook behind a Service.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use kubewright_serve::tls::{ServingCertificate, TlsError};
use kubewright_world::Clock;
use parking_lot::Mutex;
use tokio::io::DuplexStream;

use super::client::{self, MAX_WEBHOOKS, RunsPods};
use super::connect::{Connector, Destination};
use super::service::{self, Place, Resolve};
use super::target::{Access, Credentials, Target};
use crate::authn::PeerCertificate;

/// Bytes that are under way on a connection in memory.
const BUFFER: usize = 64 << 10;

/// The body of a request that goes on.
pub type UpstreamBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

type Connections = legacy::Client<Connector, UpstreamBody>;

/// An API server of this process, which needs no socket.
pub trait InProcess: Send + Sync + 'static {
    /// Serves HTTP/1.1 on a connection, whose client has shown this certificate.
    fn serve(&self, connection: DuplexStream, shown: Option<PeerCertificate>);
}

/// A Service and one of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceRef<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The port.
    pub port: u16,
}

/// An API server behind a Service, and what it has to show.
#[derive(Clone, Debug)]
pub struct Upstream(Target);

/// Where an API server is reached at a moment.
#[derive(Clone, Debug)]
pub struct Route {
    host: String,
    destination: Result<Destination, String>,
}

impl Route {
    /// Host and port, as a URL has them.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// Knows the ways to API servers behind Services. Connections are kept and used again.
pub struct Upstreams {
    clock: Clock,
    credentials: Option<Credentials>,
    shown: Option<PeerCertificate>,
    in_process: Mutex<BTreeMap<(String, String), Arc<dyn InProcess>>>,
    runs_pods: Mutex<Arc<RunsPods>>,
    connections: Mutex<BTreeMap<(Target, Destination), Connections>>,
}

impl Upstreams {
    /// Shows nothing to them. Their certificates are good by this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            credentials: None,
            shown: None,
            in_process: Mutex::default(),
            runs_pods: Mutex::new(Arc::new(|_| false)),
            connections: Mutex::default(),
        }
    }

    /// Shows this certificate (a chain and its key, in PEM) to them (`--proxy-client-cert-file`, `--proxy-client-key-file`).
    ///
    /// # Errors
    /// When the certificate and the key cannot be read.
    pub fn with_certificate(self, chain: String, key: String) -> Result<Self, TlsError> {
        let (certificates, _) = ServingCertificate::of_pem(&chain, &key)?.into_parts();
        let shown = PeerCertificate::new(certificates);
        Ok(Self { credentials: Some(Credentials { chain, key }), shown, ..self })
    }

    /// Asks a server of this process in the place of what is behind a Service of this namespace and name.
    pub fn attach(&self, namespace: &str, name: &str, server: Arc<dyn InProcess>) {
        self.in_process.lock().insert((namespace.to_owned(), name.to_owned()), server);
        self.connections.lock().clear();
    }

    /// Whether a server of this process stands for a Service.
    #[must_use]
    pub fn is_in_process(&self, service: ServiceRef<'_>) -> bool {
        self.of_process(service.namespace, service.name).is_some()
    }

    /// Calls the pods of the nodes of which `runs_pods` holds, too, from now on.
    pub fn reach_pods_of(&self, runs_pods: impl Fn(&str) -> bool + Send + Sync + 'static) {
        *self.runs_pods.lock() = Arc::new(runs_pods);
    }

    /// The API server behind a Service, whose certificates a bundle (PEM) vouches for, or which may show any.
    #[must_use]
    pub fn upstream(&self, service: ServiceRef<'_>, bundle: Arc<[u8]>, insecure: bool) -> Upstream {
        let access = Access { insecure, credentials: self.credentials.clone(), ..Access::default() };
        let ServiceRef { namespace, name, port } = service;
        Upstream(Target::of_api_server((namespace, name, port), bundle, access))
    }

    /// Whether what an API server has to show makes sense.
    ///
    /// # Errors
    /// Why not, in the words of client-go.
    pub fn check(&self, upstream: &Upstream) -> Result<(), String> {
        let nowhere = Destination::Addresses(Vec::new());
        client::connector(self.clock, &upstream.0, nowhere).map(drop)
    }

    /// Where an API server is reached, as its Service says.
    ///
    /// # Errors
    /// Why it is reached nowhere, in kube-apiserver's words.
    pub fn route(&self, upstream: &Upstream, services: &dyn Resolve) -> Result<Route, String> {
        let Some(service) = &upstream.0.service else { return Err("no service".to_owned()) };
        if self.of_process(&service.namespace, &service.name).is_some() {
            let destination = Ok(Destination::Addresses(Vec::new()));
            return Ok(Route { host: upstream.0.authority.clone(), destination });
        }
        match services.resolve(&service.namespace, &service.name, upstream.0.port)? {
            Place::Endpoints { cluster_ip, endpoints } => {
                let runs_pods = Arc::clone(&self.runs_pods.lock());
                let reachable = service::reachable(cluster_ip, &endpoints, &*runs_pods);
                Ok(Route {
                    host: SocketAddr::to_string(&cluster_ip),
                    destination: reachable.map(Destination::Addresses),
                })
            }
            Place::Host(host, port) => {
                let destination = Ok(client::destination(&host, port));
                Ok(Route { host: format!("{host}:{port}"), destination })
            }
        }
    }

    /// Sends a request there. Its URI may be a path alone.
    ///
    /// # Errors
    /// Why there is no answer, in the words of Go's `net/http`.
    pub async fn send(
        &self,
        upstream: &Upstream,
        route: &Route,
        mut request: Request<UpstreamBody>,
    ) -> Result<Response<Incoming>, String> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let uri =
            Uri::try_from(format!("https://{}{path}", route.host)).map_err(|error| error.to_string())?;
        *request.uri_mut() = uri;
        if let Ok(host) = HeaderValue::try_from(&route.host) {
            request.headers_mut().insert(HOST, host);
        }
        let connections = self.connections(upstream, route.destination.clone()?)?;
        connections.request(request).await.map_err(|error| client::explain(&error))
    }

    fn of_process(&self, namespace: &str, name: &str) -> Option<Arc<dyn InProcess>> {
        let in_process = self.in_process.lock();
        if in_process.is_empty() {
            return None;
        }
        in_process.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    fn connections(&self, upstream: &Upstream, destination: Destination) -> Result<Connections, String> {
        let service = upstream.0.service.as_ref();
        let local = service.and_then(|service| self.of_process(&service.namespace, &service.name));
        let mut kept = self.connections.lock();
        let key = (upstream.0.clone(), destination);
        if let Some(found) = kept.get(&key) {
            return Ok(found.clone());
        }
        let mut connector = client::connector(self.clock, &key.0, key.1.clone())?;
        if let Some(server) = local {
            let shown = self.shown.clone();
            connector.in_process = Some(Arc::new(move || {
                let (near, far) = tokio::io::duplex(BUFFER);
                server.serve(far, shown.clone());
                near
            }));
        }
        let connections = client::kept(connector);
        if kept.len() >= MAX_WEBHOOKS {
            kept.clear();
        }
        kept.insert(key, connections.clone());
        Ok(connections)
    }
}

impl std::fmt::Debug for Upstreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Upstreams")
    }
}
