//! Which Lease decides who leads, and how patiently.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::{coordination::v1::Lease, core::v1::Event};
use kubewright_world::World;

use crate::rbac::{Rights, Verb};

/// By how much a candidate's waits differ: each is up to 2.2 times the retry period (client-go's `JitterFactor`).
pub(crate) const JITTER_FACTOR: f64 = 1.2;

/// The times of a lease, in client-go's words and with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// For how long others wait, after the last sign of life that they saw, before they take over.
    pub(crate) lease_duration: Duration,
    /// For how long the holder goes on without having renewed.
    pub(crate) renew_deadline: Duration,
    /// How often the holder renews, and how often others look.
    pub(crate) retry_period: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// What is set in the same way for every lease of a replica: who holds it, and how patiently.
macro_rules! lease_setters {
    () => {
        /// Under which name this replica takes part, instead of the host's with a UUID. Two processes of one identity are two:
        /// each knows what it wrote itself.
        #[must_use]
        pub fn identity(mut self, identity: impl Into<String>) -> Self {
            self.identity = Some(identity.into());
            self
        }

        /// How long others wait, after the last renewal that they saw, before they take over; 15 s unless said otherwise.
        /// Whole seconds.
        #[must_use]
        pub fn lease_duration(mut self, duration: std::time::Duration) -> Self {
            self.times.lease_duration = duration;
            self
        }

        /// How long a holder goes on after its last renewal; 10 s unless said otherwise. What is left of the lease's duration
        /// is the margin for writes that are under way and for clocks that run at different speeds.
        #[must_use]
        pub fn renew_deadline(mut self, deadline: std::time::Duration) -> Self {
            self.times.renew_deadline = deadline;
            self
        }

        /// How often a holder renews; 2 s unless said otherwise. Others look about as often.
        #[must_use]
        pub fn retry_period(mut self, period: std::time::Duration) -> Self {
            self.times.retry_period = period;
            self
        }
    };
}
pub(crate) use lease_setters;

impl Times {
    /// How long a request about the lease may take, so that one that hangs does not cost the lease: half of the renew
    /// deadline, at least a second (`NewFromKubeconfig` in `k8s.io/client-go/tools/leaderelection/resourcelock`).
    pub(crate) fn request_timeout(&self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }

    /// What is wrong with them: the checks and texts of `NewLeaderElector` in `k8s.io/client-go/tools/leaderelection`,
    /// and that a Lease tells whole seconds.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if self.lease_duration <= self.renew_deadline {
            mistakes.push("leaseDuration must be greater than renewDeadline".to_owned());
        }
        if self.renew_deadline <= self.retry_period.saturating_mul(12) / 10 {
            mistakes.push("renewDeadline must be greater than retryPeriod*JitterFactor".to_owned());
        }
        if self.retry_period.is_zero() {
            mistakes.push("retryPeriod must be greater than zero".to_owned());
        }
        if self.lease_duration.subsec_nanos() != 0 || i32::try_from(self.lease_duration.as_secs()).is_err() {
            mistakes.push(format!(
                "leaseDuration must be whole seconds, as a Lease tells it in leaseDurationSeconds, not {:?}",
                self.lease_duration
            ));
        }
        mistakes
    }
}

/// Leader election of a manager (or an [`Elector`](super::Elector)): by which Lease, and how it is held.
///
/// The defaults are those of Kubernetes' own components: a lease of 15 s, given up 10 s after the last renewal, renewed
/// every 2 s, and released on stop.
///
/// ```
/// use std::time::Duration;
/// use kubewright_runtime::LeaderElection;
///
/// let election = LeaderElection::lease("operators", "whitelist")
///     .lease_duration(Duration::from_secs(60))
///     .renew_deadline(Duration::from_secs(45))
///     .retry_period(Duration::from_secs(5));
/// ```
///
/// Mistakes are an error of [`Manager::run`](crate::Manager::run) and [`Elector::run`](super::Elector::run).
#[derive(Clone, Debug)]
pub struct LeaderElection {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) identity: Option<String>,
    pub(crate) times: Times,
    pub(crate) release: bool,
    pub(crate) labels: BTreeMap<String, String>,
}

impl LeaderElection {
    /// Elects by the Lease `name` in `namespace`; it is created when it is not there. Everybody who competes for it has
    /// to agree on it and on nothing else: replicas in Go (client-go's `leaderelection`) may be among them.
    ///
    /// Which rights that takes is told by [`LeaderElection::rights`].
    pub fn lease(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: None,
            times: Times::default(),
            release: true,
            labels: BTreeMap::new(),
        }
    }

    lease_setters!();

    /// Leaves the lease to expire on a stop, instead of releasing it so that another replica leads within a moment.
    #[must_use]
    pub fn keep_on_stop(mut self) -> Self {
        self.release = false;
        self
    }

    /// A label that the leader sets on the Lease.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// The rights that it takes, in the Lease's namespace: on the Lease, and to record who leads.
    #[must_use]
    pub fn rights(&self) -> Rights {
        let mut rights = Rights::default();
        rights.add_named::<Lease>(&self.name, [Verb::Get, Verb::Update]).add::<Lease>([Verb::Create]);
        rights.add::<Event>([Verb::Create, Verb::Patch]);
        rights.implied()
    }

    pub(crate) fn mistakes(&self) -> Vec<String> {
        let mut mistakes = self.times.mistakes();
        if self.namespace.is_empty() || self.name.is_empty() {
            mistakes.push("the Lease needs a namespace and a name".to_owned());
        }
        if self.identity.as_deref() == Some("") {
            // An empty holder is nobody.
            mistakes.push("Lock identity is empty".to_owned());
        }
        mistakes.into_iter().map(|mistake| format!("leader election: {mistake}")).collect()
    }
}

/// A name for this process that no other has: that of the host, and a UUID (`leader_election.go` in controller-runtime). A
/// simulated world has no host, so that a seed gives the same names on every machine.
pub(crate) fn identity(world: &World) -> String {
    let host = if world.clock.may_jump() { None } else { host() };
    format!("{}_{}", host.as_deref().unwrap_or("localhost"), world.dice.uid())
}

fn host() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .map(|host| host.trim().to_owned())
        .filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(change: impl FnOnce(LeaderElection) -> LeaderElection) -> Vec<String> {
        change(LeaderElection::lease("default", "test")).mistakes()
    }

    #[test]
    fn the_defaults_are_those_of_kubernetes() {
        let election = LeaderElection::lease("default", "test");
        assert_eq!(election.times.lease_duration, Duration::from_secs(15));
        assert_eq!(election.times.renew_deadline, Duration::from_secs(10));
        assert_eq!(election.times.retry_period, Duration::from_secs(2));
        assert!(election.release);
        assert!(election.mistakes().is_empty());
    }

    #[test]
    fn settings_under_which_two_could_lead_are_refused_in_client_gos_words() {
        let seconds = Duration::from_secs;
        assert_eq!(
            mistakes(|election| election.renew_deadline(seconds(15))),
            ["leader election: leaseDuration must be greater than renewDeadline"]
        );
        assert_eq!(
            mistakes(|election| election.renew_deadline(seconds(12)).retry_period(seconds(10))),
            ["leader election: renewDeadline must be greater than retryPeriod*JitterFactor"]
        );
        assert_eq!(
            mistakes(|election| election.retry_period(Duration::ZERO)),
            ["leader election: retryPeriod must be greater than zero"]
        );
        assert_eq!(mistakes(|election| election.identity("")), ["leader election: Lock identity is empty"]);
        assert_eq!(
            mistakes(|election| election.lease_duration(Duration::from_millis(10_500))),
            [concat!(
                "leader election: leaseDuration must be whole seconds, ",
                "as a Lease tells it in leaseDurationSeconds, not 10.5s"
            )]
        );
    }

    #[tokio::test]
    async fn an_identity_is_the_hosts_name_and_a_uuid() {
        let simulated = || identity(&World::simulated(1));
        assert!(simulated().starts_with("localhost_") && simulated() == simulated());
        let world = World::seeded(1);
        let (first, second) = (identity(&world), identity(&world));
        assert_ne!(first, second);
        let (host, uuid) = first.rsplit_once('_').unwrap_or_default();
        assert!(!host.is_empty() && uuid.len() == 36, "{first}");
    }
}
