//! What the edge allows its clients.

use std::time::Duration;

/// The settings of an [`super::ApiServer`]; the default is kube-apiserver's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many reads run at once (`--max-requests-inflight`); 0 for any number.
    pub max_reads: usize,
    /// How many writes run at once (`--max-mutating-requests-inflight`); 0 for any number.
    pub max_writes: usize,
    /// How long a request may take (`--request-timeout`); watches are no requests in this sense.
    pub request_timeout: Duration,
    /// The shortest that a watch lasts when the client does not say (`--min-request-timeout`); it takes up to twice as
    /// long, at random, which spreads the reconnects of many clients.
    pub min_request_timeout: Duration,
    /// Whether discovery is told in one document to those who want it (the feature gate `AggregatedDiscoveryEndpoint`).
    pub aggregated_discovery: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_reads: 400,
            max_writes: 200,
            request_timeout: Duration::from_secs(60),
            min_request_timeout: Duration::from_secs(1800),
            aggregated_discovery: true,
        }
    }
}
