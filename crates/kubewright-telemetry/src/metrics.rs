//! Metrics as OTLP has them, from what Prometheus reads
//! (<https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/>).

use kubewright_world::Clock;
use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    metrics::v1::{
        AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
        ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point,
    },
    resource::v1::Resource as SentResource,
};
use opentelemetry_sdk::Resource;
use prometheus::proto::{Bucket, LabelPair, Metric as Sample, MetricFamily, MetricType};
use prost::Message;

/// Sums count from the start of the program.
const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

/// The time in nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    u64::try_from(Clock::system().now().as_nanosecond()).unwrap_or_default()
}

/// The body of a request that sends these families as they are at `now`, counted since `since`, both in nanoseconds since 1970.
pub(crate) fn request(resource: &Resource, families: &[MetricFamily], since: u64, now: u64) -> Vec<u8> {
    let attributes = resource.iter().map(|(key, value)| attribute(key.as_str(), value.as_str().as_ref()));
    let resource = SentResource { attributes: attributes.collect(), ..SentResource::default() };
    let scope = InstrumentationScope { name: "kubewright".to_owned(), ..InstrumentationScope::default() };
    let metrics = families.iter().filter_map(|family| metric(family, since, now)).collect();
    let metrics = ScopeMetrics { scope: Some(scope), metrics, ..ScopeMetrics::default() };
    let metrics = ResourceMetrics {
        resource: Some(resource),
        scope_metrics: vec![metrics],
        ..ResourceMetrics::default()
    };
    ExportMetricsServiceRequest { resource_metrics: vec![metrics] }.encode_to_vec()
}

/// A family; none of a type that nothing of ours has (summaries).
fn metric(family: &MetricFamily, since: u64, now: u64) -> Option<Metric> {
    let samples = || family.get_metric().iter();
    let number = |sample: &Sample, value: f64| NumberDataPoint {
        attributes: attributes(sample.get_label()),
        start_time_unix_nano: since,
        time_unix_nano: now,
        value: Some(number_data_point::Value::AsDouble(value)),
        ..NumberDataPoint::default()
    };
    let data = match family.get_field_type() {
        MetricType::COUNTER => Data::Sum(Sum {
            data_points: samples().map(|sample| number(sample, sample.get_counter().get_value())).collect(),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        MetricType::GAUGE => Data::Gauge(Gauge {
            data_points: samples().map(|sample| number(sample, sample.get_gauge().get_value())).collect(),
        }),
        MetricType::HISTOGRAM => Data::Histogram(Histogram {
            data_points: samples().map(|sample| histogram(sample, since, now)).collect(),
            aggregation_temporality: CUMULATIVE,
        }),
        MetricType::SUMMARY | MetricType::UNTYPED => return None,
    };
    let (name, description) = (family.name().to_owned(), family.help().to_owned());
    Some(Metric { name, description, data: Some(data), ..Metric::default() })
}

/// Prometheus counts what is up to each bound, OTLP what lies between two of them.
fn histogram(sample: &Sample, since: u64, now: u64) -> HistogramDataPoint {
    let histogram = sample.get_histogram();
    let bounded = || histogram.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite());
    let (mut counts, mut below) = (Vec::new(), 0);
    for bucket in bounded() {
        counts.push(bucket.cumulative_count().saturating_sub(below));
        below = bucket.cumulative_count();
    }
    counts.push(histogram.get_sample_count().saturating_sub(below));
    HistogramDataPoint {
        attributes: attributes(sample.get_label()),
        start_time_unix_nano: since,
        time_unix_nano: now,
        count: histogram.get_sample_count(),
        sum: Some(histogram.get_sample_sum()),
        bucket_counts: counts,
        explicit_bounds: bounded().map(Bucket::upper_bound).collect(),
        ..HistogramDataPoint::default()
    }
}

fn attributes(labels: &[LabelPair]) -> Vec<KeyValue> {
    labels.iter().map(|label| attribute(label.name(), label.value())).collect()
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(Value::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}
