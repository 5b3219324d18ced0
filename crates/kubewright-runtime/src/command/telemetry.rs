//! What an operator sends to an OpenTelemetry collector.

use kubewright_telemetry::Collector;
use tokio_util::sync::CancellationToken;

use super::{Operator, Run, run::is_off};
use crate::{Error, Metrics};

impl Operator {
    /// The collector that `run` says; none where it says none, or where the SDK is to be off (`OTEL_SDK_DISABLED`). Its
    /// [`traces`](Collector::traces) have a layer for a subscriber of one's own.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] for an endpoint that is no address.
    pub fn collector(&self, run: &Run) -> Result<Option<Collector>, Error> {
        let is_disabled =
            std::env::var("OTEL_SDK_DISABLED").is_ok_and(|disabled| disabled.eq_ignore_ascii_case("true"));
        let endpoint = run.otlp_endpoint.as_deref().filter(|endpoint| !is_off(endpoint) && !is_disabled);
        let collector = endpoint.map(|endpoint| Collector::new(&self.name, &self.version, endpoint));
        collector.transpose().map_err(|error| Error::Misconfigured(error.to_string()))
    }
}

/// Sends metrics while something is done, and once more when it has ended.
pub(super) async fn beside<T>(collector: &Collector, metrics: &Metrics, work: impl Future<Output = T>) -> T {
    let ended = CancellationToken::new();
    let work = async {
        let _end = ended.clone().drop_guard();
        work.await
    };
    tokio::join!(work, collector.export_metrics(|| metrics.gather(), ended.clone())).0
}
