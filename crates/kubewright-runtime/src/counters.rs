//! What the controllers of a manager did so far, as numbers: read from their [metrics](crate::metrics).

use std::collections::BTreeMap;

use crate::{Leadership, metrics::ControllerMetrics};

/// The counts of one controller at one moment. The names are those of controller-runtime's metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reconciles that ended, however they ended.
    pub reconciles: u64,
    /// Reconciles that returned an error (terminal ones included), panicked or took too long.
    pub errors: u64,
    /// Reconciles that returned a terminal error.
    pub terminal_errors: u64,
    /// Reconciles, mappings and predicates that panicked.
    pub panics: u64,
    /// Reconciles that were dropped because they took too long.
    pub timeouts: u64,
    /// Reconciles that asked to be called again after a time.
    pub requeues_after: u64,
    /// Writes that the API server accepted, events not counted.
    pub writes: u64,
}

impl From<&ControllerMetrics> for Counts {
    fn from(metrics: &ControllerMetrics) -> Self {
        Self {
            reconciles: metrics.reconciles(),
            errors: metrics.errors.get(),
            terminal_errors: metrics.terminal_errors.get(),
            panics: metrics.panics.get(),
            timeouts: metrics.timeouts.get(),
            requeues_after: metrics.requeue_after.get(),
            writes: metrics.writes.get(),
        }
    }
}

/// The counts of a manager's controllers; a clone keeps telling them while the manager runs and after.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub(crate) controllers: BTreeMap<String, ControllerMetrics>,
    pub(crate) leadership: Option<Leadership>,
}

impl Counters {
    /// The counts of the controller `name`; zeros when there is none of that name.
    #[must_use]
    pub fn of(&self, name: &str) -> Counts {
        self.controllers.get(name).map(Counts::from).unwrap_or_default()
    }

    /// The counts of every controller, by name.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, Counts> {
        self.controllers.iter().map(|(name, metrics)| (name.clone(), Counts::from(metrics))).collect()
    }

    /// Whether this replica leads, by the name of the Lease: the metric `leader_election_master_status` of client-go, with
    /// the label `name`. Empty when the manager elects nobody.
    #[must_use]
    pub fn leader_election_master_status(&self) -> BTreeMap<String, bool> {
        let state = |leadership: &Leadership| (leadership.name().to_owned(), leadership.is_leader());
        self.leadership.iter().map(state).collect()
    }
}
