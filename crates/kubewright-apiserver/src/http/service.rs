//! The service: every request is answered, whatever happens on the way.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response};
use http_body::Body;
use kubewright_store::Snapshot;
use tokio_util::sync::CancellationToken;

use super::negotiate::Encoding;
use super::request::{Path, Query, Target};
use super::respond::{self, ResponseBody};
use super::{dispatch, system};
use crate::authn::{Authenticator, User, impersonation};
use crate::authz::{Attributes, forbidden};
use crate::error::ApiError;
use crate::registry::{Registry, Summary};

/// What an [`ApiServer`] is made of.
pub struct Config {
    /// The objects.
    pub registry: Arc<Registry>,
    /// Who is it?
    pub authenticator: Authenticator,
    /// Ends watches when it is cancelled, so that a server can stop.
    pub shutdown: CancellationToken,
    /// Where clients reach the server, as `host:port`; told by discovery.
    pub address: String,
}

/// The Kubernetes API as a tower service: cheap to clone, needs no socket, never fails.
#[derive(Clone)]
pub struct ApiServer(Arc<Config>);

/// One request with all that was found out about it.
pub(super) struct Incoming<B> {
    pub parts: Parts,
    pub body: B,
    pub query: Query,
    pub user: User,
}

impl ApiServer {
    /// Serves this.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self(Arc::new(config))
    }

    /// The objects behind the service.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    /// Who is who.
    #[must_use]
    pub fn authenticator(&self) -> &Authenticator {
        &self.0.authenticator
    }

    pub(super) fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
    }

    pub(super) fn address(&self) -> &str {
        &self.0.address
    }

    async fn answer<B>(self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let yaml =
            request.headers().get(http::header::ACCEPT).is_some_and(|accept| accept == "application/yaml");
        let encoding = if yaml { Encoding::Yaml } else { Encoding::Json };
        match AssertUnwindSafe(self.handle(request)).catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => respond::failure(&error, encoding),
            Err(_) => {
                tracing::error!("a request made the API server panic");
                respond::failure(
                    &ApiError::internal("the server panicked while it handled the request"),
                    encoding,
                )
            }
        }
    }

    async fn handle<B>(&self, request: Request<B>) -> Result<Response<ResponseBody>, ApiError>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let snapshot = self.0.registry.snapshot();
        let lookup =
            |collection: &str, key: &str| snapshot.get(collection, key).map(|entry| entry.bytes.clone());
        let caller = self.0.authenticator.authenticate(&parts, &lookup)?;
        let query = Query::parse(parts.uri.query());
        match Path::parse(parts.uri.path())? {
            Path::Other(segments) => {
                let verb = parts.method.as_str().to_ascii_lowercase();
                let what = Attributes { verb: &verb, path: parts.uri.path(), ..Attributes::default() };
                self.authorize(&snapshot, caller, &parts.headers, &what)?;
                system::answer(self, &parts, &segments)
            }
            Path::Resource(target) => {
                let verb = verb(&parts.method, &target, &query)?;
                let user = self.authorize(
                    &snapshot,
                    caller,
                    &parts.headers,
                    &attributes(verb, &target, named(&query)),
                )?;
                drop(snapshot);
                dispatch::answer(self, Incoming { parts, body, query, user }, verb, &target).await
            }
        }
    }

    /// Who acts (the caller, or whom the caller may act as), where they may do that.
    fn authorize(
        &self,
        snapshot: &Snapshot<Summary>,
        caller: User,
        headers: &HeaderMap,
        what: &Attributes<'_>,
    ) -> Result<User, ApiError> {
        let rbac = self.0.registry.authorizer().rbac(snapshot);
        let user = match impersonation::wanted(headers)? {
            Some(wanted) => impersonation::impersonate(&rbac, &caller, &wanted, what)?,
            None => caller,
        };
        let decision = rbac.authorize(&user, what);
        if decision.allowed { Ok(user) } else { Err(forbidden(&user, what, &decision.reason)) }
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.clone().answer(request).map(Ok).boxed()
    }
}

/// What a request does, in the words of RBAC.
fn verb(method: &Method, target: &Target, query: &Query) -> Result<&'static str, ApiError> {
    Ok(match *method {
        Method::GET | Method::HEAD if target.watch => "watch",
        _ if target.watch => return Err(ApiError::method_not_allowed()),
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if target.name.is_empty() => "deletecollection",
        Method::DELETE => "delete",
        Method::GET | Method::HEAD if !target.name.is_empty() => "get",
        Method::GET | Method::HEAD if query.flag("watch") => "watch",
        Method::GET | Method::HEAD => "list",
        _ => return Err(ApiError::method_not_allowed()),
    })
}

/// The one object that a list or a watch is about, when its field selector says so.
fn named(query: &Query) -> &str {
    query
        .text("fieldSelector")
        .strip_prefix("metadata.name=")
        .filter(|name| !name.contains([',', '=']))
        .unwrap_or_default()
}

fn attributes<'a>(verb: &'a str, target: &'a Target, selected: &'a str) -> Attributes<'a> {
    let lists = matches!(verb, "list" | "watch" | "deletecollection");
    let in_namespaces = target.resource == "namespaces" && target.group.is_empty();
    Attributes {
        verb,
        group: &target.group,
        version: &target.version,
        resource: &target.resource,
        subresource: &target.subresource,
        // The path of a namespace names it as a place too, so that a role inside it can speak of it.
        namespace: if in_namespaces { &target.name } else { &target.namespace },
        name: if lists && target.name.is_empty() { selected } else { &target.name },
        path: "",
    }
}
