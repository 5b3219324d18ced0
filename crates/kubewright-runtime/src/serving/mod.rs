//! The HTTP endpoints of an operator: metrics, and health for the kubelet's probes.
//!
//! Neither is served unless it is asked for. They speak HTTP/1.1, each answer is made in memory, and the number of
//! connections, the size of a request's head and the time that it may take have limits, so that a stranger who may connect
//! can bring down nothing but the endpoint.

mod access;
mod debug;
mod endpoint;
mod health;
mod metrics;
#[cfg(test)]
mod tests;
mod tls;

use kube::Client;
use tokio_util::sync::CancellationToken;

#[cfg(all(feature = "webhook", feature = "command"))]
pub(crate) use self::endpoint::whole;
use self::endpoint::{Announce, Listening};
pub use self::{access::Access, endpoint::Bound, health::HealthServer, metrics::MetricsServer, tls::Tls};
pub(crate) use self::{debug::DebugHandlers, endpoint::Endpoint};
use crate::{Error, health::Checks, journal::Journals, metrics::Metrics};

/// What a manager serves.
#[derive(Default)]
pub(crate) struct Servers {
    pub(crate) metrics: Option<(MetricsServer, Announce)>,
    pub(crate) health: Option<(HealthServer, Announce)>,
    /// Beside the metrics.
    pub(crate) debug: DebugHandlers,
    pub(crate) alive: Checks,
    pub(crate) ready: Checks,
}

impl Servers {
    /// Takes the addresses; certificates are looked after until `stop`.
    pub(crate) async fn bind(
        self,
        metrics: &Metrics,
        journals: &Journals,
        client: &Client,
        stop: &CancellationToken,
    ) -> Result<Vec<Listening>, Error> {
        let mut listening = Vec::new();
        if let Some((server, announce)) = self.health {
            listening.push(server.endpoint(self.alive, self.ready, announce).bind().await?);
        }
        if let Some((server, announce)) = self.metrics {
            let endpoint =
                server.endpoint(metrics.clone(), journals.clone(), self.debug, client, stop, announce)?;
            listening.push(endpoint.bind().await?);
        }
        Ok(listening)
    }
}
