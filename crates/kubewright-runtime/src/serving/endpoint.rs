//! A listener and what it answers.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body_util::Full;
use hyper::body::Incoming;
use kubewright_serve::{
    Listener, MaxConnections,
    connection::{Http1, handshake},
};
use tokio::{net::TcpStream, sync::watch};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::Error;

/// How many connections are served at the same time; more wait in the system's queue.
const CONNECTIONS: usize = 128;
/// How long the head of a request may take (controller-runtime's `ReadHeaderTimeout`), and a TLS handshake.
const HEAD: Duration = Duration::from_secs(32);
/// How large the head of a request may be.
const HEAD_SIZE: usize = 64 << 10;
/// How long requests that are being answered may go on after the stop.
const DRAIN: Duration = Duration::from_secs(5);

/// An answer of an endpoint.
pub(crate) type HttpResponse = Response<Full<Bytes>>;

/// Answers requests by their path.
pub(crate) trait Route: Send + Sync + 'static {
    /// Which methods a path has.
    fn methods(&self, path: &str) -> &'static str {
        let _ = path;
        "GET, HEAD"
    }

    /// The answer to a request for this path.
    fn answer<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, HttpResponse>;
}

/// Bound address of an endpoint, once it listens.
#[derive(Clone, Debug)]
pub struct Bound(watch::Receiver<Option<SocketAddr>>);

impl Bound {
    /// Waits until the endpoint listens and says where: useful when it was to choose the port (`:0`). `None` when it never
    /// will.
    pub async fn address(&mut self) -> Option<SocketAddr> {
        self.0.wait_for(Option::is_some).await.ok().and_then(|address| *address)
    }
}

/// Tells [`Bound`].
pub(crate) type Announce = watch::Sender<Option<SocketAddr>>;

/// What is served at one address.
pub(crate) struct Endpoint {
    /// For errors and logs.
    pub(crate) name: &'static str,
    pub(crate) address: String,
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) route: Arc<dyn Route>,
    pub(crate) announce: Announce,
}

impl Endpoint {
    pub(crate) fn announce() -> (Announce, Bound) {
        let (sender, receiver) = watch::channel(None);
        (sender, Bound(receiver))
    }

    /// Listens from now on.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] when the address is none or taken.
    pub(crate) async fn bind(self) -> Result<Listening, Error> {
        let failed = |error: io::Error| {
            Error::Misconfigured(format!("cannot serve {} at {}: {error}", self.name, self.address))
        };
        let listener = Listener::bind(self.name, whole(&self.address)).await.map_err(failed)?;
        let address = listener.local_addr();
        self.announce.send_replace(Some(address));
        tracing::info!(%address, secure = self.tls.is_some(), "serving {}", self.name);
        Ok(Listening { listener, endpoint: self })
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Where `address` is: `:8080`, as Go writes it, is every address that this program has to itself. That is the machine's or
/// the container's own network; pods of Kubewright's process nodes share one, and are told the address that is theirs.
pub(crate) fn whole(address: &str) -> String {
    on(address, std::env::var(POD_ADDRESS).ok().as_deref())
}

/// The variable that tells a pod of a process node its address.
const POD_ADDRESS: &str = "KUBEWRIGHT_POD_ADDRESS";

pub(super) fn on(address: &str, own: Option<&str>) -> String {
    match (address.strip_prefix(':'), own.map(str::parse::<IpAddr>)) {
        (None, _) => address.to_owned(),
        (Some(port), Some(Ok(own @ IpAddr::V6(_)))) => format!("[{own}]:{port}"),
        (Some(port), Some(Ok(own))) => format!("{own}:{port}"),
        (Some(port), _) => format!("[::]:{port}"),
    }
}

/// An endpoint whose address is taken.
pub(crate) struct Listening {
    listener: Listener,
    endpoint: Endpoint,
}

impl Listening {
    /// Serves until `stop`, and finishes then what was begun.
    pub(crate) async fn serve(self, stop: CancellationToken) {
        let Endpoint { tls, route, .. } = self.endpoint;
        let (acceptor, closing) = (tls.map(TlsAcceptor::from), stop.clone());
        let serve = move |stream, _, ()| connection(stream, acceptor.clone(), route.clone(), closing.clone());
        self.listener.serve(MaxConnections(CONNECTIONS), DRAIN, stop, serve).await;
    }
}

/// Answers the requests of one connection, until it or the endpoint ends. Who closes in the middle of a request is not worth
/// a line.
async fn connection(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    route: Arc<dyn Route>,
    closing: CancellationToken,
) {
    let answer = |request: Request<Incoming>| {
        let route = route.clone();
        async move { respond(&*route, &request.into_parts().0).await }
    };
    let http = Http1 { head: HEAD, head_bytes: HEAD_SIZE, keep_alive: true };
    match acceptor {
        None => http.serve(stream, answer, &closing).await,
        Some(acceptor) => {
            if let Ok(stream) = handshake(acceptor.accept(stream), HEAD, &closing).await {
                http.serve(stream, answer, &closing).await;
            }
        }
    }
}

/// The answer to a request; only the methods of its path are allowed.
pub(super) async fn respond(route: &dyn Route, request: &Parts) -> HttpResponse {
    let methods = route.methods(request.uri.path());
    if !methods.split(", ").any(|method| request.method == method) {
        let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        answer.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static(methods));
        return answer;
    }
    route.answer(request).await
}

/// A text for people.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> HttpResponse {
    typed(status, "text/plain; charset=utf-8", text)
}

/// A text of this type.
pub(crate) fn typed(status: StatusCode, content_type: &'static str, text: impl Into<Bytes>) -> HttpResponse {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    answer
}
