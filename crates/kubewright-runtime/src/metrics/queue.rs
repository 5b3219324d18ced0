//! What a workqueue counts.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use parking_lot::Mutex;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Registry,
};

use super::family::{counters, gauges, histograms, seconds};
use crate::workqueue::Priority;

/// The bounds of `workqueue_*_duration_seconds`: ten nanoseconds, ten times as long each, up to a thousand seconds.
const DURATION: [f64; 12] =
    [10e-9, 10e-8, 10e-7, 10e-6, 10e-5, 10e-4, 10e-3, 10e-2, 10e-1, 10.0, 100.0, 1000.0];

/// With more priorities than this, the depth is told of all together (`maxRecommendedUniquePriorities` in controller-runtime's
/// `pkg/internal/metrics/workqueue.go`).
const MAX_PRIORITIES: usize = 25;

/// What stands for the priority then.
const TOO_MANY: &str = "exceeded_cardinality_limit";

const LABELS: [&str; 2] = ["name", "controller"];

/// The families of queues. A queue is called like its controller, so that both labels say the same.
pub(super) struct QueueFamilies {
    depth: IntGaugeVec,
    adds: IntCounterVec,
    waited: HistogramVec,
    worked: HistogramVec,
    unfinished: GaugeVec,
    longest: GaugeVec,
    retries: IntCounterVec,
}

/// What a queue counts as it happens.
#[derive(Clone, Debug)]
pub(crate) struct QueueMetrics {
    pub(crate) adds: IntCounter,
    pub(crate) retries: IntCounter,
    waited: Histogram,
    worked: Histogram,
}

/// How a queue is doing at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Load {
    /// Keys that are due and with no worker, of each priority.
    pub(crate) depths: BTreeMap<Priority, usize>,
    /// For how long the keys that are with a worker have been there, in total.
    pub(crate) unfinished: Duration,
    /// The longest of these times.
    pub(crate) longest: Duration,
}

/// What is told of a queue's [`Load`].
pub(super) struct LoadGauges {
    name: String,
    depth: IntGaugeVec,
    /// The priorities that were told of.
    priorities: Mutex<BTreeSet<Priority>>,
    unfinished: Gauge,
    longest: Gauge,
}

impl QueueFamilies {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            depth: gauges(
                registry,
                "workqueue_depth",
                "Current depth of workqueue by workqueue and priority",
                &["name", "controller", "priority"],
            ),
            adds: counters(
                registry,
                "workqueue_adds_total",
                "Total number of adds handled by workqueue",
                &LABELS,
            ),
            waited: histograms(
                registry,
                "workqueue_queue_duration_seconds",
                "How long in seconds an item stays in workqueue before being requested",
                &LABELS,
                &DURATION,
            ),
            worked: histograms(
                registry,
                "workqueue_work_duration_seconds",
                "How long in seconds processing an item from workqueue takes.",
                &LABELS,
                &DURATION,
            ),
            unfinished: seconds(
                registry,
                "workqueue_unfinished_work_seconds",
                "How many seconds of work has been done that is in progress and hasn't been observed by work_duration. \
                 Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at \
                 which this increases.",
                &LABELS,
            ),
            longest: seconds(
                registry,
                "workqueue_longest_running_processor_seconds",
                "How many seconds has the longest running processor for workqueue been running.",
                &LABELS,
            ),
            retries: counters(
                registry,
                "workqueue_retries_total",
                "Total number of items added to the workqueue with a non-zero delay (rate-limited requeues, explicit \
                 RequeueAfter or AddAfter calls)",
                &LABELS,
            ),
        }
    }

    pub(super) fn of(&self, name: &str) -> QueueMetrics {
        let labels = [name, name];
        QueueMetrics {
            adds: self.adds.with_label_values(&labels),
            retries: self.retries.with_label_values(&labels),
            waited: self.waited.with_label_values(&labels),
            worked: self.worked.with_label_values(&labels),
        }
    }

    pub(super) fn gauges(&self, name: &str) -> LoadGauges {
        let labels = [name, name];
        LoadGauges {
            name: name.to_owned(),
            depth: self.depth.clone(),
            priorities: Mutex::new([Priority::NORMAL].into()),
            unfinished: self.unfinished.with_label_values(&labels),
            longest: self.longest.with_label_values(&labels),
        }
    }
}

impl QueueMetrics {
    /// A key was due for this long before a worker took it.
    pub(crate) fn waited(&self, time: Duration) {
        self.waited.observe(time.as_secs_f64());
    }

    /// A worker had a key for this long.
    pub(crate) fn worked(&self, time: Duration) {
        self.worked.observe(time.as_secs_f64());
    }
}

impl LoadGauges {
    pub(super) fn set(&self, load: &Load) {
        self.set_depths(&load.depths);
        self.unfinished.set(load.unfinished.as_secs_f64());
        self.longest.set(load.longest.as_secs_f64());
    }

    /// One gauge for each priority that there ever was, as long as there are few.
    fn set_depths(&self, depths: &BTreeMap<Priority, usize>) {
        let mut priorities = self.priorities.lock();
        if priorities.len() <= MAX_PRIORITIES {
            priorities.extend(depths.keys());
        }
        if priorities.len() <= MAX_PRIORITIES {
            for priority in &*priorities {
                self.set_depth(&priority.0.to_string(), depths.get(priority).copied().unwrap_or(0));
            }
            return;
        }
        for priority in &*priorities {
            // What was told before would stand still. One that was never told is not there.
            let _ = self.depth.remove_label_values(&[&self.name, &self.name, &priority.0.to_string()]);
        }
        self.set_depth(TOO_MANY, depths.values().sum());
    }

    fn set_depth(&self, priority: &str, depth: usize) {
        let gauge = self.depth.with_label_values(&[&self.name, &self.name, priority]);
        gauge.set(i64::try_from(depth).unwrap_or(i64::MAX));
    }
}
