//! What a client of the API server tells: each request by what became of it, how long it took, and how long it was held back.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use prometheus::{HistogramVec, IntCounterVec, Registry};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, service_fn};

use super::family::{counters, histograms};
use crate::{
    reporter::Invitation,
    workqueue::{Bucket, RateLimit},
};

/// The bounds of `rest_client_request_duration_seconds` and `rest_client_rate_limiter_duration_seconds`
/// (`k8s.io/component-base/metrics/prometheus/restclient`).
const DURATION: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// `rest_client_requests_total{code,method,host}`. As a layer of a client's stack it counts every request that leaves, at
/// the end of its answer's head; what never got an answer has the code `<error>`, as in client-go
/// (`k8s.io/client-go/rest/request.go`). `rest_client_request_duration_seconds{verb,host}` is the time until then, of watches
/// apart; `rest_client_rate_limiter_duration_seconds{verb,host}` the time that a [limit](Self::limited) held a request back. (Kubernetes'
/// components tell both, controller-runtime where it is asked for.)
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    requests: IntCounterVec,
    durations: HistogramVec,
    held_back: HistogramVec,
    /// Whether the API server asks for reconciles.
    invitation: Invitation,
}

impl RequestMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let help = "Number of HTTP requests, partitioned by status code, method, and host.";
        let labels = ["code", "method", "host"];
        let time = |name: &str, help: &str| histograms(registry, name, help, &["verb", "host"], &DURATION);
        Self {
            requests: counters(registry, "rest_client_requests_total", help, &labels),
            durations: time(
                "rest_client_request_duration_seconds",
                "Request latency in seconds. Broken down by verb, and host.",
            ),
            held_back: time(
                "rest_client_rate_limiter_duration_seconds",
                "Client side rate limiter latency in seconds. Broken down by verb, and host.",
            ),
            invitation: Invitation::default(),
        }
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

    /// A client that sends `client`'s requests at this rate: as many a second at once, then in even steps (client-go's token
    /// bucket).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn limited(&self, client: Client, host: &str, per_second: u32) -> Client {
        let (namespace, valid_until) = (client.default_namespace().to_owned(), *client.valid_until());
        let per_second = per_second.max(1);
        let limit = RateLimit::default().overall(per_second.into(), per_second);
        let bucket = Arc::new(Mutex::new(Bucket::default()));
        let (metrics, host) = (self.clone(), host.to_owned());
        let service = service_fn(move |request: Request<Body>| {
            let wait = bucket.lock().take(&limit, Instant::now());
            metrics.held_back(request.method().as_str(), &host, wait);
            let client = client.clone();
            async move {
                tokio::time::sleep(wait).await;
                client.send(request).await.map_err(BoxError::from)
            }
        });
        Client::new(service, namespace).with_valid_until(valid_until)
    }

    /// What the API server has asked for by its answers.
    pub(crate) fn invitation(&self) -> Invitation {
        self.invitation.clone()
    }

    /// Counts a request.
    pub fn count(&self, code: &str, method: &str, host: &str) {
        self.requests.with_label_values(&[code, method, host]).inc();
    }

    /// A request was answered after this long.
    pub(super) fn took(&self, verb: &str, host: &str, time: Duration) {
        self.durations.with_label_values(&[verb, host]).observe(time.as_secs_f64());
    }

    /// A request waited this long for its turn.
    pub(super) fn held_back(&self, verb: &str, host: &str, time: Duration) {
        self.held_back.with_label_values(&[verb, host]).observe(time.as_secs_f64());
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
        let (began, is_watch) = (Instant::now(), is_watch(request.uri()));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if let Ok(answer) = &answer {
                counted.metrics.invitation.read(answer.headers());
            }
            let status = answer.as_ref().ok().map(Response::status);
            let code = status.as_ref().map_or("<error>", http::StatusCode::as_str);
            counted.metrics.count(code, method.as_str(), &counted.host);
            if !is_watch {
                counted.metrics.took(method.as_str(), &counted.host, began.elapsed());
            }
            answer
        })
    }
}

/// Whether it is a watch, whose answer may begin with the first event.
fn is_watch(uri: &http::Uri) -> bool {
    let mut pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    pairs.any(|(name, value)| name == "watch" && (value == "true" || value == "1"))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::Metrics;

    fn slow_server() -> Client {
        let service = service_fn(|_: Request<Body>| async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec())))
        });
        Client::new(service, "default")
    }

    async fn get(client: &Client, path: &str) {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        client.send(request).await.expect("an answer");
    }

    #[tokio::test(start_paused = true)]
    async fn how_long_requests_take_is_told_but_not_of_watches() {
        let metrics = Metrics::new();
        let client = metrics.requests().client(slow_server(), "there");
        get(&client, "/api/v1/pods").await;
        get(&client, "/api/v1/pods?watch=true").await;
        let text = metrics.text();
        for line in [
            "rest_client_request_duration_seconds_count{host=\"there\",verb=\"GET\"} 1\n",
            "rest_client_request_duration_seconds_bucket{host=\"there\",verb=\"GET\",le=\"0.25\"} 0\n",
            "rest_client_request_duration_seconds_bucket{host=\"there\",verb=\"GET\",le=\"0.5\"} 1\n",
            "rest_client_requests_total{code=\"200\",host=\"there\",method=\"GET\"} 2\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_lets_a_burst_through_and_tells_how_long_it_held_the_others_back() {
        let (metrics, began) = (Metrics::new(), Instant::now());
        let client = metrics.requests().limited(slow_server(), "there", 2);
        let requests: Vec<_> = (0..4).map(|_| get(&client, "/version")).collect();
        futures::future::join_all(requests).await;
        assert_eq!(began.elapsed(), Duration::from_millis(1300), "two at once, then one each half second");
        let text = metrics.text();
        for line in ["_count{host=\"there\",verb=\"GET\"} 4\n", "_sum{host=\"there\",verb=\"GET\"} 1.5\n"] {
            let line = format!("rest_client_rate_limiter_duration_seconds{line}");
            assert!(text.contains(&line), "{line} in {text}");
        }
    }
}
