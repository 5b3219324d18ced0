//! The webhooks on a socket: TLS 1.2 and 1.3, HTTP/1.1 and HTTP/2.

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use kubewright_serve::{
    MaxConnections,
    connection::{drive, handshake},
    tls::ServerTls,
};
use tokio::{net::TcpStream, sync::watch, time::timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{
    Service,
    certificates::Shown,
    service::{refusal, too_large},
};
use crate::Error;

/// Connections at a time; more wait in the system's queue. API servers have a few.
const MOST_CONNECTIONS: usize = 512;
/// Requests at a time on one connection of HTTP/2 (Go's default).
const MOST_STREAMS: u32 = 250;
/// Time for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time for the head of the next request on a connection of HTTP/1.1: as long as API servers keep one that is idle.
const IDLE: Duration = Duration::from_secs(90);
/// Time for the body of a request: as long as an API server waits for an answer.
const BODY: Duration = Duration::from_secs(30);
/// Silence on a connection after which the caller is asked whether it is there, and the time for its answer.
const PING: Duration = Duration::from_secs(30);
/// Time for requests to finish once the server is to stop.
const GRACE: Duration = Duration::from_secs(10);

/// A port that is taken.
pub(crate) struct Listener {
    socket: kubewright_serve::Listener,
    pub(crate) address: SocketAddr,
}

impl Listener {
    pub(crate) async fn bind(address: SocketAddr) -> Result<Self, Error> {
        let bound = kubewright_serve::Listener::bind("webhooks", address).await;
        let socket =
            bound.map_err(|error| Error::new(format!("webhooks cannot be served at {address}: {error}")))?;
        Ok(Self { address: socket.local_addr(), socket })
    }

    /// Serves until `shutdown`, only those clients that `client_ca` vouches for if there is one; then requests may finish. Dropping the future ends everything at once.
    pub(crate) async fn serve(
        self,
        service: Service,
        shown: watch::Receiver<Option<Shown>>,
        client_ca: Option<Vec<u8>>,
        shutdown: CancellationToken,
    ) -> Result<(), Error> {
        let newest = move || shown.borrow().as_ref().map(Shown::certified);
        let mut tls = ServerTls::showing_newest(newest).http_2();
        if let Some(authority) = client_ca {
            tls = tls.requiring_clients_of(authority).map_err(Error::new)?;
        }
        let tls = TlsAcceptor::from(tls.build().map_err(Error::new)?);
        let closing = shutdown.clone();
        let serve = move |stream, _, ()| connection(stream, tls.clone(), service.clone(), closing.clone());
        self.socket.serve(MaxConnections(MOST_CONNECTIONS), GRACE, shutdown, serve).await;
        Ok(())
    }
}

/// One connection to its end. What goes wrong on it is its caller's business.
async fn connection(stream: TcpStream, tls: TlsAcceptor, service: Service, shutdown: CancellationToken) {
    // An error means that the caller has gone, which the handshake will see.
    let _ = stream.set_nodelay(true);
    let stream = match handshake(tls.accept(stream), HANDSHAKE, &shutdown).await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(%error, "webhooks: no TLS"),
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Some(IDLE));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .keep_alive_interval(Some(PING))
        .keep_alive_timeout(PING);
    let answer = service_fn(move |request| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(answer(&service, request).await.map(Full::new)) }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), answer);
    let ended = drive(connection, auto::Connection::graceful_shutdown, &shutdown).await;
    if let Err(error) = ended {
        tracing::debug!(error, "webhooks: a connection ended with an error");
    }
}

/// Reads a request and answers it.
async fn answer(service: &Service, request: Request<Incoming>) -> Response<Bytes> {
    let (parts, body) = request.into_parts();
    let longest = service.longest_body(parts.uri.path());
    match timeout(BODY, read(body, longest.unwrap_or(0))).await {
        Ok(Ok(Some(body))) => service.call(Request::from_parts(parts, body)).await,
        Ok(Ok(None)) => match longest {
            Some(longest) => too_large(longest),
            // Nothing is served there, whatever was sent.
            None => service.call(Request::from_parts(parts, Bytes::new())).await,
        },
        Ok(Err(error)) => refusal(400, "BadRequest", &format!("the body cannot be read: {error}")),
        Err(_) => refusal(408, "Timeout", &format!("the body did not come within {BODY:?}")),
    }
}

/// A body of at most `longest` bytes; `None` for a longer one, which is read to its end all the same, as callers that still
/// send do not look at an answer.
async fn read(mut body: Incoming, longest: usize) -> Result<Option<Bytes>, hyper::Error> {
    let mut taken = Some(Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        match &mut taken {
            Some(bytes) if bytes.len() + data.len() <= longest => bytes.extend_from_slice(&data),
            _ => taken = None,
        }
    }
    Ok(taken.map(Bytes::from))
}
