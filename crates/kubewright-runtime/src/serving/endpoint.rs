//! A listener and what it answers.

use std::{convert::Infallible, fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

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
pub(crate) type Answer = Response<Full<Bytes>>;

/// Answers GET requests by their path.
pub(crate) trait Route: Send + Sync + 'static {
    /// The answer to a request for this path.
    fn answer<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Answer>;
}

/// Where an endpoint listens, once it does.
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
        let listener = TcpListener::bind(normalized(&self.address)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
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

/// `:8080`, as Go writes it, means every address of the machine.
fn normalized(address: &str) -> String {
    if address.starts_with(':') { format!("[::]{address}") } else { address.to_owned() }
}

/// An endpoint whose address is taken.
pub(crate) struct Listening {
    listener: TcpListener,
    endpoint: Endpoint,
}

impl Listening {
    /// Serves until `stop`, and finishes then what was begun.
    pub(crate) async fn serve(self, stop: CancellationToken) {
        let connections = TaskTracker::new();
        let free = Arc::new(Semaphore::new(CONNECTIONS));
        // Connections end with the endpoint, also when this future is dropped.
        let closing = stop.child_token();
        let _closing_on_drop = closing.clone().drop_guard();
        let acceptor = self.endpoint.tls.clone().map(TlsAcceptor::from);
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = self.accept(&free) => accepted,
            };
            let Some((stream, place)) = accepted else { continue };
            let (acceptor, route, closing) = (acceptor.clone(), self.endpoint.route.clone(), closing.clone());
            connections.spawn(async move {
                match acceptor {
                    None => converse(stream, route, closing).await,
                    Some(acceptor) => {
                        if let Ok(Ok(stream)) = tokio::time::timeout(HEAD, acceptor.accept(stream)).await {
                            converse(stream, route, closing).await;
                        }
                    }
                }
                drop(place);
            });
        }
        connections.close();
        if tokio::time::timeout(DRAIN, connections.wait()).await.is_err() {
            tracing::debug!("requests to {} were still being answered", self.endpoint.name);
        }
    }

    async fn accept(&self, free: &Arc<Semaphore>) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
        let place = free.clone().acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, _)) => Some((stream, place)),
            Err(error) => {
                // Mostly out of file descriptors: others have to close some first.
                tracing::warn!(%error, "cannot accept a connection to {}", self.endpoint.name);
                tokio::time::sleep(Duration::from_secs(1)).await;
                None
            }
        }
    }
}

/// Answers the requests of one connection, until it or the endpoint ends.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    route: Arc<dyn Route>,
    closing: CancellationToken,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let route = route.clone();
        async move { Ok::<_, Infallible>(respond(&*route, &request.into_parts().0).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_SIZE)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        biased;
        // Who closes in the middle of a request is not worth a line.
        _ = &mut connection => return,
        () = closing.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// The answer to a request; only reading is allowed.
pub(super) async fn respond(route: &dyn Route, request: &Parts) -> Answer {
    if request.method != Method::GET && request.method != Method::HEAD {
        let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        answer.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    route.answer(request).await
}

/// A text for people.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    typed(status, "text/plain; charset=utf-8", text)
}

/// A text of this type.
pub(crate) fn typed(status: StatusCode, content_type: &'static str, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    answer
}
