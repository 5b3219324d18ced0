//! What stands in the place of `go_*`: how tokio is doing.

use prometheus::{
    IntGauge,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use tokio::runtime::Handle;

/// Asks the runtime in which the metrics are gathered.
pub(super) struct Tokio {
    workers: IntGauge,
    alive_tasks: IntGauge,
    queued_tasks: IntGauge,
}

impl Tokio {
    pub(super) fn new() -> Self {
        let gauge = |name: &str, help: &str| IntGauge::new(name, help).expect("a valid name");
        Self {
            workers: gauge("tokio_workers", "Number of worker threads of the runtime."),
            alive_tasks: gauge("tokio_alive_tasks", "Number of tasks that have not ended."),
            queued_tasks: gauge(
                "tokio_global_queue_depth",
                "Number of tasks that wait in the runtime's queue.",
            ),
        }
    }

    fn gauges(&self) -> [&IntGauge; 3] {
        [&self.workers, &self.alive_tasks, &self.queued_tasks]
    }
}

impl Collector for Tokio {
    fn desc(&self) -> Vec<&Desc> {
        self.gauges().into_iter().flat_map(Collector::desc).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Ok(runtime) = Handle::try_current() else { return Vec::new() };
        let metrics = runtime.metrics();
        let values = [metrics.num_workers(), metrics.num_alive_tasks(), metrics.global_queue_depth()];
        for (gauge, value) in self.gauges().into_iter().zip(values) {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        self.gauges().into_iter().flat_map(Collector::collect).collect()
    }
}
