//! The life of one connection: handshake, requests, end.

use std::fmt::Display;
use std::io;

use http::Method;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kubewright_identity::authn::PeerCertificate;
use kubewright_serve::connection::{self, HandshakeError, drive};
use kubewright_serve::tls::HTTP_2;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::listener::{Limits, RemoteAddress, Service};
use super::sending::{Patience, Room, Sending};
use super::visitors::{Stay, Visitor};

/// What all connections of a listener share.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) tls: TlsAcceptor,
    pub(super) limits: Limits,
    pub(super) shutdown: CancellationToken,
}

/// What Go's server says to a client that speaks HTTP where TLS is meant (`net/http/server.go`).
const NOT_TLS: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// Serves one connection to its end, which is also when it has to make room. What goes wrong on it is the client's
/// business, and told at debug level.
pub(super) async fn serve<S: Service>(
    stream: TcpStream,
    remote: RemoteAddress,
    stay: Stay,
    service: S,
    settings: Settings,
) {
    let visitor = stay.visitor().clone();
    tokio::select! {
        biased;
        () = stay.ended() => tracing::debug!(remote = %remote.0, "ended to make room for others"),
        () = serve_visitor(stream, remote, visitor, service, settings) => {}
    }
}

async fn serve_visitor<S: Service>(
    stream: TcpStream,
    remote: RemoteAddress,
    visitor: Visitor,
    service: S,
    settings: Settings,
) {
    let shaken = handshake(stream, &settings.tls);
    match connection::handshake(shaken, settings.limits.handshake, &settings.shutdown).await {
        Ok(Some(stream)) => serve_requests(stream, remote, visitor, service, settings).await,
        Ok(None) => tracing::debug!(remote = %remote.0, "plain HTTP on the TLS port"),
        Err(HandshakeError::Stopped) => {}
        Err(HandshakeError::Failed(error)) => {
            tracing::debug!(remote = %remote.0, %error, "no TLS handshake");
        }
        Err(HandshakeError::TimedOut) => tracing::debug!(remote = %remote.0, "no TLS handshake in time"),
    }
}

/// Makes the connection a TLS one; `None` when the client speaks plain HTTP (and was told).
async fn handshake(mut stream: TcpStream, tls: &TlsAcceptor) -> io::Result<Option<TlsStream<TcpStream>>> {
    stream.set_nodelay(true)?;
    // A TLS record starts with its type, a control character; a request of HTTP with a method, in capitals.
    let mut first = [0];
    stream.peek(&mut first).await?;
    if first[0].is_ascii_uppercase() {
        // Reading the request first: closing a socket with unread bytes would reset it before the answer is read.
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await?;
        stream.write_all(NOT_TLS).await?;
        stream.shutdown().await?;
        return Ok(None);
    }
    let stream = tls.accept(stream).await?;
    // Nothing answers the last message of the handshake, and a client that leaves Nagle's algorithm on (hyper's connector
    // does) sends its first request only when that message is acknowledged: at once, not after the usual 40 ms.
    #[cfg(target_os = "linux")]
    stream.get_ref().0.set_quickack(true)?;
    Ok(Some(stream))
}

/// Before a write is answered who watches has a turn to be told of it: operators read their caches directly after they have written,
/// and etcd leaves these more time.
async fn turn_of_watchers(method: &Method) {
    if !method.is_safe() {
        yield_now().await;
    }
}

/// Serves the requests of a connection with the protocol that the handshake agreed on.
async fn serve_requests<S: Service>(
    stream: TlsStream<TcpStream>,
    remote: RemoteAddress,
    visitor: Visitor,
    service: S,
    settings: Settings,
) {
    let Settings { limits, shutdown, .. } = settings;
    let (_, session) = stream.get_ref();
    let http_2 = session.alpn_protocol() == Some(HTTP_2);
    let certificate = session.peer_certificates().map(<[_]>::to_vec).and_then(PeerCertificate::new);

    let (asked, leaves) = (CancellationToken::new(), shutdown.child_token());
    let room = Room::new(limits.connection_ahead);
    let service = {
        let (asked, leaves) = (asked.clone(), leaves.clone());
        service_fn(move |mut request: http::Request<Incoming>| {
            asked.cancel();
            let busy = visitor.asks();
            request.extensions_mut().insert(remote);
            request.extensions_mut().insert(visitor.clone());
            if let Some(certificate) = &certificate {
                request.extensions_mut().insert(certificate.clone());
            }
            let method = request.method().clone();
            let answer = service.clone().oneshot(request);
            let (room, visitor, leaves) = (room.clone(), visitor.clone(), leaves.clone());
            async move {
                let response = answer.await?;
                turn_of_watchers(&method).await;
                if http_2 && visitor.is_stranger() {
                    leaves.cancel();
                }
                Ok::<_, S::Error>(response.map(|body| Sending::new(Box::pin(body), &room, busy)))
            }
        })
    };
    let io = TokioIo::new(stream);
    let patience = Patience(limits.unread);
    if http_2 {
        let connection = http2_builder(&limits, patience).serve_connection(io, service);
        let finish = http2::Connection::graceful_shutdown;
        let served = tokio::select! {
            biased;
            () = silence(&asked, &limits) => return tracing::debug!(remote = %remote.0, "no request in time"),
            served = drive(connection, finish, &leaves) => served,
        };
        report(remote, served);
    } else {
        let connection = http1_builder(&limits).serve_connection(io, service).with_upgrades();
        let finish = http1::UpgradeableConnection::graceful_shutdown;
        match patience.drive(drive(connection, finish, &leaves)).await {
            Some(served) => report(remote, served),
            None => tracing::debug!(remote = %remote.0, "a response was not read"),
        }
    }
}

/// The smallest buffer that hyper takes.
const MIN_BUFFER: usize = 8 << 10;

fn http1_builder(limits: &Limits) -> http1::Builder {
    // One limit for what is read (a head must fit) and what is to be written.
    let buffer = limits.head_bytes.saturating_add(limits.send_ahead).max(MIN_BUFFER);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.request_head)
        .max_headers(limits.headers)
        .max_header_size(limits.head_bytes)
        .max_buf_size(buffer);
    builder
}

fn http2_builder(limits: &Limits, patience: Patience) -> http2::Builder<Patience> {
    let mut builder = http2::Builder::new(patience);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(limits.send_ahead)
        .keep_alive_interval(limits.ping_after)
        .keep_alive_timeout(limits.ping_answer);
    builder
}

/// Ends when the time for the first request has passed without one. (HTTP/1.1 has hyper's own timer for that; HTTP/2
/// has none, not even for the connection's preface.)
async fn silence(asked: &CancellationToken, limits: &Limits) {
    if timeout(limits.request_head, asked.cancelled()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

fn report(remote: RemoteAddress, served: Result<(), impl Display>) {
    if let Err(error) = served {
        tracing::debug!(remote = %remote.0, %error, "a connection ended with an error");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn who_watches_has_a_turn_before_a_write_is_answered() {
        for (method, expected) in [(Method::POST, ["told", "answered"]), (Method::GET, ["answered", "told"])]
        {
            let (bell, order) = (Arc::new(Notify::new()), Arc::new(Mutex::new(Vec::new())));
            let watcher = tokio::spawn({
                let (bell, order) = (Arc::clone(&bell), Arc::clone(&order));
                async move {
                    bell.notified().await;
                    order.lock().unwrap().push("told");
                }
            });
            yield_now().await;
            bell.notify_one();
            turn_of_watchers(&method).await;
            order.lock().unwrap().push("answered");
            watcher.await.unwrap();
            assert_eq!(*order.lock().unwrap(), expected);
        }
    }
}
