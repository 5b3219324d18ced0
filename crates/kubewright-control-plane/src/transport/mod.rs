//! How a client in this process reaches the API server: as a function call, under an identity that the transport
//! vouches for. A request that is to go on in another protocol (`exec`, `attach`, `portforward`) gets a connection of its
//! own, in memory.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http::header::{HeaderValue, UPGRADE, USER_AGENT};
use http::uri::{PathAndQuery, Uri};
use http::{Method, Request, Response};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use kube::Client;
use kubewright_apiserver::http::ApiServer;
use kubewright_identity::authn::User;
use tower::{BoxError, Service, service_fn};

use crate::admin::service::AdminService;
use crate::admin::{Admin, RequestInfo};
use crate::journal;

/// Ten years, in seconds.
const LONGEST_WATCH: u32 = 10 * 365 * 24 * 60 * 60;

/// Bytes that are under way on a connection in memory.
const BUFFER: usize = 64 << 10;

/// Who makes the requests of a client.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Whose rights count.
    pub(crate) user: User,
    /// The program, for requests that name none: whose the fields are that it writes (`managedFields`).
    pub(crate) program: Option<HeaderValue>,
    /// Whether the journal tells of what it writes.
    pub(crate) is_noted: bool,
}

/// Options of a client in this process.
#[derive(Default)]
pub(crate) struct ClientOptions {
    /// Who notes its requests, and makes some fail.
    pub(crate) admin: Option<Admin>,
    /// Whether its watches last for ten years, for caches: otherwise the server ends one after half an hour or more, which
    /// spreads the clients of a large cluster; virtual years are not to be spent on that.
    pub(crate) watches_last: bool,
}

/// A client of this caller: no socket, no TLS, no token. It does not keep the server: once the cluster has ended, its
/// requests fail.
pub(crate) fn client(
    server: &ApiServer,
    caller: Caller,
    default_namespace: &str,
    options: ClientOptions,
) -> Client {
    let last = options.watches_last;
    match options.admin {
        None => through(server, caller, default_namespace, last, |server| server),
        Some(admin) => through(server, caller, default_namespace, last, move |server| {
            AdminService::new(server, admin.clone())
        }),
    }
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
    watches_last: bool,
    service: impl Fn(ApiServer) -> S + Send + 'static,
) -> Client
where
    S: Service<
            Request<kube::client::Body>,
            Response = Response<B>,
            Error: Into<BoxError>,
            Future: Send + 'static,
        > + Clone
        + Send
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let server = server.downgrade();
    let service = service_fn(move |mut request: Request<kube::client::Body>| {
        request.extensions_mut().insert(caller.user.clone());
        if watches_last && let Some(uri) = lasting_watch(request.uri()) {
            *request.uri_mut() = uri;
        }
        if let Some(program) = &caller.program {
            request.headers_mut().entry(USER_AGENT).or_insert_with(|| program.clone());
        }
        let (parts, body) = request.into_parts();
        let is_noted = caller.is_noted && parts.method != Method::GET;
        let author = is_noted.then(|| Arc::new(RequestInfo::of(&parts, &caller.user.name)));
        let request = Request::from_parts(parts, body);
        let mut service = server.upgrade().map(&service);
        let switching = request.headers().contains_key(UPGRADE).then(|| caller.user.clone());
        async move {
            let service = service.as_mut().ok_or("the cluster has ended")?;
            if let Some(user) = switching {
                return Ok(connect(service.clone(), user, request).await?.map(Either::Right));
            }
            let answering = service.call(request);
            let answered = match author {
                Some(author) => journal::under(author, answering).await,
                None => answering.await,
            };
            let answered: Result<_, BoxError> = answered.map_err(Into::into);
            Ok::<_, BoxError>(answered?.map(Either::Left))
        }
    });
    Client::new(service, default_namespace)
}

/// Sends a request on a connection that only it has: both its ends can be gone on with in another protocol.
async fn connect<S, B>(
    service: S,
    user: User,
    request: Request<kube::client::Body>,
) -> Result<Response<Incoming>, BoxError>
where
    S: Service<
            Request<kube::client::Body>,
            Response = Response<B>,
            Error: Into<BoxError>,
            Future: Send + 'static,
        > + Clone
        + Send
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let (near, far) = tokio::io::duplex(BUFFER);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(user.clone());
        // A request of this kind has none.
        service.clone().call(request.map(|_| kube::client::Body::empty()))
    });
    let serving = http1::Builder::new().serve_connection(TokioIo::new(far), service).with_upgrades();
    tokio::spawn(serving.map(|ended| report(ended.map_err(Into::into))));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await?;
    tokio::spawn(connection.with_upgrades().map(|ended| report(ended.map_err(Into::into))));
    Ok(sender.send_request(request).await?)
}

fn report(ended: Result<(), BoxError>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection in memory ended with an error");
    }
}

#[cfg(test)]
mod tests;
