//! What connections have in common: a handshake in time, an end between two requests, plain HTTP/1.1.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::{Listener, MaxConnections};

/// Why a connection has no TLS.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The client speaks something else, or has gone.
    #[error(transparent)]
    Failed(#[from] io::Error),
    /// It took too long.
    #[error("no TLS handshake in time")]
    TimedOut,
    /// The server is to stop.
    #[error("the server stops")]
    Stopped,
}

/// Waits for a handshake, for so long, unless the server stops before.
///
/// # Errors
/// When there is none in time.
pub async fn handshake<T>(
    handshake: impl Future<Output = io::Result<T>>,
    timeout: Duration,
    shutdown: &CancellationToken,
) -> Result<T, HandshakeError> {
    tokio::select! {
        biased;
        () = shutdown.cancelled() => Err(HandshakeError::Stopped),
        shaken = tokio::time::timeout(timeout, handshake) => match shaken {
            Ok(shaken) => Ok(shaken?),
            Err(_) => Err(HandshakeError::TimedOut),
        },
    }
}

/// Drives a connection to its end. When `closing` is cancelled, `finish` (hyper's `graceful_shutdown`) lets it end after the
/// requests in flight.
pub async fn drive<C: Future>(
    connection: C,
    finish: impl FnOnce(Pin<&mut C>),
    closing: &CancellationToken,
) -> C::Output {
    let mut connection = pin!(connection);
    tokio::select! {
        biased;
        () = closing.cancelled() => {}
        ended = connection.as_mut() => return ended,
    }
    finish(connection.as_mut());
    connection.await
}

/// How HTTP/1.1 is spoken where there is nothing else: with clients that have little to say.
#[derive(Clone, Copy, Debug)]
pub struct Http1 {
    /// Time for the head of a request, counted from the end of the one before: also how long a connection may idle.
    pub head: Duration,
    /// Bytes of a request's head; 431 beyond.
    pub head_bytes: usize,
    /// Whether a connection may have more than one request.
    pub keep_alive: bool,
}

impl Http1 {
    /// Answers whoever connects, without TLS, for ever. Dropping the future ends all connections.
    pub async fn serve_all<A, B>(
        self,
        listener: Listener,
        limit: MaxConnections,
        answer: impl Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    ) where
        A: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let shutdown = CancellationToken::new();
        let connection = |stream, _, ()| {
            let (answer, closing) = (answer.clone(), shutdown.clone());
            async move { self.serve(stream, answer, &closing).await }
        };
        listener.serve(limit, Duration::ZERO, shutdown.clone(), connection).await;
    }

    /// Answers the requests of one connection, until it ends or, between two of them, `closing` is cancelled. What goes wrong
    /// on it is the client's business.
    pub async fn serve<A, B>(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        answer: impl Fn(Request<Incoming>) -> A,
        closing: &CancellationToken,
    ) where
        A: Future<Output = Response<B>>,
        B: Body + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let service = service_fn(|request| {
            let answer = answer(request);
            async move { Ok::<_, Infallible>(answer.await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.head)
            .max_buf_size(self.head_bytes)
            .keep_alive(self.keep_alive)
            .serve_connection(TokioIo::new(stream), service);
        let _ = drive(connection, http1::Connection::graceful_shutdown, closing).await;
    }
}
