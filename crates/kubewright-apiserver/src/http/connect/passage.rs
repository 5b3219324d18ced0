//! One request through the API server to what speaks HTTP behind it
//! (`k8s.io/apimachinery/pkg/util/proxy`, `UpgradeAwareHandler` and `Transport`).

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
    HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{PathAndQuery, Uri};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kubewright_meta::ApiError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::super::dispatch::RequestInfo;
use super::super::places::{Length, Places};
use super::super::respond::ResponseBody;
use super::links::Through;
use super::proxy::unreached;
use crate::kubelet::Duplex;

/// Headers that are about one connection (`net/http/httputil`), and those that say who asks: that is the API server's
/// business alone.
const OWN: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    AUTHORIZATION,
];
/// What is said to browsers of who else may read it: the API server alone says so (`corsRemovingTransport`).
const CORS: [HeaderName; 4] = [
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_ALLOW_HEADERS,
    ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN,
];
/// How long a page may be whose links are led through the proxy.
const LONGEST_PAGE: usize = 4 << 20;
/// What is escaped in a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// Asks what is at the other end of a connection, which is `behind` as a host of URLs, and gives its answer.
///
/// # Errors
/// 503 when it does not answer.
pub(super) async fn pass(
    info: &RequestInfo<'_>,
    connection: Box<dyn Duplex>,
    behind: &str,
) -> Result<Response<ResponseBody>, ApiError> {
    let path = info.behind.unwrap_or_else(|| info.query.text("path"));
    if path.is_empty() && matches!(*info.method, Method::GET | Method::HEAD) {
        return Ok(to_the_root(info.uri));
    }
    let request = request(info, path)?;
    let asked =
        request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
    let handshake = http1::handshake::<_, Full<Bytes>>(TokioIo::new(connection)).await;
    let (mut sender, connection) = handshake.map_err(|error| unreached(&error))?;
    let serving = connection.with_upgrades();
    let shutdown = info.server.shutdown().clone();
    tokio::spawn(async move {
        let ended = tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            ended = serving => ended,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection behind the proxy ended with an error");
        }
    });
    let mut response = sender.send_request(request).await.map_err(|error| unreached(&error))?;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        switch(info, &mut response);
    } else {
        remove_own(response.headers_mut());
    }
    for name in CORS {
        response.headers_mut().remove(name);
    }
    let before = info.uri.path().strip_suffix(path).unwrap_or(info.uri.path()).trim_end_matches('/');
    let through = Through { before, behind, asked: &asked };
    lead_through(&through, info.server.places(), *info.method == Method::HEAD, response).await
}

/// Where a path behind the proxy begins, there is a slash (`https://issue.k8s.io/4958`).
fn to_the_root(info: &Uri) -> Response<ResponseBody> {
    let query = info.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut response = Response::new(ResponseBody::whole(""));
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(location) = HeaderValue::try_from(format!("{}/{query}", info.path())) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

fn request(info: &RequestInfo<'_>, path: &str) -> Result<Request<Full<Bytes>>, ApiError> {
    let path = escaped(info.uri.path(), path);
    let query = info.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let uri = PathAndQuery::try_from(format!("{path}{query}"))
        .map_err(|error| ApiError::bad_request(format!("the path behind the proxy: {error}")))?;
    let mut request = Request::new(Full::new(info.body.clone()));
    *request.method_mut() = info.method.clone();
    *request.uri_mut() = uri.into();
    let headers = request.headers_mut();
    headers.clone_from(info.headers);
    let kept = info.upgrade.is_some().then(|| headers.get(UPGRADE).cloned()).flatten();
    remove_own(headers);
    if let Some(protocol) = kept {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, protocol);
    }
    let impersonates = |name: &HeaderName| name.as_str().starts_with("impersonate-");
    let hidden: Vec<HeaderName> = headers.keys().filter(|name| impersonates(name)).cloned().collect();
    for name in hidden {
        headers.remove(name);
    }
    if let Ok(uri) = HeaderValue::try_from(info.uri.path()) {
        headers.insert(FORWARDED, uri);
    }
    if !headers.contains_key(HOST) {
        // HTTP/2 has it in the URI.
        let host = info.uri.authority().map_or("kubernetes", |authority| authority.as_str());
        if let Ok(host) = HeaderValue::try_from(host) {
            headers.insert(HOST, host);
        }
    }
    Ok(request)
}

/// The path behind the proxy as the client has written it: `behind` is what it means.
fn escaped(path: &str, behind: &str) -> String {
    let written = path.split_once("/proxy/").map(|(_, rest)| format!("/{rest}"));
    let path = written.unwrap_or_else(|| utf8_percent_encode(behind, ESCAPED).to_string());
    if path.starts_with('/') { path } else { format!("/{path}") }
}

fn remove_own(headers: &mut HeaderMap) {
    for name in OWN {
        headers.remove(name);
    }
}

/// Both go on in another protocol, through here.
fn switch(info: &RequestInfo<'_>, response: &mut Response<hyper::body::Incoming>) {
    let Some(upgrade) = &info.upgrade else { return };
    let behind = hyper::upgrade::on(response);
    let shutdown = info.server.shutdown().clone();
    upgrade.go_on(move |mut connection| async move {
        let Ok(behind) = behind.await else { return };
        let mut behind = TokioIo::new(behind);
        let copying = tokio::io::copy_bidirectional(&mut connection, &mut behind);
        if let Some(Err(error)) = shutdown.run_until_cancelled(copying).await {
            tracing::debug!(%error, "a connection through the proxy ended with an error");
        }
    });
}

/// Leads who is sent elsewhere through the proxy again, and who reads a page by its links, too.
async fn lead_through(
    through: &Through<'_>,
    places: &Places,
    head_only: bool,
    response: Response<hyper::body::Incoming>,
) -> Result<Response<ResponseBody>, ApiError> {
    let (mut parts, body) = response.into_parts();
    if let Some(location) = parts.headers.get(LOCATION) {
        let through = location.to_str().ok().and_then(|location| through.link(location));
        if let Some(location) = through.and_then(|through| HeaderValue::try_from(through).ok()) {
            parts.headers.insert(LOCATION, location);
        }
        return Ok(Response::from_parts(parts, passed(Bytes::new(), body)));
    }
    if head_only || !is_page(&parts.headers) {
        return Ok(Response::from_parts(parts, passed(Bytes::new(), body)));
    }
    let mut body = body;
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // What breaks is a page that ends there.
        let Ok(frame) = frame else { break };
        let Ok(data) = frame.into_data() else { continue };
        read.extend_from_slice(&data);
        if read.len() > LONGEST_PAGE {
            return Ok(Response::from_parts(parts, passed(read.freeze(), body)));
        }
    }
    let encoding = parts.headers.get(CONTENT_ENCODING).map_or(Ok(""), HeaderValue::to_str).unwrap_or("?");
    let [encoding, before, behind, asked] =
        [encoding, through.before, through.behind, through.asked].map(str::to_owned);
    let read = read.freeze();
    let unchanged = read.clone();
    let led = async move {
        let through = Through { before: &before, behind: &behind, asked: &asked };
        through.encoded_page(&encoding, &read, LONGEST_PAGE as u64)
    };
    let page = places.run(Length::Long, led).await?.map(Bytes::from);
    if let Some(page) = &page {
        parts.headers.insert(CONTENT_LENGTH, page.len().into());
    }
    // As all that comes from there it is not compressed on its way: it may be already.
    let page = futures::stream::iter([page.unwrap_or(unchanged)]);
    Ok(Response::from_parts(parts, ResponseBody::stream(page)))
}

fn is_page(headers: &HeaderMap) -> bool {
    let content = headers.get(CONTENT_TYPE).and_then(|content| content.to_str().ok()).unwrap_or_default();
    content.split(';').next().is_some_and(|media_type| media_type.trim() == "text/html")
}

/// A body as it comes, after what was read of it.
fn passed(read: Bytes, body: hyper::body::Incoming) -> ResponseBody {
    let pieces = body.into_data_stream();
    let pieces = pieces.take_while(|piece| std::future::ready(piece.is_ok()));
    let first = futures::stream::iter(Some(read).filter(|read| !read.is_empty()));
    ResponseBody::stream(first.chain(pieces.filter_map(async |piece| piece.ok())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_as_it_was_written() {
        assert_eq!(escaped("/api/v1/namespaces/n/pods/p/proxy/a%20b/", "/a b/"), "/a%20b/");
        assert_eq!(escaped("/api/v1/namespaces/n/pods/p/proxy", "x y"), "/x%20y");
    }
}
