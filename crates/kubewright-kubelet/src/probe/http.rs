//! Probes and hooks that make an HTTP request.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, HOST, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::HTTPHeader;
use kubewright_serve::unverified;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};

use super::url::Url;
use super::{ProbeResult, tcp};

/// So much of a body is read.
const LONGEST_BODY: usize = 10 * 1024;
const REDIRECTS: usize = 10;

pub(super) async fn probe(url: &Url, headers: &[HTTPHeader], timeout: Duration) -> ProbeResult {
    match get(url, headers, &super::user_agent("kube-probe"), timeout).await {
        Ok((200..=299, _)) => ProbeResult::Good,
        Ok((300..=399, body)) => {
            ProbeResult::Warning(format!("Probe terminated redirects, Response body: {body}"))
        }
        Ok((code, _)) => ProbeResult::Bad(format!("HTTP probe failed with statuscode: {code}")),
        Err(problem) => ProbeResult::Bad(problem),
    }
}

/// Asks, and follows redirects on the same host. Gives the status code and the beginning of the body; a failure is told in
/// Go's words.
pub(crate) async fn get(
    url: &Url,
    headers: &[HTTPHeader],
    agent: &str,
    timeout: Duration,
) -> Result<(u16, String), String> {
    let late = || {
        format!("Get \"{url}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)")
    };
    let all = async {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            let response = ask(&url, headers, agent, timeout).await?;
            let code = response.status().as_u16();
            let target = response.headers().get(LOCATION).and_then(|to| url.redirected(to.to_str().ok()?));
            match target {
                Some(target) if matches!(code, 301 | 302 | 303 | 307 | 308) => url = target,
                _ => {
                    let body = Limited::new(response.into_body(), LONGEST_BODY).collect().await;
                    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                    return Ok((code, String::from_utf8_lossy(&body).into_owned()));
                }
            }
        }
        Err(format!("Get \"{url}\": stopped after 10 redirects"))
    };
    tokio::time::timeout(timeout, all).await.unwrap_or_else(|_| Err(late()))
}

async fn ask(
    url: &Url,
    headers: &[HTTPHeader],
    agent: &str,
    timeout: Duration,
) -> Result<Response<Incoming>, String> {
    let failed = |problem: String| format!("Get \"{url}\": {problem}");
    let stream = tcp::connect(&url.host, url.port, timeout).await.map_err(failed)?;
    let request = request(url, headers, agent).map_err(failed)?;
    let response = if url.scheme == "https" {
        let name = ServerName::try_from(url.host.clone()).map_err(|error| failed(error.to_string()))?;
        // Probes trust any certificate, as the kubelet's do.
        let stream = unverified::connect(name, stream).await.map_err(|error| failed(not_tls(&error)))?;
        send(stream, request).await
    } else {
        send(stream, request).await
    };
    response.map_err(|error| {
        failed(if error.is_incomplete_message() { "EOF".to_owned() } else { error.to_string() })
    })
}

fn not_tls(error: &io::Error) -> String {
    if error.to_string().contains("InvalidContentType") {
        "http: server gave HTTP response to HTTPS client".to_owned()
    } else {
        error.to_string()
    }
}

fn request(url: &Url, headers: &[HTTPHeader], agent: &str) -> Result<Request<Empty<Bytes>>, String> {
    let mut all = HeaderMap::new();
    for HTTPHeader { name, value } in headers {
        let name: HeaderName = name.parse().map_err(|_| format!("invalid header field name {name:?}"))?;
        let value = HeaderValue::from_str(value)
            .map_err(|_| format!("invalid header field value for {:?}", name.as_str()))?;
        all.append(name, value);
    }
    if let Ok(agent) = HeaderValue::from_str(agent) {
        all.entry(USER_AGENT).or_insert(agent);
    }
    all.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    all.insert(CONNECTION, HeaderValue::from_static("close"));
    if !all.contains_key(HOST) {
        let host = HeaderValue::from_str(&url.authority()).map_err(|error| error.to_string())?;
        all.insert(HOST, host);
    }
    let mut request = Request::get(&url.path).body(Empty::new()).map_err(|error| error.to_string())?;
    *request.headers_mut() = all;
    Ok(request)
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Empty<Bytes>>,
) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    sender.send_request(request).await
}
