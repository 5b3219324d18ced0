//! The HTTPS listener: one adapter around the service, with its limits. Who may be connected is in `visitors`, a connection's
//! own life in `connection`.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

use super::connection;
pub use super::visitors::Visitor;
use super::visitors::Visitors;

/// Where a request came from, put into its extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress(pub SocketAddr);

/// What a listener allows. The defaults follow kube-apiserver's where it has the limit
/// (`k8s.io/apiserver/pkg/server/secure_serving.go`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time. 4096. Where there are as many and one more comes, one ends: of those on which the service has
    /// not found out who the client is ([`Visitor`]) the one that did nothing for the longest, then one that is known and
    /// asks for nothing. Where all are known and wait for answers, more wait in the system's queue.
    pub connections: usize,
    /// Time for the TLS handshake. 10 seconds, as Go's clients give it (`http.DefaultTransport`).
    pub handshake: Duration,
    /// Time for the head of a request, counted from the end of the one before (so it is also how long a connection of
    /// HTTP/1.1 may idle), and on HTTP/2 for the first request. 90 seconds, kube-apiserver's idle timeout.
    pub request_head: Duration,
    /// Bytes of a request's head: its line and its headers. 64 KiB; 431 beyond.
    pub head_bytes: usize,
    /// Headers of an HTTP/1.1 request. 128; 431 beyond. (HTTP/2 counts 32 bytes for each header into its size.)
    pub headers: usize,
    /// Requests at a time on one connection of HTTP/2, watches included. 2500, far more than kube-apiserver's: that one
    /// counts on Go's client, which opens another connection when one is full. hyper's, and with it kube's, waits on the
    /// one that it has, so an operator whose watches fill it could not write any more.
    pub streams: u32,
    /// Bytes that a response may be ahead of a client that does not read it, beside what the system's socket buffers
    /// take. 64 KiB. On HTTP/2 this is for each request, in full pieces (the last one may go beyond).
    pub send_ahead: usize,
    /// Bytes that all responses on a connection may be ahead of its client, pieces that hyper has not begun to write
    /// included. 1 MiB; a single piece may go beyond.
    pub connection_ahead: usize,
    /// Time for a client to take something of a response. 60 seconds; then that response is cut off: a stream of HTTP/2 is
    /// reset, a connection of HTTP/1.1 ends.
    pub unread: Duration,
    /// Silence on an HTTP/2 connection after which the client is asked whether it is there. 30 seconds.
    pub ping_after: Duration,
    /// Time for its answer. 20 seconds.
    pub ping_answer: Duration,
    /// Time for requests to finish once the listener is to stop. 10 seconds.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            handshake: Duration::from_secs(10),
            request_head: Duration::from_secs(90),
            head_bytes: 64 << 10,
            headers: 128,
            streams: 2500,
            send_ahead: 64 << 10,
            connection_ahead: 1 << 20,
            unread: Duration::from_secs(60),
            ping_after: Duration::from_secs(30),
            ping_answer: Duration::from_secs(20),
            grace: Duration::from_secs(10),
        }
    }
}

/// A port cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", reason(source))]
pub struct BindError {
    /// The address asked for.
    pub address: SocketAddr,
    /// Why not; its kind is [`io::ErrorKind::AddrInUse`] when another program has the port.
    pub source: io::Error,
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program listens there already".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "the system does not permit it (ports below 1024 need a privilege)".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
        _ => error.to_string(),
    }
}

/// A port that is taken, and not served yet: clients that connect wait.
#[derive(Debug)]
pub struct Listener(kubewright_serve::Listener);

/// What an API server must be to be served: a tower service whose responses can be sent to another thread. (A name for
/// a list of bounds; there is nothing to implement.)
pub trait Service:
    tower::Service<
        Request<Incoming>,
        Response = Response<Self::ResponseBody>,
        Error: Into<Box<dyn Error + Send + Sync>>,
        Future: Send,
    > + Clone
    + Send
    + 'static
{
    /// The body of its responses.
    type ResponseBody: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static;
}

impl<S, B> Service for S
where
    S: tower::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type ResponseBody = B;
}

impl Listener {
    /// Takes the port (0: any that is free).
    ///
    /// # Errors
    /// When it cannot be had.
    pub async fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let bound = kubewright_serve::Listener::bind("api", address).await;
        bound.map(Self).map_err(|source| BindError { address, source })
    }

    /// The address that it listens on, with the port that it was given.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    /// Serves `service` over TLS with HTTP/1.1 and HTTP/2 until `shutdown` is cancelled. A request has in its extensions
    /// the [`RemoteAddress`], the [`Visitor`] and, if the client showed a certificate, its
    /// [`PeerCertificate`](kubewright_identity::authn::PeerCertificate).
    ///
    /// A connection of HTTP/2 whose client the service does not know ends after its first requests
    /// (`UnauthenticatedHTTP2DOSMitigation` in `k8s.io/apiserver/pkg/endpoints/filters/authentication.go`).
    ///
    /// Then it accepts nobody any more, tells its clients to go, lets requests finish for up to [`Limits::grace`], and
    /// ends those that have not. Watches never finish by themselves: the service must watch the same token. Dropping the
    /// future ends everything at once.
    pub async fn serve<S: Service>(
        self,
        service: S,
        tls: Arc<ServerConfig>,
        limits: Limits,
        shutdown: CancellationToken,
    ) {
        let settings = connection::Settings { tls: tls.into(), limits, shutdown: shutdown.clone() };
        let serve = move |stream, remote, stay| {
            connection::serve(stream, RemoteAddress(remote), stay, service.clone(), settings.clone())
        };
        self.0.serve(Visitors::new(limits.connections), limits.grace, shutdown, serve).await;
    }
}
