//! One request on its way to the API server that serves what it asks for
//! (`k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go`, `k8s.io/client-go/transport`, `AuthProxy`).

use std::time::Duration;

use futures::StreamExt;
use http::header::{
    AUTHORIZATION, CONNECTION, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use kubewright_identity::authn::User;
use kubewright_identity::webhook::{Route, UpstreamBody};
use kubewright_kinds::rules::api_services::ApiService;

use super::super::incoming::{self, RequestBody};
use super::super::listener::RemoteAddress;
use super::super::respond;
use super::super::response_body::{CutOff, ResponseBody};
use super::super::service::ApiServer;
use super::super::upgrade::Upgrade;

/// Headers that are about one connection (`net/http/httputil`).
const OWN: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
const REMOTE_USER: HeaderName = HeaderName::from_static("x-remote-user");
const REMOTE_UID: HeaderName = HeaderName::from_static("x-remote-uid");
const REMOTE_GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const REMOTE_EXTRA: &str = "x-remote-extra-";
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// How long the discovery of a version may take (`k8s.io/apiserver/pkg/util/proxy`, `aggregatedDiscoveryTimeout`).
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);

/// A request and where it goes.
pub(super) struct Passage<'a> {
    pub(super) server: &'a ApiServer,
    pub(super) service: &'a ApiService,
    pub(super) parts: &'a Parts,
    pub(super) user: &'a User,
}

impl Passage<'_> {
    /// The answer from there, or why there is none.
    pub(super) async fn answer(&self, body: &mut RequestBody) -> Response<ResponseBody> {
        let unavailable = || refused(StatusCode::SERVICE_UNAVAILABLE, "service unavailable");
        let Some(backend) = self.service.backend.as_ref().filter(|_| self.service.is_available) else {
            return unavailable();
        };
        let aggregation = self.server.aggregation();
        let upstreams = &aggregation.upstreams;
        let upstream = aggregation.upstream(backend, backend.insecure);
        if let Err(why) = upstreams.check(&upstream) {
            return refused(StatusCode::INTERNAL_SERVER_ERROR, &why);
        }
        let Ok(route) = upstreams.route(&upstream, &self.server.engine().snapshot()) else {
            return unavailable();
        };
        let upgrade = Upgrade::of(self.parts);
        let request = self.request(&route, upgrade.is_some(), std::mem::replace(body, incoming::empty()));
        let sending = upstreams.send(&upstream, &route, request);
        let sent = if is_discovery(self.parts.uri.path()) {
            let clock = self.server.engine().world().clock;
            let answered = clock.wait_outside(DISCOVERY_TIMEOUT, sending).await;
            answered.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()))
        } else {
            sending.await
        };
        match sent {
            Ok(response) => self.response(response, upgrade),
            Err(why) if upgrade.is_some() => refused(StatusCode::SERVICE_UNAVAILABLE, &why),
            Err(why) => {
                let why = format!("error trying to reach service: {why}");
                refused(StatusCode::SERVICE_UNAVAILABLE, &why)
            }
        }
    }

    /// The request as it goes on: with who asks, as this server has found out, in place of what proves it.
    fn request(&self, route: &Route, upgrades: bool, body: RequestBody) -> Request<UpstreamBody> {
        let body = body.map_err(|error| Box::new(error) as _).boxed_unsync();
        let mut request = Request::new(body);
        *request.method_mut() = self.parts.method.clone();
        *request.uri_mut() = self.parts.uri.clone();
        let headers = request.headers_mut();
        headers.clone_from(&self.parts.headers);
        let protocol = upgrades.then(|| headers.get(UPGRADE).cloned()).flatten();
        remove_own(headers);
        headers.remove(AUTHORIZATION);
        let said: Vec<HeaderName> = headers.keys().filter(|name| says_who(name.as_str())).cloned().collect();
        for name in said {
            headers.remove(name);
        }
        set_user(headers, self.user);
        if let Some(protocol) = protocol {
            headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(UPGRADE, protocol);
            return request;
        }
        set(headers, FORWARDED_URI, self.parts.uri.path());
        set(headers, FORWARDED_HOST, route.host());
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
        if let Some(RemoteAddress(client)) = self.parts.extensions.get::<RemoteAddress>() {
            let before = headers.get(FORWARDED_FOR).and_then(|before| before.to_str().ok());
            let all =
                before.map_or_else(|| client.ip().to_string(), |before| format!("{before}, {}", client.ip()));
            set(headers, FORWARDED_FOR, &all);
        }
        request
    }

    fn response(
        &self,
        mut response: Response<hyper::body::Incoming>,
        upgrade: Option<Upgrade>,
    ) -> Response<ResponseBody> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if let Some(upgrade) = upgrade {
                self.switch(&upgrade, &mut response);
            }
            return response.map(|_| ResponseBody::whole(""));
        }
        remove_own(response.headers_mut());
        let shutdown = self.server.shutdown().clone();
        response.map(|body| {
            let pieces = body.into_data_stream().map(|piece| piece.map_err(|_| CutOff));
            ResponseBody::passed(pieces.take_until(shutdown.cancelled_owned()))
        })
    }

    /// Both go on in another protocol, through here.
    fn switch(&self, upgrade: &Upgrade, response: &mut Response<hyper::body::Incoming>) {
        let behind = hyper::upgrade::on(response);
        let shutdown = self.server.shutdown().clone();
        upgrade.go_on(move |mut connection| async move {
            let Ok(behind) = behind.await else { return };
            let mut behind = TokioIo::new(behind);
            let copying = tokio::io::copy_bidirectional(&mut connection, &mut behind);
            if let Some(Err(error)) = shutdown.run_until_cancelled(copying).await {
                tracing::debug!(%error, "a connection through the aggregator ended with an error");
            }
        });
    }
}

/// Whether a path is that of a version, below which everything else is.
fn is_discovery(path: &str) -> bool {
    path.trim_matches('/').split('/').count() == 3
}

/// Whether a header is one by which somebody says who asks, or who is to be acted as.
fn says_who(name: &str) -> bool {
    [REMOTE_USER, REMOTE_UID, REMOTE_GROUP].iter().any(|known| known.as_str() == name)
        || name.starts_with(REMOTE_EXTRA)
        || name.starts_with("impersonate-")
}

/// Says who asks.
pub(super) fn set_user(headers: &mut HeaderMap, user: &User) {
    set(headers, REMOTE_USER, &user.name);
    if !user.uid.is_empty() {
        set(headers, REMOTE_UID, &user.uid);
    }
    for group in &user.groups {
        if let Ok(group) = HeaderValue::from_bytes(group.as_bytes()) {
            headers.append(REMOTE_GROUP, group);
        }
    }
    for (key, values) in &user.extra {
        let Ok(name) = HeaderName::from_bytes(format!("{REMOTE_EXTRA}{}", escaped(key)).as_bytes()) else {
            continue;
        };
        for value in values.iter().filter_map(|value| HeaderValue::from_bytes(value.as_bytes()).ok()) {
            headers.append(name.clone(), value);
        }
    }
}

/// A key as it may stand in the name of a header (`headerKeyEscape`).
fn escaped(key: &str) -> String {
    const SIGNS: &[u8] = b"!#$&'*+-.^_`|~";
    let mut text = String::new();
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || SIGNS.contains(&byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
    }
    text
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        headers.insert(name, value);
    }
}

fn remove_own(headers: &mut HeaderMap) {
    // What else belongs to one connection is named there.
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.into_iter().chain(OWN) {
        headers.remove(name);
    }
}

/// Why a request does not go on, as Go's `http.Error` says it.
fn refused(code: StatusCode, why: &str) -> Response<ResponseBody> {
    respond::plain_error(code, format!("{why}\n"))
}

/// A request of this server's own.
pub(super) fn get(path: &str, user: &User) -> Request<UpstreamBody> {
    let mut request = Request::new(incoming::empty().map_err(|error| Box::new(error) as _).boxed_unsync());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = path.parse().unwrap_or_default();
    set_user(request.headers_mut(), user);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_told_in_headers_and_what_the_client_says_of_itself_is_not() {
        let mut user = User::new("jane", ["dev", "system:authenticated"]);
        user.uid = "1".to_owned();
        user.extra.insert("example.com/a b%".to_owned(), vec!["x".to_owned(), "y".to_owned()]);
        let mut headers = HeaderMap::new();
        set_user(&mut headers, &user);
        assert_eq!(headers["x-remote-user"], "jane");
        assert_eq!(headers["x-remote-uid"], "1");
        assert_eq!(headers.get_all("x-remote-group").iter().count(), 2);
        let extra: Vec<_> = headers.get_all("x-remote-extra-example.com%2fa%20b%25").iter().collect();
        assert_eq!(extra, ["x", "y"]);
        assert!(says_who("x-remote-extra-anything") && says_who("impersonate-user") && !says_who("accept"));
    }

    #[test]
    fn headers_of_a_connection_stay_with_it() {
        let all = [("connection", "close, X-Own"), ("x-own", "1"), ("te", "trailers"), ("accept", "*/*")];
        let mut headers: HeaderMap = all
            .into_iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        remove_own(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }

    #[test]
    fn a_path_of_three_steps_is_discovery() {
        assert!(is_discovery("/apis/example.com/v1") && is_discovery("/apis/example.com/v1/"));
        assert!(!is_discovery("/apis/example.com") && !is_discovery("/apis/example.com/v1/things"));
    }
}
