//! What a server has done so far, as numbers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

/// The upper bounds of the buckets of latencies, in seconds (`controller-runtime/pkg/webhook/internal/metrics`).
pub const LATENCY_BUCKETS: [f64; 12] =
    [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

/// The numbers of one path at one moment; `webhook` is its label. The fields are controller-runtime's metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookCounts {
    /// `controller_runtime_webhook_requests_total{webhook,code}`, by HTTP status; 200 and 500 are always there.
    pub requests: BTreeMap<u16, u64>,
    /// `controller_runtime_webhook_requests_in_flight{webhook}`.
    pub in_flight: u64,
    /// The buckets of `controller_runtime_webhook_latency_seconds{webhook}`: how many requests took at most
    /// [`LATENCY_BUCKETS`], cumulative.
    pub latency_buckets: [u64; LATENCY_BUCKETS.len()],
    /// The histogram's sum.
    pub latency_seconds: f64,
    /// The histogram's count.
    pub latency_count: u64,
}

/// Metrics of a webhook server at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// By path.
    pub webhooks: BTreeMap<String, WebhookCounts>,
    /// `controller_runtime_webhook_panics_total`.
    pub panics: u64,
    /// `controller_runtime_conversion_webhook_panics_total`.
    pub conversion_panics: u64,
    /// Requests that were not answered in time (controller-runtime has none of these).
    pub timeouts: u64,
}

/// The live numbers; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    webhooks: Mutex<BTreeMap<String, WebhookCounts>>,
    panics: AtomicU64,
    conversion_panics: AtomicU64,
    timeouts: AtomicU64,
}

/// A request that is being answered. One that is given up counts as none that was answered.
pub(crate) struct InFlight {
    metrics: Metrics,
    path: String,
    since: Instant,
}

impl Metrics {
    /// With zeros for these paths, so that they are there before the first request.
    pub(crate) fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let zeros = WebhookCounts { requests: BTreeMap::from([(200, 0), (500, 0)]), ..Default::default() };
        let metrics = Self::default();
        metrics.0.webhooks.lock().extend(paths.into_iter().map(|path| (path.to_owned(), zeros.clone())));
        metrics
    }

    /// The numbers now.
    #[must_use]
    pub fn read(&self) -> Counts {
        Counts {
            webhooks: self.0.webhooks.lock().clone(),
            panics: self.0.panics.load(Ordering::Relaxed),
            conversion_panics: self.0.conversion_panics.load(Ordering::Relaxed),
            timeouts: self.0.timeouts.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn begin(&self, path: &str) -> InFlight {
        self.change(path, |counts| counts.in_flight += 1);
        InFlight { metrics: self.clone(), path: path.to_owned(), since: Instant::now() }
    }

    pub(crate) fn panicked(&self, converting: bool) {
        let counter = if converting { &self.0.conversion_panics } else { &self.0.panics };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn timed_out(&self) {
        self.0.timeouts.fetch_add(1, Ordering::Relaxed);
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut WebhookCounts)) {
        if let Some(counts) = self.0.webhooks.lock().get_mut(path) {
            change(counts);
        }
    }
}

impl InFlight {
    pub(crate) fn answered(&self, code: u16) {
        let took = self.since.elapsed();
        self.metrics.change(&self.path, |counts| counts.note(code, took));
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.metrics.change(&self.path, |counts| counts.in_flight -= 1);
    }
}

impl WebhookCounts {
    fn note(&mut self, code: u16, took: Duration) {
        *self.requests.entry(code).or_default() += 1;
        let seconds = took.as_secs_f64();
        self.latency_seconds += seconds;
        self.latency_count += 1;
        for (bucket, bound) in self.latency_buckets.iter_mut().zip(LATENCY_BUCKETS) {
            *bucket += u64::from(seconds <= bound);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_is_in_flight_until_it_is_answered_or_given_up() {
        let metrics = Metrics::of(["/a"]);
        let (answered, given_up) = (metrics.begin("/a"), metrics.begin("/a"));
        assert_eq!(metrics.read().webhooks["/a"].in_flight, 2);
        tokio::time::sleep(Duration::from_millis(50)).await;
        answered.answered(200);
        drop((answered, given_up));
        let counts = metrics.read().webhooks["/a"].clone();
        assert_eq!((counts.in_flight, counts.latency_count), (0, 1));
        assert_eq!(counts.requests, BTreeMap::from([(200, 1), (500, 0)]));
        assert_eq!(counts.latency_buckets, [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    }
}
