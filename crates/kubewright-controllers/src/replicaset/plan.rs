//! What a set of pods lacks or has too much of (`pkg/controller/replicaset/replica_set.go`, `manageReplicas`).

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::ranking::least_needed;
use super::replicated::Replicated;

/// The most pods that one pass creates or deletes, so that one large set does not keep the others waiting.
pub(super) const BURST: usize = 500;

/// What to do about the number of pods.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// There are as many as there should be.
    Settled,
    /// Create this many.
    Create(usize),
    /// Delete these.
    Delete(Vec<Arc<Pod>>),
}

/// Compares the `active` pods of `set` with `spec.replicas`. `siblings` gives the pods of all sets with the same
/// controller, when something has to go; they tell which nodes are crowded. A set that is being deleted does nothing
/// more.
pub(super) fn step<R: Replicated>(
    set: &R,
    active: &[Arc<Pod>],
    siblings: impl FnOnce() -> Vec<Arc<Pod>>,
    now: Timestamp,
) -> Step {
    if set.meta().deletion_timestamp.is_some() {
        return Step::Settled;
    }
    let wanted = usize::try_from(set.replicas()).unwrap_or_default();
    match active.len() {
        have if have < wanted => Step::Create((wanted - have).min(BURST)),
        have if have > wanted => {
            Step::Delete(least_needed(active, &siblings(), (have - wanted).min(BURST), now))
        }
        _ => Step::Settled,
    }
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use proptest::prelude::*;

    use super::super::tests::replica_set;
    use super::*;
    use crate::pod::tests::pod;

    fn pods(count: usize) -> Vec<Arc<Pod>> {
        (0..count).map(|n| Arc::new(pod(&format!("p{n}"), "Running", None))).collect()
    }

    #[test]
    fn a_set_that_is_being_deleted_makes_and_removes_no_pods() {
        let mut set = replica_set(3);
        set.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
        assert_eq!(step(&set, &[], Vec::new, NOW), Step::Settled);
    }

    proptest! {
        #[test]
        fn one_pass_brings_the_number_of_pods_to_the_wanted_one(wanted in 0..500i32, have in 0..500usize) {
            let have = pods(have);
            let after = match step(&replica_set(wanted), &have, || have.clone(), NOW) {
                Step::Settled => have.len(),
                Step::Create(count) => have.len() + count,
                Step::Delete(gone) => have.len() - gone.len(),
            };
            prop_assert_eq!(after, usize::try_from(wanted).unwrap());
        }
    }
}
