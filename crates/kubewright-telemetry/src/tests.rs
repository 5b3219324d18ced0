use std::{convert::Infallible, sync::Arc};

use ::http::{HeaderMap, Request, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    metrics::v1::metric::Data,
    trace::v1::Span,
};
use parking_lot::Mutex;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry};
use prost::Message;
use tracing_subscriber::layer::SubscriberExt;

use tracing::Instrument;

use super::*;

/// The requests that a server got: the path, the head and the body.
type Requests = Arc<Mutex<Vec<(String, HeaderMap, Bytes)>>>;

/// A server that takes everything, on loopback.
async fn server() -> (String, Requests) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Requests::default();
    let seen = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let seen = seen.clone();
            let answer = service_fn(move |request: Request<Incoming>| {
                let seen = seen.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.expect("a body").to_bytes();
                    seen.lock().push((head.uri.path().to_owned(), head.headers, body));
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer),
            );
        }
    });
    (address, asked)
}

/// Traces what this thread does, on which all of a test's tasks are. While there is one dispatcher, a span that the thread of another test
/// comes to first is off for all of them (tracing-core's `Rebuilder::JustOne`): so there are two.
fn traced(traces: &Traces) -> (tracing::subscriber::DefaultGuard, tracing::Dispatch) {
    let traced = tracing::subscriber::set_default(tracing_subscriber::registry().with(traces.layer()));
    (traced, tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default()))
}

fn spans(asked: &Requests) -> Vec<Span> {
    let asked = asked.lock();
    let traces = asked.iter().filter(|(path, ..)| path == "/collector/v1/traces");
    traces
        .map(|(.., body)| ExportTraceServiceRequest::decode(body.clone()).expect("spans"))
        .flat_map(|request| request.resource_spans)
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .collect()
}

#[tokio::test]
async fn a_reconcile_and_its_requests_are_spans_of_one_trace_and_the_requests_say_so() {
    let ((collector, exported), (api_server, requests)) = (server().await, server().await);
    let collector = Collector::new("web", "1.0", &format!("{collector}/collector/")).expect("an address");
    let traces = collector.traces().expect("an exporter");
    let traced = traced(&traces);
    let config = kube::Config::new(api_server.parse().expect("an address"));
    let client = kube::client::ClientBuilder::try_from(config)
        .expect("a client")
        .with_layer(&tower::util::MapRequestLayer::new(with_trace_context::<kube::client::Body>))
        .build();
    let request = Request::get("/api").body(Vec::new()).expect("a request");
    let reconcile = tracing::info_span!(target: "kubewright_runtime::span", "reconcile", name = "a");
    client.request_text(request).instrument(reconcile).await.expect("an answer");
    drop(traced);
    traces.shutdown().await;
    let spans = spans(&exported);
    let named = |name: &str| {
        spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name} is not among {spans:?}"))
    };
    let (reconcile, request) = (named("reconcile"), named("HTTP"));
    assert_eq!((&request.trace_id, &request.parent_span_id), (&reconcile.trace_id, &reconcile.span_id));
    let parent = requests.lock()[0].1["traceparent"].to_str().expect("text").to_owned();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(parent.starts_with(&format!("00-{}-", hex(&reconcile.trace_id))), "{parent}");
    assert!(spans.iter().all(|span| span.trace_id == reconcile.trace_id), "exports are no spans: {spans:?}");
}

#[tokio::test]
async fn a_request_says_nothing_where_nobody_traces() {
    let request = with_trace_context(Request::new(()));
    assert!(request.headers().is_empty());
}

#[tokio::test]
async fn metrics_are_sent_as_prometheus_reads_them() {
    let (collector, asked) = server().await;
    let collector = Collector::new("web", "1.0", &collector).expect("an address");
    let registry = Registry::new();
    let counter = IntCounterVec::new(Opts::new("done_total", "What was done."), &["how"]).expect("a name");
    let gauge = IntGauge::new("depth", "How deep.").expect("a name");
    let times = HistogramOpts::new("seconds", "How long.").buckets(vec![1.0, 2.0]);
    let times = HistogramVec::new(times, &[]).expect("a name");
    registry.register(Box::new(counter.clone())).expect("registered");
    registry.register(Box::new(gauge.clone())).expect("registered");
    registry.register(Box::new(times.clone())).expect("registered");
    counter.with_label_values(&["well"]).inc_by(3);
    gauge.set(7);
    let none: [&str; 0] = [];
    for seconds in [0.5, 1.5, 1.7, 9.0] {
        times.with_label_values(&none).observe(seconds);
    }
    let stop = CancellationToken::new();
    stop.cancel();
    collector.export_metrics(|| registry.gather(), stop).await;
    let (path, head, body) = asked.lock().pop().expect("a request");
    assert_eq!(
        (path.as_str(), head["content-type"].to_str().ok()),
        ("/v1/metrics", Some("application/x-protobuf"))
    );
    let mut request = ExportMetricsServiceRequest::decode(body).expect("metrics");
    let sent = request.resource_metrics.remove(0);
    let attributes = sent.resource.expect("a resource").attributes;
    assert!(attributes.iter().any(|attribute| attribute.key == "service.name"));
    let metrics = &sent.scope_metrics[0].metrics;
    let named = |name: &str| {
        let metric = metrics.iter().find(|metric| metric.name == name).expect("a metric");
        metric.data.clone().expect("data")
    };
    let value =
        |point: &opentelemetry_proto::tonic::metrics::v1::NumberDataPoint| format!("{:?}", point.value);
    let Data::Sum(sum) = named("done_total") else { panic!("a sum") };
    assert!(sum.is_monotonic && sum.data_points[0].attributes[0].key == "how");
    assert_eq!(value(&sum.data_points[0]), "Some(AsDouble(3.0))");
    let Data::Gauge(depth) = named("depth") else { panic!("a gauge") };
    assert_eq!(value(&depth.data_points[0]), "Some(AsDouble(7.0))");
    let Data::Histogram(seconds) = named("seconds") else { panic!("a histogram") };
    let point = &seconds.data_points[0];
    assert_eq!(
        (point.explicit_bounds.as_slice(), point.bucket_counts.as_slice()),
        ([1.0, 2.0].as_slice(), [1, 2, 1].as_slice())
    );
    assert_eq!((point.count, point.sum), (4, Some(12.7)));
}

#[tokio::test]
async fn an_endpoint_that_is_none_is_refused() {
    for (endpoint, why) in [
        ("collector:4318", "it begins with neither http:// nor https://"),
        ("http://a b", "it is no address"),
    ] {
        let refused = Collector::new("web", "1.0", endpoint).expect_err("no address").to_string();
        assert!(refused.starts_with(&format!("OpenTelemetry at {endpoint}: {why}")), "{refused}");
    }
}
