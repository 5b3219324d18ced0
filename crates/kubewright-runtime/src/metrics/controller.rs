//! What a controller counts.

use std::time::Duration;

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use super::family::{counters, gauges, histograms};

/// The bounds of `controller_runtime_reconcile_time_seconds`.
const RECONCILE_TIME: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

/// The families with the label `controller`.
pub(super) struct ControllerFamilies {
    total: IntCounterVec,
    errors: IntCounterVec,
    terminal_errors: IntCounterVec,
    panics: IntCounterVec,
    timeouts: IntCounterVec,
    time: HistogramVec,
    max_concurrent: IntGaugeVec,
    active_workers: IntGaugeVec,
    writes: IntCounterVec,
    events_dropped: IntCounterVec,
}

/// The metrics of one controller.
#[derive(Clone, Debug)]
pub(crate) struct ControllerMetrics {
    pub(crate) success: IntCounter,
    pub(crate) error: IntCounter,
    pub(crate) requeue_after: IntCounter,
    pub(crate) errors: IntCounter,
    pub(crate) terminal_errors: IntCounter,
    pub(crate) panics: IntCounter,
    pub(crate) timeouts: IntCounter,
    pub(crate) max_concurrent: IntGauge,
    pub(crate) active_workers: IntGauge,
    /// Writes that the API server accepted, events not counted.
    pub(crate) writes: IntCounter,
    /// Events that were told and never written.
    pub(crate) events_dropped: IntCounter,
    time: Histogram,
}

impl ControllerFamilies {
    pub(super) fn new(registry: &Registry) -> Self {
        let count = |name: &str, help: &str| counters(registry, name, help, &["controller"]);
        let gauge = |name: &str, help: &str| gauges(registry, name, help, &["controller"]);
        Self {
            total: counters(
                registry,
                "controller_runtime_reconcile_total",
                "Total number of reconciliations per controller",
                &["controller", "result"],
            ),
            errors: count(
                "controller_runtime_reconcile_errors_total",
                "Total number of reconciliation errors per controller",
            ),
            terminal_errors: count(
                "controller_runtime_terminal_reconcile_errors_total",
                "Total number of terminal reconciliation errors per controller",
            ),
            panics: count(
                "controller_runtime_reconcile_panics_total",
                "Total number of reconciliation panics per controller",
            ),
            timeouts: count(
                "controller_runtime_reconcile_timeouts_total",
                "Total number of reconciliation timeouts per controller",
            ),
            time: histograms(
                registry,
                "controller_runtime_reconcile_time_seconds",
                "Length of time per reconciliation per controller",
                &["controller"],
                &RECONCILE_TIME,
            ),
            max_concurrent: gauge(
                "controller_runtime_max_concurrent_reconciles",
                "Maximum number of concurrent reconciles per controller",
            ),
            active_workers: gauge(
                "controller_runtime_active_workers",
                "Number of currently used workers per controller",
            ),
            writes: count(
                "kubewright_controller_writes_total",
                "Total number of writes of a controller that the API server accepted, events not counted",
            ),
            events_dropped: count(
                "kubewright_controller_events_dropped_total",
                "Total number of events that a controller told and that nobody wrote, as too many waited or it was not at work",
            ),
        }
    }

    /// Every series is there from the start, as in `initMetrics` of controller-runtime: a rate needs a zero to begin with.
    pub(super) fn of(&self, controller: &str) -> ControllerMetrics {
        let result = |result: &str| self.total.with_label_values(&[controller, result]);
        // Told because dashboards stack it; an `Outcome` says after which time.
        result("requeue");
        ControllerMetrics {
            success: result("success"),
            error: result("error"),
            requeue_after: result("requeue_after"),
            errors: self.errors.with_label_values(&[controller]),
            terminal_errors: self.terminal_errors.with_label_values(&[controller]),
            panics: self.panics.with_label_values(&[controller]),
            timeouts: self.timeouts.with_label_values(&[controller]),
            max_concurrent: self.max_concurrent.with_label_values(&[controller]),
            active_workers: self.active_workers.with_label_values(&[controller]),
            writes: self.writes.with_label_values(&[controller]),
            events_dropped: self.events_dropped.with_label_values(&[controller]),
            time: self.time.with_label_values(&[controller]),
        }
    }
}

impl ControllerMetrics {
    /// A reconcile took this long, however it ended.
    pub(crate) fn took(&self, time: Duration) {
        self.time.observe(time.as_secs_f64());
    }

    /// Reconciles that ended, however they ended.
    pub(crate) fn reconciles(&self) -> u64 {
        self.success.get() + self.error.get() + self.requeue_after.get()
    }
}
