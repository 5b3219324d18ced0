//! What the edge allows its clients.

use std::time::Duration;

use super::components::Components;

/// The settings of an [`super::ApiServer`]; the default is kube-apiserver's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many reads run at once (`--max-requests-inflight`), from the time that the request is there to the end of its
    /// answer; 0 for any number. One user has at most as many as are left free then. Members of `system:masters` are not
    /// counted, and leases and what nodes say of themselves have places of their own, as many as [`Self::max_writes`].
    pub max_reads: usize,
    /// How many writes run at once (`--max-mutating-requests-inflight`), in the same way; 0 for any number.
    pub max_writes: usize,
    /// How long a request may take (`--request-timeout`), its body and its answer included; watches are no requests in this
    /// sense.
    pub request_timeout: Duration,
    /// The shortest that a watch lasts when the client does not say (`--min-request-timeout`); it takes up to twice as
    /// long, at random, which spreads the reconnects of many clients.
    pub min_request_timeout: Duration,
    /// How many requests that may take long are computed at once, beside those that are short; as many pieces of large answers
    /// are made at once. By default as many as the machine runs threads, and 2 at least. 0: everything is computed on the thread
    /// that serves its connection, as it always is on a runtime of one thread.
    pub places: usize,
    /// Whether discovery is told in one document to those who want it (the feature gate `AggregatedDiscoveryEndpoint`).
    pub aggregated_discovery: bool,
    /// Which programs of a control plane are in this process, as `componentstatuses` tells it.
    pub components: Components,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_reads: 400,
            max_writes: 200,
            request_timeout: Duration::from_secs(60),
            min_request_timeout: Duration::from_secs(1800),
            places: std::thread::available_parallelism().map_or(2, |threads| threads.get().max(2)),
            aggregated_discovery: true,
            components: Components::default(),
        }
    }
}
