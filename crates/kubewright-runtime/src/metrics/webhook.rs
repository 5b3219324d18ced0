//! `controller_runtime_webhook_*`: what servers of webhooks count, in the form that a registry gathers.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use prometheus::{
    core::{Collector, Desc},
    proto::{self, MetricFamily, MetricType},
};

use crate::webhook::{self, Counts, LATENCY_BUCKETS, WebhookCounts};

const LATENCY: (&str, &str) = (
    "controller_runtime_webhook_latency_seconds",
    "Histogram of the latency of processing admission requests",
);
const REQUESTS: (&str, &str) =
    ("controller_runtime_webhook_requests_total", "Total number of admission requests by HTTP status code.");
const IN_FLIGHT: (&str, &str) =
    ("controller_runtime_webhook_requests_in_flight", "Current number of admission requests being served.");
const PANICS: (&str, &str) = ("controller_runtime_webhook_panics_total", "Total number of webhook panics");
const CONVERSION_PANICS: (&str, &str) =
    ("controller_runtime_conversion_webhook_panics_total", "Total number of conversion webhook panics");
const TIMEOUTS: (&str, &str) =
    ("kubewright_webhook_timeouts_total", "Total number of requests that webhooks did not answer in time");

/// The servers of a manager; clones share them.
#[derive(Clone)]
pub(super) struct Servers {
    servers: Arc<Mutex<Vec<webhook::Metrics>>>,
    descriptions: Arc<[Desc]>,
}

impl Servers {
    pub(super) fn new() -> Self {
        let describe = |(name, help): (&str, &str), labels: &[&str]| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new(name.to_owned(), help.to_owned(), labels, HashMap::new()).expect("a valid name")
        };
        let descriptions = [
            describe(LATENCY, &["webhook"]),
            describe(REQUESTS, &["webhook", "code"]),
            describe(IN_FLIGHT, &["webhook"]),
            describe(PANICS, &[]),
            describe(CONVERSION_PANICS, &[]),
            describe(TIMEOUTS, &[]),
        ];
        Self { servers: Arc::default(), descriptions: Arc::new(descriptions) }
    }

    pub(super) fn add(&self, server: webhook::Metrics) {
        self.servers.lock().push(server);
    }
}

impl Collector for Servers {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let counts: Vec<Counts> = self.servers.lock().iter().map(webhook::Metrics::read).collect();
        let webhooks: Vec<(&String, &WebhookCounts)> =
            counts.iter().flat_map(|counts| &counts.webhooks).collect();
        let requests = webhooks.iter().flat_map(|(path, counts)| {
            counts.requests.iter().map(|(code, count)| {
                counter(vec![label("code", &code.to_string()), label("webhook", path)], *count)
            })
        });
        let sum = |number: fn(&Counts) -> u64| vec![counter(Vec::new(), counts.iter().map(number).sum())];
        vec![
            family(
                LATENCY,
                MetricType::HISTOGRAM,
                webhooks.iter().map(|(path, counts)| latency(path, counts)).collect(),
            ),
            family(REQUESTS, MetricType::COUNTER, requests.collect()),
            family(
                IN_FLIGHT,
                MetricType::GAUGE,
                webhooks.iter().map(|(path, counts)| in_flight(path, counts)).collect(),
            ),
            family(PANICS, MetricType::COUNTER, sum(|counts| counts.panics)),
            family(CONVERSION_PANICS, MetricType::COUNTER, sum(|counts| counts.conversion_panics)),
            family(TIMEOUTS, MetricType::COUNTER, sum(|counts| counts.timeouts)),
        ]
    }
}

fn family((name, help): (&str, &str), kind: MetricType, metrics: Vec<proto::Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

fn label(name: &str, value: &str) -> proto::LabelPair {
    let mut label = proto::LabelPair::default();
    label.set_name(name.to_owned());
    label.set_value(value.to_owned());
    label
}

/// Exact up to 2^53, which nothing counts to.
#[expect(clippy::cast_precision_loss, reason = "nothing counts that far")]
fn number(count: u64) -> f64 {
    count as f64
}

fn counter(labels: Vec<proto::LabelPair>, count: u64) -> proto::Metric {
    let mut counter = proto::Counter::default();
    counter.set_value(number(count));
    let mut metric = proto::Metric::from_label(labels);
    metric.set_counter(counter);
    metric
}

fn in_flight(path: &str, counts: &WebhookCounts) -> proto::Metric {
    let mut gauge = proto::Gauge::default();
    gauge.set_value(number(counts.in_flight));
    let mut metric = proto::Metric::from_label(vec![label("webhook", path)]);
    metric.set_gauge(gauge);
    metric
}

fn latency(path: &str, counts: &WebhookCounts) -> proto::Metric {
    let buckets = LATENCY_BUCKETS.iter().zip(counts.latency_buckets).map(|(bound, count)| {
        let mut bucket = proto::Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(count);
        bucket
    });
    let mut histogram = proto::Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_sum(counts.latency_seconds);
    histogram.set_sample_count(counts.latency_count);
    let mut metric = proto::Metric::from_label(vec![label("webhook", path)]);
    metric.set_histogram(histogram);
    metric
}
