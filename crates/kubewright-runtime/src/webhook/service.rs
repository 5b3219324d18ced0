//! The webhooks as a function from request to response: what a socket, or a control plane in this process, calls.

use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use futures::FutureExt;
use http::{
    Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE},
};
use kube::{Client, core::Status};
use kubewright_world::World;
use serde_json::Value;

use super::{
    Metrics, Webhook, WebhookContext, Webhooks,
    admission::{self, DynHandler},
    authentication::{self, DynAuthenticator},
    context::Reading,
    conversion::{self, DynConversion},
};
use crate::{Cache, worker::panic_message};

/// The largest admission review (controller-runtime's `maxRequestSize`): two objects of 3 MiB, and what is told about them.
pub const MAX_ADMISSION_BODY: usize = 7 << 20;

/// The largest conversion review. The API server sends the objects of a whole list in one; controller-runtime has no limit.
pub const MAX_CONVERSION_BODY: usize = 128 << 20;

/// The largest token review (controller-runtime's `maxRequestSize` of `pkg/webhook/authentication`).
pub const MAX_TOKEN_BODY: usize = 1 << 20;

/// How long the API server waits for a conversion (`k8s.io/apiserver/pkg/util/webhook`, `defaultRequestTimeout`).
const CONVERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest that a caller can make a handler take, by `?timeout=`.
const LONGEST: Duration = Duration::from_secs(30);

/// Answers what an API server asks; clones are the same.
///
/// Besides a [`Server`](super::Server), which puts it on a socket, a test can call it, or mount it into an embedded control
/// plane (`kubewright_cluster::Cluster::mount_webhooks`).
///
/// A handler that panics or takes longer than the caller waits is answered with 500, so that the webhook's
/// [`FailurePolicy`](super::FailurePolicy) decides what becomes of the request. (controller-runtime refuses the request
/// itself when a handler panics, whatever the policy.)
#[derive(Clone)]
pub struct Service(Arc<Inner>);

struct Inner {
    routes: BTreeMap<String, Route>,
    metrics: Metrics,
}

enum Route {
    Admission(Admission),
    Conversion(Arc<[Arc<dyn DynConversion>]>),
    Authentication(Arc<dyn DynAuthenticator>),
}

struct Admission {
    handler: Arc<dyn DynHandler>,
    timeout: Duration,
    reads: Vec<Reading>,
    /// What its handler works with, as soon as somebody serves it who has that.
    context: OnceLock<WebhookContext>,
}

impl Service {
    pub(crate) fn new(webhooks: &Webhooks) -> Self {
        let admission = webhooks.admission.iter().map(|Webhook { path, handler, timeout, reads, .. }| {
            let (handler, reads) = (Arc::clone(handler), reads.clone());
            let admission = Admission { handler, timeout: *timeout, reads, context: OnceLock::new() };
            (path.clone(), Route::Admission(admission))
        });
        let mut routes: BTreeMap<String, Route> = admission.collect();
        let authenticators = webhooks.authenticators.iter();
        routes
            .extend(authenticators.map(|(path, one)| (path.clone(), Route::Authentication(Arc::clone(one)))));
        if !webhooks.conversions.is_empty() {
            routes
                .insert(conversion::PATH.to_owned(), Route::Conversion(webhooks.conversions.clone().into()));
        }
        let metrics = Metrics::of(routes.keys().map(String::as_str));
        Self(Arc::new(Inner { routes, metrics }))
    }

    /// Lets handlers work with this client and these caches, unless they have others already; the paths of those that do now.
    pub(crate) fn serve_with(&self, client: &Client, world: &World, cache: &Cache) -> Vec<&str> {
        let mut served = Vec::new();
        for (path, route) in &self.0.routes {
            if let Route::Admission(Admission { reads, context, .. }) = route {
                let made = WebhookContext::new(client.clone(), world.clone(), cache.clone(), path, reads);
                if context.set(made).is_ok() {
                    served.push(&**path);
                }
            }
        }
        served
    }

    /// What was done so far.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The largest body that is taken at a path; `None` where nothing is served.
    pub(crate) fn longest_body(&self, path: &str) -> Option<usize> {
        self.0.routes.get(path).map(|route| match route {
            Route::Admission(_) => MAX_ADMISSION_BODY,
            Route::Conversion(_) => MAX_CONVERSION_BODY,
            Route::Authentication(_) => MAX_TOKEN_BODY,
        })
    }

    /// The answer to a request. When the future is dropped, so is the handler.
    pub fn call(&self, request: Request<Bytes>) -> impl Future<Output = Response<Bytes>> + Send + 'static {
        let service = self.clone();
        async move {
            let path = request.uri().path();
            let Some(route) = service.0.routes.get(path) else {
                return refusal(404, "NotFound", &format!("no webhook is served at {path}"));
            };
            let in_flight = service.0.metrics.begin(path);
            let answer = service.answer(route, &request).await;
            in_flight.answered(answer.status().as_u16());
            answer
        }
    }

    async fn answer(&self, route: &Route, request: &Request<Bytes>) -> Response<Bytes> {
        if let Some(refusal) = unacceptable(request, self.longest_body(request.uri().path())) {
            return refusal;
        }
        let (timeout, converting) = match route {
            Route::Admission(admission) => (admission.timeout, false),
            Route::Conversion(_) => (CONVERSION_TIMEOUT, true),
            Route::Authentication(_) => (LONGEST, false),
        };
        let timeout = asked_timeout(request).unwrap_or(timeout);
        let review = AssertUnwindSafe(review(route, request.body())).catch_unwind();
        match tokio::time::timeout(timeout, review).await {
            Ok(Ok(Ok(review))) => json(StatusCode::OK, &review),
            Ok(Ok(Err(why))) => refusal(400, "BadRequest", &why),
            Ok(Err(panic)) => {
                self.0.metrics.panicked(converting);
                let message = panic_message(&*panic);
                tracing::error!(webhook = request.uri().path(), message, "a webhook's handler panicked");
                refusal(500, "InternalError", &format!("panic: {message} [recovered]"))
            }
            Err(_) => {
                self.0.metrics.timed_out();
                tracing::warn!(webhook = request.uri().path(), ?timeout, "a webhook's handler took too long");
                refusal(500, "Timeout", &format!("the webhook's handler took longer than {timeout:?}"))
            }
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.routes.keys()).finish()
    }
}

/// What is wrong with a request before its content is looked at.
fn unacceptable(request: &Request<Bytes>, longest: Option<usize>) -> Option<Response<Bytes>> {
    if request.method() != Method::POST {
        let mut refusal = refusal(405, "MethodNotAllowed", "reviews are posted");
        refusal.headers_mut().insert(ALLOW, http::HeaderValue::from_static("POST"));
        return Some(refusal);
    }
    let given = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = given.split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        let why = format!("contentType={given}, expected application/json");
        return Some(refusal(415, "UnsupportedMediaType", &why));
    }
    if request.body().is_empty() {
        return Some(refusal(400, "BadRequest", "request body is empty"));
    }
    longest.filter(|longest| request.body().len() > *longest).map(too_large)
}

/// Runs a handler. A future, so that a panic is caught wherever it is.
async fn review(route: &Route, body: &[u8]) -> Result<Value, String> {
    match route {
        Route::Admission(Admission { handler, context, .. }) => {
            let mut request = admission::request(body)?;
            request.context = context.get().cloned();
            if let Some(context) = &request.context {
                context.filled().await;
            }
            let response = handler.handle(&request).await;
            let (uid, user, allowed) = (&request.uid, request.user(), response.is_allowed());
            tracing::debug!(
                operation = request.operation.name(),
                resource = request.resource.resource,
                namespace = request.namespace,
                name = request.name,
                user,
                uid,
                allowed,
                "a review was answered"
            );
            response.review(uid).map_err(|error| format!("the answer is no JSON: {error}"))
        }
        Route::Conversion(conversions) => conversion::answer(conversions, body),
        Route::Authentication(authenticator) => authentication::answer(&**authenticator, body).await,
    }
}

/// How long the caller waits, as kube-apiserver says it: `?timeout=10s`.
fn asked_timeout(request: &Request<Bytes>) -> Option<Duration> {
    let query = request.uri().query()?;
    let text = query.split('&').find_map(|part| part.strip_prefix("timeout="))?;
    let seconds = text.strip_suffix('s')?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(LONGEST)).filter(|timeout| !timeout.is_zero())
}

pub(crate) fn too_large(longest: usize) -> Response<Bytes> {
    let why = format!("request entity is too large; limit is {longest} bytes");
    refusal(413, "RequestEntityTooLarge", &why)
}

/// A refusal as a Status, whose message kube-apiserver tells its client.
pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> Response<Bytes> {
    let mut status =
        kubewright_objects::to_value(&Status::failure(message, reason).with_code(code)).unwrap_or_default();
    status["kind"] = "Status".into();
    status["apiVersion"] = "v1".into();
    json(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &status)
}

fn json(code: StatusCode, body: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
