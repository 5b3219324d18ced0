//! When a cluster has come to rest.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use kubewright_cluster::journal::Written;
use kubewright_store::Revision;
use tokio::time::Instant;

use crate::Cluster;

/// For so long nobody may have written: what is due within it counts as due now. Kubernetes batches by less.
const QUIET: Duration = Duration::from_secs(1);
/// A retry after a failure that is due later than this is not waited for: who has failed so often will go on to.
const RETRY: Duration = Duration::from_secs(60);
/// A cluster that has not come to rest by then does not.
const LONGEST: Duration = Duration::from_secs(600);
/// The collection whose writes are no work: who leads, and who is alive.
const LEASES: &str = "coordination.k8s.io/leases";

impl Cluster {
    /// Lets time pass until nobody has work: for a second nobody has written, no controller and no operator has a key in
    /// its queue or with a worker, or one that failed and is tried again within a minute, and no request is under way.
    ///
    /// Renewals of leases are no work, and what is planned for later (`requeue_after` an hour, the next run of a CronJob) is
    /// none before its time. Where a test runs under faults, it is waited until they are over; there are new ones when the
    /// test goes on. Of a
    /// real cluster only the operators of the test are known: they have to be at rest for a second.
    ///
    /// # Panics
    /// When there is no rest within ten minutes of cluster time; with who has written what in the last one.
    pub async fn settle(&self) {
        self.weather().next(self).await;
        self.without_loops(self.weather().calm()).await;
        self.without_loops(self.come_to_rest()).await;
        self.weather().rest();
    }

    async fn come_to_rest(&self) {
        let start = Instant::now();
        let mut seen = self.last_work();
        loop {
            tokio::time::sleep(QUIET).await;
            let now = self.last_work();
            if now == seen && self.is_at_rest() {
                return;
            }
            seen = now;
            if start.elapsed() >= LONGEST {
                panic!("the cluster does not come to rest within {LONGEST:?}\n{}", self.unrest());
            }
        }
    }

    /// The last revision that was work.
    fn last_work(&self) -> Revision {
        let Some(cluster) = self.simulated() else { return Revision(0) };
        let snapshot = cluster.server().registry().store().snapshot();
        let work = snapshot.collections().filter(|collection| ***collection != *LEASES);
        work.map(|collection| snapshot.modified(collection)).max().unwrap_or_default()
    }

    /// Whether nobody is at work or about to be, as far as can be seen from outside.
    fn is_at_rest(&self) -> bool {
        self.simulated().is_none_or(|cluster| cluster.backlog().is_empty(RETRY))
            && self.operators().iter().all(|operator| operator.is_at_rest(RETRY))
    }

    /// Who does not come to rest.
    fn unrest(&self) -> String {
        let mut told = String::new();
        for operator in self.operators().iter().filter(|operator| !operator.is_at_rest(RETRY)) {
            let _ = writeln!(told, "operator {} has work left", operator.name());
        }
        let Some(cluster) = self.simulated() else { return told };
        if !cluster.backlog().is_empty(RETRY) {
            told += "the built-in controllers have work left\n";
        }
        let since = self.world().clock.now().saturating_sub(RETRY).unwrap_or_default();
        let recent = |one: &Written| one.time >= since && *one.collection != *LEASES;
        let mut counts = BTreeMap::new();
        for one in cluster.journal().map(|journal| journal.written(recent)).unwrap_or_default() {
            let who = one
                .by
                .map_or_else(|| "the API server".to_owned(), |by| format!("{} ({})", by.user, by.user_agent));
            *counts.entry((who, one.collection.to_string(), one.key.to_string())).or_insert(0_u64) += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for ((who, collection, key), count) in counts.into_iter().take(10) {
            let _ = writeln!(told, "in the last minute: {count} writes of {collection} {key} by {who}");
        }
        told
    }
}
