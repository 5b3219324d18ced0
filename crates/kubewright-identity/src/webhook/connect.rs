//! Opening a connection to a webhook: a socket, and TLS on it. Failures are told as Go's `net` and `crypto/tls` tell them.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, InvalidMessage};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// ALPN's name of HTTP/2.
const HTTP_2: &[u8] = b"h2";

/// Why there is no connection, in Go's words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotConnected(pub(super) String);

/// Where to connect to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Destination {
    /// At the first of these that somebody listens at.
    Addresses(Vec<SocketAddr>),
    Host(String, u16),
}

/// Connects to one webhook, again and again.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) destination: Destination,
    pub(super) server_name: ServerName<'static>,
    pub(super) tls: Arc<ClientConfig>,
    /// Makes connections in memory, where the server is one of this process.
    pub(super) in_process: Option<Arc<dyn Fn() -> DuplexStream + Send + Sync>>,
}

impl tower::Service<http::Uri> for Connector {
    type Response = TokioIo<Secured>;
    type Error = NotConnected;
    type Future = BoxFuture<'static, Result<Self::Response, NotConnected>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NotConnected>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let Self { destination, server_name, tls, in_process } = self.clone();
        Box::pin(async move {
            if let Some(connect) = in_process {
                return Ok(TokioIo::new(Secured::InProcess(connect())));
            }
            let stream = dial(&destination).await?;
            // A small request should not wait for more to come.
            let _ = stream.set_nodelay(true);
            let secured = TlsConnector::from(tls).connect(server_name, stream).await;
            secured
                .map(|stream| TokioIo::new(Secured::Tls(Box::new(stream))))
                .map_err(|error| not_secured(&error))
        })
    }
}

async fn dial(destination: &Destination) -> Result<TcpStream, NotConnected> {
    let (addresses, mut refusal) = match destination {
        Destination::Addresses(addresses) => (addresses.clone(), "dial tcp: missing address".to_owned()),
        Destination::Host(host, port) => {
            let found = tokio::net::lookup_host((host.as_str(), *port)).await;
            let addresses = found.map(Iterator::collect).unwrap_or_default();
            (addresses, format!("dial tcp: lookup {host}: no such host"))
        }
    };
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => refusal = format!("dial tcp {address}: connect: {}", text(&error)),
        }
    }
    Err(NotConnected(refusal))
}

/// An error of the machine in Go's spelling: in lower case, without its number.
pub(super) fn text(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

fn not_secured(error: &io::Error) -> NotConnected {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return NotConnected("EOF".to_owned());
    }
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    NotConnected(match cause {
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(why))) => {
            format!("tls: failed to verify certificate: {}", why.0)
        }
        Some(rustls::Error::AlertReceived(alert)) => format!("remote error: tls: {}", alert_text(*alert)),
        // The first bytes of an answer in plain HTTP are taken for the type of a TLS record.
        Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        Some(other) => format!("tls: {other}"),
        None => text(error),
    })
}

/// The name of an alert (`crypto/tls`, `alertText`).
fn alert_text(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA => "unknown certificate authority".to_owned(),
        AlertDescription::ProtocolVersion => "protocol version not supported".to_owned(),
        other => {
            let mut text = String::new();
            for letter in format!("{other:?}").chars() {
                if letter.is_ascii_uppercase() && !text.is_empty() {
                    text.push(' ');
                }
                text.push(letter.to_ascii_lowercase());
            }
            text
        }
    }
}

/// A connection under TLS, or one that does not leave this process.
pub(super) enum Secured {
    Tls(Box<TlsStream<TcpStream>>),
    InProcess(DuplexStream),
}

impl Connection for Secured {
    fn connected(&self) -> Connected {
        let connected = Connected::new();
        let Self::Tls(stream) = self else { return connected };
        let (_, session) = stream.get_ref();
        if session.alpn_protocol() == Some(HTTP_2) { connected.negotiated_h2() } else { connected }
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::InProcess(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::InProcess(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
            Self::InProcess(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Self::InProcess(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
