//! When a cluster has come to rest.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::time::Duration;

use kubewright_cluster::journal::Written;
use kubewright_runtime::Key;
use kubewright_store::Revision;
use tokio::time::Instant;

use crate::{Cluster, Deployed};

/// For so long nobody may have written: what is due within it counts as due now. Kubernetes batches by less.
const QUIET: Duration = Duration::from_secs(1);
/// A retry after a failure that is due later than this is not waited for: who has failed so often will go on to.
const RETRY: Duration = Duration::from_secs(60);
/// A cluster that has not come to rest by then does not.
const LONGEST: Duration = Duration::from_secs(600);
/// What failed before, or because of a fault, is tried once more before it is judged, if that is by then: the longest
/// back-off that there is by default.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(1000);
/// The collection whose writes are no work: who leads, and who is alive.
const LEASES: &str = "coordination.k8s.io/leases";

/// A key that an operator failed to reconcile and that is in back-off, although all has come to rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The operator.
    pub operator: String,
    /// Its controller.
    pub controller: String,
    /// The object.
    pub key: Key,
    /// Why the last reconcile failed.
    pub error: String,
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operator, controller, key, error } = self;
        write!(f, "the operator {operator} fails again and again: controller {controller}, {key}: {error}")
    }
}

impl Cluster {
    /// Lets time pass until nobody has work: for a second nobody has written, no controller and no operator has a key in
    /// its queue or with a worker, or one that failed and is tried again within a minute, and no request is under way.
    ///
    /// Renewals of leases are no work, and what is planned for later (`requeue_after` an hour, the next run of a CronJob) is
    /// none before its time. Where a test runs under faults, it is waited until they are over; there are new ones when the
    /// test goes on. Of a
    /// real cluster only the operators of the test are known: they have to be at rest for a second.
    ///
    /// Nothing may fail at rest: a reconcile that failed again and again, so that its next try is more than a minute away,
    /// fails the test, unless something goes wrong meanwhile (a rule of [`Admin`](kubewright_cluster::admin::Admin), a
    /// [fault](Self::inject)). Who was in such a back-off before, or came into it while something went wrong, is tried once
    /// more first, which lets up to 1000 seconds pass. An operator that knows that trying again is of no use says so by a
    /// [terminal](kubewright_runtime::Error::terminal) error; a test that wants one to fail calls
    /// [`Self::settle_with_failures`].
    ///
    /// # Panics
    /// When there is no rest within ten minutes of cluster time, with who has written what in the last one; when an
    /// operator fails at rest, with the object and the error.
    pub async fn settle(&self) {
        let failing = self.settle_with_failures().await;
        if failing.is_empty() {
            return;
        }
        // A missing right is the cause of most else.
        let causes = self.operators();
        let mut text: Vec<_> = causes.iter().filter_map(Deployed::failure).collect();
        text.extend(failing.iter().map(Failing::to_string));
        panic!("{}", text.join("\n"));
    }

    /// As [`Self::settle`], for a test in which an operator has to fail: what is in back-off at rest does not fail the
    /// test, but is given back, with the error of the last try.
    ///
    /// ```no_run
    /// # async fn example(cluster: kubewright_testing::Cluster) {
    /// let failing = cluster.settle_with_failures().await;
    /// assert!(failing[0].error.contains("the cloud is away"), "{failing:?}");
    /// # }
    /// ```
    ///
    /// # Panics
    /// When there is no rest within ten minutes of cluster time.
    pub async fn settle_with_failures(&self) -> Vec<Failing> {
        self.injector().next(self).await;
        self.without_loops(self.injector().wait_until_over()).await;
        let failing = self.without_loops(self.come_to_rest()).await;
        self.injector().rest();
        failing
    }

    /// Gives what fails at rest.
    async fn come_to_rest(&self) -> Vec<Failing> {
        let start = Instant::now();
        // Since when nothing has gone wrong: what failed before says nothing yet.
        let mut undisturbed = start;
        let (mut seen, mut was_disturbed) = (self.last_work(), self.is_disturbed());
        loop {
            tokio::time::sleep(QUIET).await;
            let now = self.last_work();
            let is_disturbed = self.is_disturbed();
            // What has ended since the last look has had its last effect since then.
            if is_disturbed || was_disturbed {
                undisturbed = Instant::now();
            }
            was_disturbed = is_disturbed;
            let is_at_rest = now == seen && self.is_at_rest();
            if is_at_rest && (is_disturbed || !self.has_to_try_again(undisturbed)) {
                return self.failing_since(undisturbed);
            }
            seen = now;
            if !is_at_rest && start.elapsed() >= LONGEST {
                panic!("the cluster does not come to rest within {LONGEST:?}\n{}", self.unrest());
            }
        }
    }

    /// Whether something goes wrong at this moment that operators need not cope with.
    fn is_disturbed(&self) -> bool {
        let has_faults = |cluster: &kubewright_cluster::Cluster| {
            cluster.admin().is_some_and(kubewright_cluster::admin::Admin::has_faults)
        };
        self.injector().is_injecting() || self.simulated().is_some_and(has_faults)
    }

    /// Whether the last failure of a key in back-off is of an earlier time, and its next try is worth to be waited for.
    fn has_to_try_again(&self, undisturbed: Instant) -> bool {
        let operators = self.operators();
        let mut failing = operators.iter().flat_map(Deployed::failing);
        !self.is_real()
            && failing.any(|one| one.since >= undisturbed.elapsed() && one.after <= LONGEST_BACK_OFF)
    }

    /// The keys in back-off that have failed since then.
    fn failing_since(&self, undisturbed: Instant) -> Vec<Failing> {
        let mut failing = Vec::new();
        for operator in self.operators() {
            for one in operator.failing().into_iter().filter(|one| one.since < undisturbed.elapsed()) {
                let (operator, controller) = (operator.name().to_owned(), one.controller);
                failing.push(Failing { operator, controller, key: one.key, error: one.error });
            }
        }
        failing
    }

    /// The last revision that was work.
    fn last_work(&self) -> Revision {
        let Some(cluster) = self.simulated() else { return Revision(0) };
        let snapshot = cluster.server().engine().store().snapshot();
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
        let mut text = String::new();
        for operator in self.operators().iter().filter(|operator| !operator.is_at_rest(RETRY)) {
            let _ = writeln!(text, "operator {} has work left", operator.name());
            for one in operator.failing() {
                let _ = writeln!(text, "    {} failed {:?} ago: {}", one.key, one.since, one.error);
            }
        }
        let Some(cluster) = self.simulated() else { return text };
        if !cluster.backlog().is_empty(RETRY) {
            text += "the built-in controllers have work left\n";
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
            let _ = writeln!(text, "in the last minute: {count} writes of {collection} {key} by {who}");
        }
        text
    }
}
