//! How a change of size is shared between the sets of a rollout under way
//! (`GetReplicaSetProportion` in `pkg/controller/deployment/util/deployment_util.go`).

use super::goal::Goal;

/// A set that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// `spec.replicas`, not 0.
    pub(super) replicas: i32,
    /// The most pods that all sets might have had when this one was last sized; `None` when nobody wrote it down.
    pub(super) most_before: Option<i32>,
}

/// The new sizes of `shares`, which come ordered: the largest first, for it also takes what rounding leaves over.
/// `actual` is how many pods there are now; it stands in where [`Share::most_before`] is missing. No set goes against
/// the direction of the whole, whatever somebody wrote into its annotation.
pub(super) fn distribute(goal: &Goal, actual: i32, shares: &[Share]) -> Vec<i32> {
    let mut sizes: Vec<i32> = shares.iter().map(|share| share.replicas).collect();
    let allowed = if goal.replicas > 0 { goal.most() } else { 0 };
    let to_add = allowed - sizes.iter().sum::<i32>();
    let mut added = 0;
    for (size, share) in sizes.iter_mut().zip(shares) {
        let (fraction, left) = (fraction(goal, actual, *share), to_add - added);
        let change = if to_add > 0 { fraction.clamp(0, left) } else { fraction.clamp(left, 0) };
        *size += change;
        added += change;
    }
    if let Some(largest) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    sizes
}

/// By how much `share` would have to change to keep its part of the whole.
fn fraction(goal: &Goal, actual: i32, share: Share) -> i32 {
    if goal.replicas == 0 {
        return -share.replicas;
    }
    let before = share.most_before.filter(|before| *before != 0).unwrap_or(actual);
    if before == 0 {
        return 0;
    }
    let size = f64::from(share.replicas) * f64::from(goal.most()) / f64::from(before);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float-to-integer cast saturates, and that is meant"
    )]
    let size = size.round() as i32;
    size - share.replicas
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::goal::Strategy as Rollout;
    use super::*;

    fn goal(replicas: i32, surge: i32) -> Goal {
        Goal { strategy: Rollout::RollingUpdate, replicas, surge, unavailable: 0 }
    }

    fn share(replicas: i32, most_before: i32) -> Share {
        Share { replicas, most_before: Some(most_before) }
    }

    #[test]
    fn each_set_keeps_its_part_of_the_whole() {
        assert_eq!(distribute(&goal(15, 4), 13, &[share(8, 13), share(5, 13)]), [12, 7]);
    }

    #[test]
    fn scaling_to_zero_empties_every_set() {
        assert_eq!(distribute(&goal(0, 1), 13, &[share(8, 13), share(5, 13)]), [0, 0]);
    }

    #[test]
    fn the_largest_takes_what_rounding_leaves_over() {
        assert_eq!(distribute(&goal(4, 0), 3, &[share(1, 3), share(1, 3), share(1, 3)]), [2, 1, 1]);
        let lost = Share { replicas: 3, most_before: None };
        assert_eq!(distribute(&goal(10, 0), 0, &[lost]), [10]);
    }

    proptest! {
        #[test]
        fn all_sets_together_get_what_is_allowed(
            replicas in 0..200i32, surge in 0..50i32,
            mut shares in proptest::collection::vec((1..100i32, proptest::option::of(0..300i32)), 1..5),
        ) {
            shares.sort_by_key(|share| std::cmp::Reverse(share.0));
            let shares: Vec<_> =
                shares.into_iter().map(|(replicas, most_before)| Share { replicas, most_before }).collect();
            let goal = goal(replicas, surge);
            let sizes = distribute(&goal, shares.iter().map(|share| share.replicas).sum(), &shares);
            let allowed = if replicas > 0 { goal.most() } else { 0 };
            prop_assert!(sizes.iter().all(|size| *size >= 0), "{sizes:?}");
            prop_assert!(sizes.iter().sum::<i32>() >= allowed);
            prop_assert!(sizes.iter().sum::<i32>() <= allowed.max(shares.iter().map(|share| share.replicas).sum()));
        }
    }
}
