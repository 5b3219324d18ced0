//! How a client in this process reaches the API server: as a function call, under an identity that the transport
//! vouches for.

use bytes::Bytes;
use http::header::{HeaderValue, USER_AGENT};
use http::uri::{PathAndQuery, Uri};
use http::{Request, Response};
use kube::Client;
use kubewright_apiserver::authn::User;
use kubewright_apiserver::http::ApiServer;
use tower::{BoxError, Service, ServiceExt, service_fn};

use crate::admin::Admin;
use crate::admin::front::Front;

/// Ten years, in seconds.
const LONGEST_WATCH: u32 = 10 * 365 * 24 * 60 * 60;

/// Who makes the requests of a client.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Whose rights count.
    pub(crate) user: User,
    /// The program, for requests that name none: whose the fields are that it writes (`managedFields`).
    pub(crate) program: Option<HeaderValue>,
}

/// A client of this caller: no socket, no TLS, no token. It does not keep the server: once the cluster has ended, its
/// requests fail.
pub(crate) fn client(server: &ApiServer, caller: Caller, default_namespace: &str) -> Client {
    through(server, caller, default_namespace, |server| server)
}

/// The same for one whose requests pass an [`Admin`].
pub(crate) fn client_behind(
    admin: &Admin,
    server: &ApiServer,
    caller: Caller,
    default_namespace: &str,
) -> Client {
    let admin = admin.clone();
    through(server, caller, default_namespace, move |server| Front::new(server, admin.clone()))
}

/// A client as [`client`], for caches: its watches last for ten years. Otherwise the server ends one after half an hour or
/// more, which spreads the clients of a large cluster; virtual years are not to be spent on that.
pub(crate) fn lasting(server: &ApiServer, caller: Caller, default_namespace: &str) -> Client {
    through(server, caller, default_namespace, |server| {
        server.map_request(|mut request: Request<kube::client::Body>| {
            if let Some(uri) = lasting_watch(request.uri()) {
                *request.uri_mut() = uri;
            }
            request
        })
    })
}

/// The same watch with no end and no bookmarks; `None` for what is no watch.
fn lasting_watch(uri: &Uri) -> Option<Uri> {
    let query = uri.query().filter(|query| query.split('&').any(|part| part == "watch=true"))?;
    let bounded =
        |part: &&str| part.starts_with("timeoutSeconds=") || part.starts_with("allowWatchBookmarks=");
    let kept: Vec<_> = query.split('&').filter(|part| !bounded(part)).collect();
    let text = format!("{}?{}&timeoutSeconds={LONGEST_WATCH}", uri.path(), kept.join("&"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
    Uri::from_parts(parts).ok()
}

fn through<S, B>(
    server: &ApiServer,
    caller: Caller,
    default_namespace: &str,
    front: impl Fn(ApiServer) -> S + Send + 'static,
) -> Client
where
    S: Service<
            Request<kube::client::Body>,
            Response = Response<B>,
            Error: Into<BoxError>,
            Future: Send + 'static,
        >,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let server = server.downgrade();
    let service = service_fn(move |mut request: Request<kube::client::Body>| {
        request.extensions_mut().insert(caller.user.clone());
        if let Some(program) = &caller.program {
            request.headers_mut().entry(USER_AGENT).or_insert_with(|| program.clone());
        }
        let answer = server.upgrade().map(|server| front(server).call(request));
        async move {
            match answer {
                Some(answer) => answer.await.map_err(Into::into),
                None => Err(BoxError::from("the cluster has ended")),
            }
        }
    });
    Client::new(service, default_namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_watches_are_made_to_last() {
        let adjusted = |uri: &'static str| lasting_watch(&Uri::from_static(uri)).map(|uri| uri.to_string());
        assert_eq!(
            adjusted("/api/v1/pods?&watch=true&timeoutSeconds=0&allowWatchBookmarks=true&resourceVersion=7"),
            Some("/api/v1/pods?&watch=true&resourceVersion=7&timeoutSeconds=315360000".to_owned())
        );
        assert_eq!(adjusted("/api/v1/pods?timeoutSeconds=290"), None);
    }
}
