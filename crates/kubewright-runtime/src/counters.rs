//! What the controllers of a manager did so far, as numbers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::Leadership;

/// The counts of one controller at one moment. The names are those of controller-runtime's metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reconciles that ended, however they ended.
    pub reconciles: u64,
    /// Reconciles that returned an error, terminal ones included.
    pub errors: u64,
    /// Reconciles that returned a terminal error.
    pub terminal_errors: u64,
    /// Reconciles, mappings and predicates that panicked.
    pub panics: u64,
    /// Reconciles that asked to be called again after a time.
    pub requeues_after: u64,
    /// Writes that the API server accepted, events not counted.
    pub writes: u64,
}

/// The live numbers behind [`Counts`].
#[derive(Debug, Default)]
pub(crate) struct Counter {
    pub(crate) reconciles: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) terminal_errors: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) requeues_after: AtomicU64,
    pub(crate) writes: AtomicU64,
}

/// Adds one.
pub(crate) fn bump(number: &AtomicU64) {
    number.fetch_add(1, Ordering::Relaxed);
}

impl Counter {
    fn read(&self) -> Counts {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Counts {
            reconciles: read(&self.reconciles),
            errors: read(&self.errors),
            terminal_errors: read(&self.terminal_errors),
            panics: read(&self.panics),
            requeues_after: read(&self.requeues_after),
            writes: read(&self.writes),
        }
    }
}

/// The counts of a manager's controllers; a clone keeps telling them while the manager runs and after.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub(crate) controllers: BTreeMap<String, Arc<Counter>>,
    pub(crate) leadership: Option<Leadership>,
}

impl Counters {
    /// The counts of the controller `name`; zeros when there is none of that name.
    #[must_use]
    pub fn of(&self, name: &str) -> Counts {
        self.controllers.get(name).map(|counter| counter.read()).unwrap_or_default()
    }

    /// The counts of every controller, by name.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, Counts> {
        self.controllers.iter().map(|(name, counter)| (name.clone(), counter.read())).collect()
    }

    /// Whether this replica leads, by the name of the Lease: the metric `leader_election_master_status` of client-go, with
    /// the label `name`. Empty when the manager elects nobody.
    #[must_use]
    pub fn leader_election_master_status(&self) -> BTreeMap<String, bool> {
        let told = |leadership: &Leadership| (leadership.name().to_owned(), leadership.is_leader());
        self.leadership.iter().map(told).collect()
    }
}
