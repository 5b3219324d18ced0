//! Admin service: a tower service in front of an API server that logs each request and injects faults.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use kubewright_apiserver::http::ApiServer;
use kubewright_codec::request::Query;
use tokio::time::Instant;
use tower::Service;

use super::body::{self, Body, Cut, Watch};
use super::history::{self, Gone};
use super::request_info::RequestInfo;
use super::rule::{ApiFault, NoAnswer};
use super::{Admin, endpoint, refusal, report};
use crate::journal;

/// How much of the body of a request is read that nobody reads: what the API server takes.
const LARGEST: usize = 3 << 20;

/// An API server behind its [`Admin`].
#[derive(Clone)]
pub(crate) struct AdminService {
    pub(super) server: ApiServer,
    pub(super) admin: Admin,
}

/// What a body of a request has to be.
pub(crate) trait RequestBody:
    http_body::Body<Data = Bytes, Error: Into<tower::BoxError>> + Send + 'static
{
}

impl<B: http_body::Body<Data = Bytes, Error: Into<tower::BoxError>> + Send + 'static> RequestBody for B {}

impl AdminService {
    pub(crate) fn new(server: ApiServer, admin: Admin) -> Self {
        Self { server, admin }
    }

    async fn answer<B: RequestBody>(self, request: Request<B>) -> Result<Response<Body>, Cut> {
        if self.admin.asks_for_reconciles() {
            if report::is_report(&request) {
                return Ok(report::answer(&self, request).await);
            }
            return self.handle(request).await.map(report::ask);
        }
        self.handle(request).await
    }

    async fn handle<B: RequestBody>(self, request: Request<B>) -> Result<Response<Body>, Cut> {
        if self.admin.is_served() && endpoint::is_own(&request) {
            return Ok(endpoint::answer(&self, request).await);
        }
        let (mut parts, body) = request.into_parts();
        let info = Arc::new(self.identify(&mut parts).await);
        let request = Request::from_parts(parts, body);
        let (time, came) = (self.admin.now(), Instant::now());
        let intervention = self.admin.judge(&info);
        if !intervention.delay.is_zero() {
            tokio::time::sleep(intervention.delay).await;
        }
        let answering = async {
            match &intervention.fault {
                Some(fault) => self.fail(fault, &info, request).await,
                None => Ok(self.forward(&info, request).await),
            }
        };
        // What comes over a socket has nobody else who says whose its commits are.
        let answer = journal::under(Arc::clone(&info), answering).await;
        let code = answer.as_ref().ok().map(|response| response.status().as_u16());
        self.admin.note(time, info, came.elapsed(), code, intervention.by);
        answer
    }

    /// Who asks for what. The server is told who was found out, and need not do so again.
    pub(super) async fn identify(&self, parts: &mut Parts) -> RequestInfo {
        let snapshot = self.server.engine().snapshot();
        let lookup =
            |collection: &str, key: &str| snapshot.get(collection, key).map(|entry| entry.bytes.clone());
        let authenticator = self.server.authenticator();
        let user = match authenticator.authenticate(parts, &lookup) {
            Ok(user) => Some(user),
            Err(_) => authenticator.ask(&parts.headers).await,
        };
        let info = RequestInfo::of(parts, user.as_ref().map_or("", |user| &user.name));
        if let Some(user) = user {
            parts.extensions.insert(user);
        }
        info
    }

    /// The answer to a request that a fault affects.
    async fn fail<B: RequestBody>(
        &self,
        fault: &ApiFault,
        info: &RequestInfo,
        request: Request<B>,
    ) -> Result<Response<Body>, Cut> {
        if let ApiFault::Timeout { done, answer } = fault {
            if *done {
                drop(self.serve(request).await);
            } else {
                read_away(request.into_body()).await;
            }
            return match answer {
                NoAnswer::Cut => Err(Cut::Fault),
                NoAnswer::GatewayTimeout => Ok(refusal::status(&refusal::timed_out())),
            };
        }
        if let ApiFault::OldList { revision } = fault {
            return Ok(self.serve(history::as_of(request, *revision)).await.map(Body::from));
        }
        match refusal::answer(fault, info) {
            Some(response) => {
                read_away(request.into_body()).await;
                Ok(response)
            }
            None => Ok(self.serve(request).await.map(Body::from)),
        }
    }

    /// The server's answer to a request, where its history is there.
    async fn forward<B: RequestBody>(&self, info: &Arc<RequestInfo>, request: Request<B>) -> Response<Body> {
        if let Some(oldest) = self.admin.oldest(info) {
            match history::gone(info, &Query::parse(request.uri().query()), oldest) {
                Some(Gone::Watch(error)) => {
                    let event = body::error_event(&error, false);
                    return refusal::respond(StatusCode::OK, "application/json", event);
                }
                Some(Gone::List(error)) => return refusal::status(&error),
                None => {}
            }
        }
        let response = self.serve(request).await;
        if info.verb != "watch" || response.status() != StatusCode::OK {
            return response.map(Body::from);
        }
        let media_type = response.headers().get(http::header::CONTENT_TYPE);
        let protobuf =
            media_type.is_some_and(|media_type| media_type.as_bytes().starts_with(b"application/vnd."));
        response.map(|server| Body::watch(Watch::open(&self.admin, Arc::clone(info), server, protobuf)))
    }

    async fn serve<B: RequestBody>(
        &self,
        request: Request<B>,
    ) -> Response<kubewright_apiserver::http::ResponseBody> {
        self.server.clone().call(request).await.unwrap_or_else(|never| match never {})
    }
}

/// Reads the body of a request that is not carried out: a client that is still sending might not read its answer.
async fn read_away<B: RequestBody>(body: B) {
    let _ = Limited::new(Box::pin(body), LARGEST).collect().await;
}

impl<B: RequestBody> Service<Request<B>> for AdminService {
    type Response = Response<Body>;
    type Error = Cut;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Cut>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Cut>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}
