//! What an operator sends to an OpenTelemetry collector.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, api::PostParams};
use kubewright_runtime::{
    CancellationToken, Connect, Context, Controller, Desired, Error, Key, Metrics, Outcome, Reconciler,
    command::{Operator, Run},
};
use kubewright_tests::Up;
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    trace::v1::Span,
};
use parking_lot::Mutex;
use prost::Message;
use tracing_subscriber::layer::SubscriberExt;

/// Makes a Secret for each ConfigMap `shop`.
struct Shops;

impl Reconciler for Shops {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(shop) = ctx.get::<ConfigMap>(key).filter(|_| key.name == "shop") else {
            return Ok(Outcome::Done);
        };
        let mut secret = Secret::default();
        secret.metadata.name = Some("till".to_owned());
        secret.metadata.namespace.clone_from(&key.namespace);
        ctx.apply_all(&*shop, Desired::new().with(secret)).await?;
        Ok(Outcome::Done)
    }
}

/// A collector that keeps paths and bodies.
async fn collector() -> (String, Arc<Mutex<Vec<(String, Bytes)>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let told = Arc::<Mutex<Vec<(String, Bytes)>>>::default();
    let keep = told.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let keep = keep.clone();
            let answer = service_fn(move |request: Request<Incoming>| {
                let keep = keep.clone();
                async move {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await.expect("a body").to_bytes();
                    keep.lock().push((path, body));
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    (address, told)
}

fn text_of<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    let attribute = span.attributes.iter().find(|attribute| attribute.key == name)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

#[tokio::test]
#[ignore = "needs the command: cargo xtask test"]
async fn an_operator_sends_its_reconciles_its_requests_and_its_metrics_to_a_collector() {
    let (endpoint, told) = collector().await;
    let up = Up::start("telemetry", &[]);
    let run = Run {
        kubeconfig: Some(up.kubeconfig()),
        otlp_endpoint: Some(endpoint),
        namespaces: vec!["default".to_owned()],
        ..Run::default()
    };
    let operator = Operator::new("shops", "1.0")
        .controller(|| Controller::new("shops", Shops).for_kind::<ConfigMap>().applies::<Secret>());
    let collector = operator.collector(&run).expect("an address").expect("one is told");
    let traces = collector.traces().expect("an exporter");
    let traced = tracing::subscriber::set_default(tracing_subscriber::registry().with(traces.layer()));
    // While there is one dispatcher, a span that the thread of another test comes to first is off for all of them: tracing asks that
    // thread's default alone (tracing-core's `Rebuilder::JustOne`).
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let (stop, connect) =
        (CancellationToken::new(), Connect { kubeconfig: Some(up.kubeconfig()), ..Connect::default() });
    let (client, _) = connect.client(Metrics::new().requests()).await.expect("a client");
    let (maps, secrets) =
        (Api::<ConfigMap>::default_namespaced(client.clone()), Api::<Secret>::default_namespaced(client));
    let work = async {
        let mut shop = ConfigMap::default();
        shop.metadata.name = Some("shop".to_owned());
        maps.create(&PostParams::default(), &shop).await.expect("created");
        while secrets.get_opt("till").await.expect("an answer").is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        stop.cancel();
    };
    let ((), ended) = tokio::join!(work, operator.run(&run, stop.clone()));
    ended.expect("it ends well");
    drop(traced);
    traces.shutdown().await;

    let told = told.lock();
    let spans: Vec<Span> = told
        .iter()
        .filter(|(path, _)| path == "/v1/traces")
        .map(|(_, body)| ExportTraceServiceRequest::decode(body.clone()).expect("spans"))
        .flat_map(|request| request.resource_spans)
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .collect();
    let is_shops = |span: &&Span| span.name == "reconcile" && text_of(span, "name") == Some("shop");
    let reconcile = spans.iter().find(is_shops).expect("a reconcile");
    assert_eq!(text_of(reconcile, "controller"), Some("shops"));
    assert!(text_of(reconcile, "reason").is_some_and(|reason| reason.contains("ConfigMap")), "{reconcile:?}");
    let writes: Vec<_> = spans
        .iter()
        .filter(|span| span.parent_span_id == reconcile.span_id && span.trace_id == reconcile.trace_id)
        .filter_map(|span| Some((text_of(span, "http.method")?, text_of(span, "http.url")?)))
        .collect();
    let is_patch =
        |(method, url): &(&str, &str)| *method == "PATCH" && url.contains("/namespaces/default/secrets/till");
    assert!(writes.iter().any(is_patch), "{writes:?} of {spans:#?}");
    let metrics = told.iter().filter(|(path, _)| path == "/v1/metrics");
    let names: Vec<String> = metrics
        .map(|(_, body)| ExportMetricsServiceRequest::decode(body.clone()).expect("metrics"))
        .flat_map(|request| request.resource_metrics)
        .flat_map(|resource| resource.scope_metrics)
        .flat_map(|scope| scope.metrics)
        .map(|metric| metric.name)
        .collect();
    assert!(names.iter().any(|name| name == "controller_runtime_reconcile_total"), "{names:?}");
}
