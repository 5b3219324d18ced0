//! What an operator's process tells Prometheus, under controller-runtime's names.
//!
//! Families, labels, buckets and help are those of controller-runtime v0.24 (`pkg/internal/controller/metrics`,
//! `pkg/internal/metrics/workqueue.go`, `pkg/metrics`, `pkg/webhook/.../metrics`, `pkg/certwatcher/metrics`), so dashboards
//! and alerts that were made for operators in Go work unchanged, those of Kubebuilder's Grafana plugin among them. In the
//! place of `go_*` there are `tokio_*`; `process_*` is told on Linux. Native histograms are not told: the text format has none.
//!
//! A [`Metrics`] belongs to one manager; nothing is global, so that two managers in a process (or in a test) do not count
//! for one another. An operator's own metrics go into its [registry](Metrics::registry):
//!
//! ```
//! use kubewright_runtime::metrics::{Metrics, prometheus::IntCounter};
//!
//! let metrics = Metrics::new();
//! let backups = IntCounter::new("backups_total", "Backups that were made").unwrap();
//! metrics.registry().register(Box::new(backups.clone())).unwrap();
//! backups.inc();
//! assert!(metrics.text().contains("backups_total 1"));
//! ```

mod certificate;
mod client;
mod controller;
mod family;
mod objects;
mod process;
mod queue;
mod runtime;
#[cfg(all(test, feature = "webhook"))]
mod tests;
#[cfg(feature = "webhook")]
mod webhook;

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
pub use prometheus;
use prometheus::{IntCounterVec, IntGaugeVec, Registry, TextEncoder, proto::MetricFamily};

pub use self::{certificate::CertificateMetrics, client::RequestMetrics};
use self::{controller::ControllerFamilies, queue::QueueFamilies};
pub(crate) use self::{
    controller::ControllerMetrics,
    objects::ObjectGauge,
    queue::{Load, QueueMetrics},
};
use crate::Leadership;

/// The `Content-Type` of [`Metrics::text`].
pub const TEXT_FORMAT: &str = prometheus::TEXT_FORMAT;

/// The metrics of a manager; clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    controllers: ControllerFamilies,
    queues: QueueFamilies,
    requests: RequestMetrics,
    #[cfg(feature = "webhook")]
    webhooks: webhook::Servers,
    certificates: CertificateMetrics,
    leader: IntGaugeVec,
    slow_renewals: IntCounterVec,
    /// What is read when it is asked for.
    read: Mutex<Vec<Reading>>,
}

/// Brings gauges up to date.
type Reading = Box<dyn Fn() + Send>;

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics that have counted nothing, with those of the process.
    #[must_use]
    pub fn new() -> Self {
        let registry = Registry::new();
        let inner = Inner {
            controllers: ControllerFamilies::new(&registry),
            queues: QueueFamilies::new(&registry),
            requests: RequestMetrics::new(&registry),
            #[cfg(feature = "webhook")]
            webhooks: webhook::Servers::new(),
            certificates: CertificateMetrics::new(&registry),
            leader: family::gauges(
                &registry,
                "leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. \
                 'name' is the string used to identify the lease. Please make sure to group by name.",
                &["name"],
            ),
            slow_renewals: family::counters(
                &registry,
                "leader_election_slowpath_total",
                "Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. \
                 Please make sure to group by name.",
                &["name"],
            ),
            read: Mutex::default(),
            registry,
        };
        family::register(&inner.registry, process::Process::new());
        family::register(&inner.registry, runtime::Tokio::new());
        #[cfg(feature = "webhook")]
        family::register(&inner.registry, inner.webhooks.clone());
        Self(Arc::new(inner))
    }

    /// Where an operator registers metrics of its own.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// `rest_client_requests_total`: what a client counts its requests in.
    #[must_use]
    pub fn requests(&self) -> &RequestMetrics {
        &self.0.requests
    }

    /// `certwatcher_*`: what a server counts the reading of its certificates in.
    #[must_use]
    pub fn certificates(&self) -> &CertificateMetrics {
        &self.0.certificates
    }

    /// All families that have a value, by name.
    #[must_use]
    pub fn gather(&self) -> Vec<MetricFamily> {
        self.0.read.lock().iter().for_each(|read| read());
        self.0.registry.gather()
    }

    /// All families that have a value, by name, in Prometheus' text format ([`TEXT_FORMAT`]).
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Err(error) = TextEncoder::new().encode_utf8(&self.gather(), &mut text) {
            // A collector of the operator's own gave a family that has no name or no values.
            tracing::error!(%error, "a metric cannot be told");
        }
        text
    }

    /// The metrics of the controller `name`, which start at zero.
    pub(crate) fn controller(&self, name: &str) -> ControllerMetrics {
        self.0.controllers.of(name)
    }

    /// The metrics of a queue, which is the controller's of the same name. `load` is asked when the metrics are.
    pub(crate) fn queue(&self, name: &str) -> QueueMetrics {
        self.0.queues.of(name)
    }

    /// Has `load` asked, whenever the metrics are, how a controller's queue is doing; as long as it has an answer.
    pub(crate) fn read_queue(&self, name: &str, load: impl Fn() -> Option<Load> + Send + 'static) {
        let gauges = self.0.queues.gauges(name);
        self.0.read.lock().push(Box::new(move || gauges.set(&load().unwrap_or_default())));
    }

    /// Tells from now on what a server of webhooks counts: `controller_runtime_webhook_*`.
    #[cfg(feature = "webhook")]
    pub(crate) fn read_webhooks(&self, server: crate::webhook::Metrics) {
        self.0.webhooks.add(server);
    }

    /// Tells from now on whether this replica leads.
    pub(crate) fn read_leadership(&self, leadership: Leadership) {
        let gauge = self.0.leader.with_label_values(&[leadership.name()]);
        let slow = self.0.slow_renewals.with_label_values(&[leadership.name()]);
        self.0.read.lock().push(Box::new(move || {
            gauge.set(i64::from(leadership.is_leader()));
            slow.inc_by(leadership.slow_renewals().saturating_sub(slow.get()));
        }));
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
