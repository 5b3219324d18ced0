//! OpenTelemetry of an operator's program: its spans and metrics by OTLP over HTTP, and W3C trace context on its requests.
//!
//! What the OpenTelemetry SDK reads from the environment holds: `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`,
//! `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_METRIC_EXPORT_INTERVAL`
//! (<https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>).

mod context;
mod http;
mod metrics;

use std::{fmt, time::Duration};

use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use prometheus::proto::MetricFamily;
use tokio_util::sync::CancellationToken;
use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

pub use self::context::with_trace_context;
use self::http::Http;

/// How often metrics are sent unless `OTEL_METRIC_EXPORT_INTERVAL` (in milliseconds) says otherwise.
const METRICS_EACH: Duration = Duration::from_secs(60);

/// Where a program sends what it does, and as whom.
pub struct Collector {
    resource: Resource,
    http: Http,
    /// The address, without a `/` at its end.
    endpoint: String,
    metrics_each: Duration,
}

/// The spans of a program, on their way to a collector.
pub struct Traces {
    provider: SdkTracerProvider,
    endpoint: String,
}

/// Why nothing is sent.
#[derive(Debug, thiserror::Error)]
#[error("OpenTelemetry at {endpoint}: {why}")]
pub struct Refused {
    endpoint: String,
    why: String,
}

impl Collector {
    /// The collector at `endpoint` (`http://collector:4318`; `/v1/traces` and `/v1/metrics` are below it), for the program that is called
    /// `service` unless `OTEL_SERVICE_NAME` says otherwise. Belongs into a Tokio runtime, which does the requests.
    ///
    /// # Errors
    /// An endpoint that is no address of HTTP.
    pub fn new(service: &str, version: &str, endpoint: &str) -> Result<Self, Refused> {
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let http = Http::new(&endpoint).map_err(|why| Refused { endpoint: endpoint.clone(), why })?;
        let named = std::env::var_os("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty());
        let resource =
            Resource::builder().with_attribute(KeyValue::new("service.version", version.to_owned()));
        let resource = if named { resource } else { resource.with_service_name(service.to_owned()) }.build();
        let told = std::env::var("OTEL_METRIC_EXPORT_INTERVAL").ok().and_then(|text| text.parse().ok());
        let metrics_each = told.filter(|millis| *millis > 0).map_or(METRICS_EACH, Duration::from_millis);
        Ok(Self { resource, http, endpoint, metrics_each })
    }

    /// Sends spans from now on, in batches.
    ///
    /// # Errors
    /// What the SDK refuses.
    pub fn traces(&self) -> Result<Traces, Refused> {
        let endpoint = format!("{}/v1/traces", self.endpoint);
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(self.http.clone())
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&endpoint)
            .build()
            .map_err(|error| Refused { endpoint: endpoint.clone(), why: error.to_string() })?;
        let provider = SdkTracerProvider::builder()
            .with_resource(self.resource.clone())
            .with_batch_exporter(exporter)
            .build();
        Ok(Traces { provider, endpoint })
    }

    /// Sends what `gather` gives at each interval until `stop`, and once more then. A collector that is away is told once, and once when it is
    /// back; what it missed is in the next sum.
    pub async fn export_metrics(
        &self,
        gather: impl Fn() -> Vec<MetricFamily> + Send,
        stop: CancellationToken,
    ) {
        let (since, mut is_away) = (metrics::now(), false);
        loop {
            let is_last = stop.run_until_cancelled(tokio::time::sleep(self.metrics_each)).await.is_none();
            let sent = self.send_metrics(&gather(), since).await;
            match &sent {
                Err(error) if !is_away => {
                    tracing::warn!(endpoint = self.endpoint, %error, "metrics cannot be sent");
                }
                Ok(()) if is_away => tracing::info!(endpoint = self.endpoint, "metrics are sent again"),
                _ => {}
            }
            is_away = sent.is_err();
            if is_last {
                return;
            }
        }
    }

    async fn send_metrics(&self, families: &[MetricFamily], since: u64) -> Result<(), Refused> {
        let body = metrics::request(&self.resource, families, since, metrics::now());
        let endpoint = format!("{}/v1/metrics", self.endpoint);
        self.http.post(&endpoint, body).await.map_err(|why| Refused { endpoint, why })
    }
}

impl Traces {
    /// Makes a span of a trace of each span of `tracing`: those of level `info`, and the requests of kube's client.
    pub fn layer<S>(&self) -> Box<dyn Layer<S> + Send + Sync>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let filter = Targets::new()
            .with_default(LevelFilter::INFO)
            .with_target("kube_client::client::builder", LevelFilter::DEBUG)
            // What is told of exports is not exported.
            .with_target("opentelemetry", LevelFilter::OFF)
            .with_target("kubewright_telemetry", LevelFilter::OFF);
        let tracer = self.provider.tracer("kubewright");
        let layer =
            tracing_opentelemetry::layer().with_location(false).with_threads(false).with_tracer(tracer);
        layer.with_filter(filter).boxed()
    }

    /// Sends what is left, for at most five seconds.
    pub async fn shutdown(self) {
        // It waits for a thread, and that for requests of this runtime.
        #[expect(clippy::disallowed_methods, reason = "the SDK's thread is not in any test of virtual time")]
        let ended = tokio::task::spawn_blocking(move || self.provider.shutdown()).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(endpoint = self.endpoint, %error, "the last spans cannot be sent");
        }
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
