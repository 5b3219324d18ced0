//! Ledger: what an operator has done outside of the cluster, as a fake of that outside notes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kubewright_world::World;
use parking_lot::Mutex;

use crate::Cluster;

/// Ledger of the effects that an operator has outside of the cluster and that must not be repeated: a bill that is sent, a machine that
/// is ordered. A fake notes each; one that is done twice fails the test at its end, with both times, under faults or without.
/// Clones are of the same ledger.
///
/// ```no_run
/// use kubewright_testing::{Cluster, Ledger};
///
/// /// Takes the place of a provider of machines.
/// struct Provider(Ledger);
///
/// impl Provider {
///     fn order(&self, machine: &str) {
///         self.0.once(format!("order of {machine}"));
///     }
///
///     fn cancel(&self, machine: &str) {
///         self.0.undone(&format!("order of {machine}"));
///     }
/// }
///
/// # async fn example(cluster: Cluster) {
/// let provider = Provider(cluster.ledger());
/// # provider.order("a"); provider.cancel("a");
/// # }
/// ```
///
/// An effect is what its text says: with the uid of the object that it is for in it, an object that is made anew is another one.
#[derive(Clone, Debug)]
pub struct Ledger {
    entries: Arc<Mutex<Entries>>,
    world: World,
}

#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Effects that last, with when each was done.
    done: BTreeMap<String, Vec<Timestamp>>,
    /// The first that was done twice.
    repeated: Option<String>,
}

impl Ledger {
    /// Notes an effect that may not be done again until it is [undone](Self::undone).
    pub fn once(&self, effect: impl Into<String>) {
        let (effect, now) = (effect.into(), self.world.clock.now());
        let mut entries = self.entries.lock();
        let Entries { done, repeated } = &mut *entries;
        let times = done.entry(effect.clone()).or_default();
        times.push(now);
        if let ([first, .., again], None) = (&times[..], &*repeated) {
            let told = format!(
                "outside effects are not repeated: {effect} was done at {first}, and again at {again}"
            );
            *repeated = Some(told);
        }
    }

    /// Notes that an effect does not last any more; of one that was not done, nothing.
    pub fn undone(&self, effect: &str) {
        self.entries.lock().done.remove(effect);
    }

    /// The effects that last, in the order of their texts.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        self.entries.lock().done.keys().cloned().collect()
    }

    /// What is wrong, if something was done twice.
    pub(crate) fn failure(&self) -> Option<String> {
        self.entries.lock().repeated.clone()
    }
}

impl Cluster {
    /// The ledger of the test, for its fakes.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        Ledger { entries: Arc::clone(self.entries()), world: self.world().clone() }
    }
}
