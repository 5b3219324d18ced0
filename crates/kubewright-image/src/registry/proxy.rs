//! The way to a registry: straight, or through the proxy that the environment names.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::{HeaderValue, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower::Service;

use super::session::is_loopback;

/// Which proxies stand before which addresses.
#[derive(Clone, Debug)]
pub(super) struct Proxies(Arc<Matcher>);

/// What keeps a proxy from passing us on.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProxyError {
    #[error(
        "the proxy {0} is to be spoken to in another way than HTTP, which is not known here; name one with http://"
    )]
    NotHttp(String),
    #[error("the proxy {proxy}: {reason}")]
    Fails { proxy: String, reason: String },
    #[error(transparent)]
    Direct(Box<dyn std::error::Error + Send + Sync>),
}

impl Proxies {
    /// Those of `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in small letters too, as curl reads them.
    pub(super) fn of_environment() -> Self {
        Self::of(Matcher::from_env())
    }

    pub(super) fn of(matcher: Matcher) -> Self {
        Self(Arc::new(matcher))
    }

    /// The proxy before an address. There is none before this machine, whatever the environment says, as with Go's clients.
    fn before(&self, uri: &Uri) -> Option<Intercept> {
        if uri.host().is_some_and(is_loopback) {
            return None;
        }
        self.0.intercept(uri)
    }

    /// What a proxy has to be told with a request that it is sent as it is, which are those without TLS.
    pub(super) fn authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        let proxy = self.before(uri).filter(|_| uri.scheme_str() == Some("http"))?;
        proxy.basic_auth().cloned()
    }
}

/// Makes connections, to registries or to proxies.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    proxies: Proxies,
    inner: HttpConnector,
}

impl Connector {
    pub(super) fn new(proxies: Proxies, inner: HttpConnector) -> Self {
        Self { proxies, inner }
    }
}

impl Service<Uri> for Connector {
    type Response = Line;
    type Error = ProxyError;
    type Future = Pin<Box<dyn Future<Output = Result<Line, ProxyError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ProxyError>> {
        self.inner.poll_ready(cx).map_err(|error| ProxyError::Direct(error.into()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let mut inner = self.inner.clone();
        let Some(proxy) = self.proxies.before(&to) else {
            return Box::pin(async move {
                let io = inner.call(to).await.map_err(|error| ProxyError::Direct(error.into()))?;
                Ok(Line { io, to_proxy: false })
            });
        };
        Box::pin(async move {
            let uri = proxy.uri().clone();
            let told = uri.authority().map_or_else(String::new, ToString::to_string);
            if uri.scheme_str() != Some("http") {
                return Err(ProxyError::NotHttp(told));
            }
            if to.scheme_str() == Some("http") {
                let io = inner.call(uri).await.map_err(|error| ProxyError::fails(told, &error))?;
                return Ok(Line { io, to_proxy: true });
            }
            let mut tunnel = Tunnel::new(uri, inner);
            if let Some(authorization) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(authorization.clone());
            }
            let io = tunnel.call(to).await.map_err(|error| ProxyError::fails(told, &error))?;
            Ok(Line { io, to_proxy: false })
        })
    }
}

impl ProxyError {
    /// The innermost cause says most.
    fn fails(proxy: String, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut cause = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let reason = cause.to_string();
        Self::Fails { proxy, reason: reason.trim_start_matches("tunnel error: ").to_owned() }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Line {
    io: TokioIo<TcpStream>,
    /// Whether requests are to say for whom they are: a proxy reads them.
    to_proxy: bool,
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.to_proxy)
    }
}

impl Read for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl Write for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_stands_before_what_the_environment_says_and_never_before_this_machine() {
        let matcher = Matcher::builder()
            .https("http://user:secret@proxy.example:3128")
            .http("http://plain.example:3128")
            .no("inside.example,10.0.0.0/8")
            .build();
        let proxies = Proxies::of(matcher);
        let before = |uri: &str| {
            let uri = uri.parse().expect("an address");
            proxies.before(&uri).map(|proxy| proxy.uri().to_string())
        };
        assert_eq!(before("https://ghcr.io/v2/").as_deref(), Some("http://proxy.example:3128/"));
        assert_eq!(before("http://ghcr.io/v2/").as_deref(), Some("http://plain.example:3128/"));
        for straight in [
            "https://inside.example/v2/",
            "https://registry.inside.example:5000/v2/",
            "https://10.1.2.3/v2/",
            "https://localhost:5000/v2/",
            "http://127.0.0.1:5000/v2/",
            "https://[::1]:5000/v2/",
        ] {
            assert_eq!(before(straight), None, "{straight}");
        }
    }
}
