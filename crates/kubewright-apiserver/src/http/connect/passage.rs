//! One request through the API server to what speaks HTTP behind it
//! (`k8s.io/apimachinery/pkg/util/proxy`, `UpgradeAwareHandler` and `Transport`).

use bytes::Bytes;
use futures::StreamExt;
use http::header::{
    AUTHORIZATION, CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{PathAndQuery, Uri};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kubewright_meta::ApiError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::super::dispatch::RequestInfo;
use super::super::respond::ResponseBody;
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
/// What is escaped in a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// Asks what is at the other end of a connection, and gives its answer.
///
/// # Errors
/// 503 when it does not answer.
pub(super) async fn pass(
    info: &RequestInfo<'_>,
    connection: Box<dyn Duplex>,
) -> Result<Response<ResponseBody>, ApiError> {
    let path = info.behind.unwrap_or_else(|| info.query.text("path"));
    if path.is_empty() && matches!(*info.method, Method::GET | Method::HEAD) {
        return Ok(to_the_root(info.uri));
    }
    let request = request(info, path)?;
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
    rewrite(response.headers_mut(), info.uri.path(), path);
    Ok(response.map(|body| {
        let pieces = body.into_data_stream();
        let pieces = pieces.take_while(|piece| std::future::ready(piece.is_ok()));
        ResponseBody::stream(pieces.filter_map(async |piece| piece.ok()))
    }))
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

/// Leads who is sent elsewhere through the proxy again (`rewriteURL`).
fn rewrite(headers: &mut HeaderMap, path: &str, behind: &str) {
    let before = path.strip_suffix(behind).unwrap_or(path).trim_end_matches('/');
    let Some(location) = headers.get(LOCATION).and_then(|location| location.to_str().ok()) else { return };
    // With a host it leads away, without a slash it starts where the client is.
    if location.starts_with("//") || !location.starts_with('/') || location.starts_with(before) {
        return;
    }
    if let Ok(location) = HeaderValue::try_from(format!("{before}{location}")) {
        headers.insert(LOCATION, location);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_sent_elsewhere_comes_back_through_the_proxy() {
        const PATH: &str = "/api/v1/namespaces/default/pods/web:80/proxy/a/b";
        let rewritten = |location: &'static str| {
            let mut headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(location))]);
            rewrite(&mut headers, PATH, "/a/b");
            headers[LOCATION].to_str().unwrap().to_owned()
        };
        let through = "/api/v1/namespaces/default/pods/web:80/proxy/home?a=b";
        assert_eq!(rewritten("/home?a=b"), through);
        assert_eq!(rewritten("/api/v1/namespaces/default/pods/web:80/proxy/home?a=b"), through);
        assert_eq!(rewritten("home"), "home");
        assert_eq!(rewritten("https://example.com/"), "https://example.com/");
        assert_eq!(rewritten("//example.com/"), "//example.com/");
    }

    #[test]
    fn a_path_stays_as_it_was_written() {
        assert_eq!(escaped("/api/v1/namespaces/n/pods/p/proxy/a%20b/", "/a b/"), "/a%20b/");
        assert_eq!(escaped("/api/v1/namespaces/n/pods/p/proxy", "x y"), "/x%20y");
    }
}
