//! The kinds of faults, by their names in `#[kubewright::test(faults(...))]`.

use std::fmt;
use std::str::FromStr;

/// Kind of fault. All of them affect the operators of a test (who act as service accounts), their pods' nodes or their
/// webhooks; never the built-in controllers, and never the test's own client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// Updates, patches and deletions are answered with 409.
    Conflict,
    /// Requests are answered with 429 and a `Retry-After`.
    Throttle,
    /// Requests are answered with 500 or 503.
    Error,
    /// Requests get no answer: carried out or not, with 504, with a connection that is cut.
    Timeout,
    /// Requests take up to seconds.
    Latency,
    /// Watches end, cleanly or with a connection that is cut.
    DropWatch,
    /// Watches tell nothing for a while: the operator's cache is old.
    StaleWatch,
    /// Watches end with 410, and what was before them is gone.
    ExpireWatch,
    /// Events are told twice.
    Duplicate,
    /// The API server is away for a while: nothing answers, and all watches are cut.
    Restart,
    /// The operator is killed between two writes, or in the middle of one, and started again.
    Crash,
    /// The operator's lease cannot be renewed.
    LostLeader,
    /// The operator's clock is wrong for a while: it jumps, and jumps back.
    ClockSkew,
    /// The operator's webhooks are not reached.
    WebhookDown,
    /// A pod of the cluster is evicted.
    Evict,
    /// A node of the cluster goes, and comes back.
    NodeGone,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Conflict,
        Self::Throttle,
        Self::Error,
        Self::Timeout,
        Self::Latency,
        Self::DropWatch,
        Self::StaleWatch,
        Self::ExpireWatch,
        Self::Duplicate,
        Self::Restart,
        Self::Crash,
        Self::LostLeader,
        Self::ClockSkew,
        Self::WebhookDown,
        Self::Evict,
        Self::NodeGone,
    ];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Throttle => "throttle",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Latency => "latency",
            Self::DropWatch => "drop_watch",
            Self::StaleWatch => "stale_watch",
            Self::ExpireWatch => "expire_watch",
            Self::Duplicate => "duplicate",
            Self::Restart => "restart",
            Self::Crash => "crash",
            Self::LostLeader => "lost_leader",
            Self::ClockSkew => "clock_skew",
            Self::WebhookDown => "webhook_down",
            Self::Evict => "evict",
            Self::NodeGone => "node_gone",
        }
    }

    /// Whether an operator's watches may tell it what is no longer so.
    #[must_use]
    pub fn makes_stale(self) -> bool {
        matches!(
            self,
            Self::DropWatch | Self::StaleWatch | Self::ExpireWatch | Self::Duplicate | Self::Restart
        )
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|kind| kind.name()).collect();
            format!("{name:?} is no fault; there are {}", known.join(", "))
        })
    }
}
