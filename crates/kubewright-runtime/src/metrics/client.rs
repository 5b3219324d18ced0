//! What a client of the API server counts: each request by what became of it.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::{Client, client::Body};
use prometheus::{IntCounterVec, Registry};
use tower::{BoxError, Layer, Service, service_fn};

use super::family::counters;

/// `rest_client_requests_total{code,method,host}`. As a layer of a client's stack it counts every request that leaves, at
/// the end of its answer's head; what never got an answer has the code `<error>`, as in client-go
/// (`k8s.io/client-go/rest/request.go`).
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    requests: IntCounterVec,
}

impl RequestMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let help = "Number of HTTP requests, partitioned by status code, method, and host.";
        let labels = ["code", "method", "host"];
        Self { requests: counters(registry, "rest_client_requests_total", help, &labels) }
    }

    /// A layer that counts requests to `host` (as in a URL: with the port if it is told).
    #[must_use]
    pub fn layer(&self, host: &str) -> RequestLayer {
        RequestLayer { metrics: self.clone(), host: host.to_owned() }
    }

    /// A client whose requests are counted, and are `client`'s: for one that was made without the [layer](Self::layer).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn client(&self, client: Client, host: &str) -> Client {
        let (namespace, valid_until) = (client.default_namespace().to_owned(), *client.valid_until());
        let service = service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await.map_err(BoxError::from) }
        });
        let counted = self.layer(host).layer(service);
        Client::new(counted, namespace).with_valid_until(valid_until)
    }

    /// Counts a request.
    pub fn count(&self, code: &str, method: &str, host: &str) {
        self.requests.with_label_values(&[code, method, host]).inc();
    }
}

/// Counts the requests of a client. Made by [`RequestMetrics::layer`].
#[derive(Clone, Debug)]
pub struct RequestLayer {
    metrics: RequestMetrics,
    host: String,
}

impl<S> Layer<S> for RequestLayer {
    type Service = CountedRequests<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CountedRequests { counted: self.clone(), inner }
    }
}

/// A client's stack whose requests are counted.
#[derive(Clone, Debug)]
pub struct CountedRequests<S> {
    counted: RequestLayer,
    inner: S,
}

impl<S, B, A> Service<Request<B>> for CountedRequests<S>
where
    S: Service<Request<B>, Response = Response<A>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    A: 'static,
{
    type Response = Response<A>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<A>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (counted, method) = (self.counted.clone(), request.method().clone());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let status = answer.as_ref().ok().map(Response::status);
            let code = status.as_ref().map_or("<error>", http::StatusCode::as_str);
            counted.metrics.count(code, method.as_str(), &counted.host);
            answer
        })
    }
}
