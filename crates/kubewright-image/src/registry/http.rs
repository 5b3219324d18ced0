//! Requests to registries, without what is said in them.

use std::{error::Error as _, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, Uri,
    header::{PROXY_AUTHORIZATION, USER_AGENT},
};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use super::proxy::{Connector, Proxies};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an answer may take to begin, when a whole chunk goes up a slow line.
const ANSWER: Duration = Duration::from_secs(300);
/// How long an answer may pause.
const PAUSE: Duration = Duration::from_secs(60);
/// How much of an answer is read where it is to be a document.
const MAX_ANSWER: usize = 4 << 20;

/// A client of HTTP with and without TLS.
#[derive(Clone, Debug)]
pub(super) struct Http {
    client: legacy::Client<HttpsConnector<Connector>, Full<Bytes>>,
    proxies: Proxies,
}

/// A request that can be sent again.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Request {
    pub(super) fn new(method: Method, uri: Uri) -> Self {
        Self { method, uri, headers: HeaderMap::new(), body: Bytes::new() }
    }

    pub(super) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    pub(super) fn body(mut self, media_type: &'static str, body: Bytes) -> Self {
        self.headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        self.body = body;
        self
    }
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(super) struct NoAnswer {
    /// What was said, in one line.
    pub(super) reason: String,
    /// Whether what answered does not speak TLS.
    pub(super) no_tls: bool,
}

impl Http {
    /// One that trusts whom the machine trusts, and goes through the proxies of the environment.
    pub(super) fn new() -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        // A machine that trusts nobody can still talk to its own registry without TLS.
        let tls = match builder.clone().with_native_roots() {
            Ok(trusting) => trusting.with_no_client_auth(),
            Err(_) => builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
        };
        Ok(Self::with(Proxies::of_environment(), tls))
    }

    pub(super) fn with(proxies: Proxies, tls: ClientConfig) -> Self {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT));
        connector.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(Connector::new(proxies.clone(), connector));
        Self { client: legacy::Client::builder(TokioExecutor::new()).build(connector), proxies }
    }

    /// Sends a request once.
    pub(super) async fn send(&self, request: &Request) -> Result<Response<Incoming>, NoAnswer> {
        let mut sent = http::Request::new(Full::new(request.body.clone()));
        *sent.method_mut() = request.method.clone();
        *sent.uri_mut() = request.uri.clone();
        *sent.headers_mut() = request.headers.clone();
        let agent = concat!("kubewright/", env!("CARGO_PKG_VERSION"));
        sent.headers_mut().insert(USER_AGENT, HeaderValue::from_static(agent));
        if let Some(authorization) = self.proxies.authorization(&request.uri) {
            sent.headers_mut().insert(PROXY_AUTHORIZATION, authorization);
        }
        match timeout(ANSWER, self.client.request(sent)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(NoAnswer::of(&error)),
            Err(_) => Err(NoAnswer::late(ANSWER)),
        }
    }
}

impl NoAnswer {
    fn late(limit: Duration) -> Self {
        Self { reason: format!("nothing came within {} seconds", limit.as_secs()), no_tls: false }
    }

    /// The innermost cause says most.
    fn of(error: &legacy::Error) -> Self {
        let mut cause: &dyn std::error::Error = error;
        let mut no_tls = false;
        while let Some(source) = cause.source() {
            no_tls |= is_no_tls(source);
            cause = source;
        }
        Self { reason: crate::error::one_line(&cause.to_string()), no_tls: no_tls || is_no_tls(cause) }
    }
}

/// Whether an error says that what answered does not speak TLS.
fn is_no_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    let of_tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(of_tls.or_else(|| error.downcast_ref::<rustls::Error>()), Some(rustls::Error::InvalidMessage(_)))
}

/// The next piece of an answer; `None` at its end.
pub(super) async fn next(body: &mut Incoming) -> Result<Option<Bytes>, NoAnswer> {
    loop {
        let Ok(frame) = timeout(PAUSE, body.frame()).await else { return Err(NoAnswer::late(PAUSE)) };
        let broken = |error: hyper::Error| {
            let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            NoAnswer { reason: crate::error::one_line(&reason), no_tls: false }
        };
        match frame.transpose().map_err(broken)? {
            None => return Ok(None),
            // Trailers say nothing here.
            Some(frame) => match frame.into_data() {
                Ok(data) => return Ok(Some(data)),
                Err(_) => continue,
            },
        }
    }
}

/// A whole answer; what is too long is cut off.
pub(super) async fn read(mut body: Incoming) -> Result<Vec<u8>, NoAnswer> {
    let mut whole = Vec::new();
    while let Some(data) = next(&mut body).await? {
        let left = MAX_ANSWER + 1 - whole.len();
        whole.extend_from_slice(&data[..data.len().min(left)]);
        if whole.len() > MAX_ANSWER {
            break;
        }
    }
    Ok(whole)
}
