//! A step of a rolling update, in numbers (`pkg/controller/deployment/rolling.go`).

use super::goal::Goal;

/// The numbers of a ReplicaSet that a rollout reckons with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// `spec.replicas`.
    pub(super) replicas: i32,
    /// Its available pods; never more than `replicas`, for a set that was just made smaller still says the old number
    /// and may lose any of them.
    pub(super) available: i32,
    /// The pods that it has or asks for, whichever are more: a set that was just made smaller still has them, until its
    /// controller gets to it. (Kubernetes counts what is asked for only, and so may go beyond its surge for a while.)
    pub(super) pods: i32,
}

/// What to resize next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The new set, to this size.
    New(i32),
    /// The old sets, to these sizes, in the order in which they were given.
    Old(Vec<i32>),
    /// Nothing can be done before pods come, go or become available.
    Wait,
}

/// The next step from the `old` sets (oldest first) to the `new` one.
///
/// The new set grows as far as the surge lets it; only when it cannot grow, the old ones shrink: first by what is not
/// available in them anyway, then by as many available pods as are not needed. However the pods fare, the sets never
/// ask for more than [`Goal::most`] pods, and no step takes available pods away below [`Goal::least_available`].
pub(super) fn step(goal: &Goal, new: Counts, old: &[Counts]) -> Step {
    let size = new_size(goal, new.replicas, old.iter().map(|set| set.pods).sum());
    if size != new.replicas {
        return Step::New(size);
    }
    let sizes = old_sizes(goal, new, old);
    if sizes.iter().zip(old).any(|(size, set)| *size != set.replicas) {
        return Step::Old(sizes);
    }
    Step::Wait
}

/// The size that a new set of now `current` pods may have beside `others` pods of old sets.
pub(super) fn new_size(goal: &Goal, current: i32, others: i32) -> i32 {
    if current > goal.replicas {
        return goal.replicas;
    }
    let room = goal.most() - current - others;
    current + room.clamp(0, goal.replicas - current)
}

fn old_sizes(goal: &Goal, new: Counts, old: &[Counts]) -> Vec<i32> {
    let mut sizes: Vec<i32> = old.iter().map(|set| set.replicas).collect();
    let total: i32 = new.replicas + sizes.iter().sum::<i32>();
    let not_yet_available = new.replicas - new.available;
    let mut removable = total - goal.least_available() - not_yet_available;
    if removable <= 0 {
        return sizes;
    }

    for (size, set) in sizes.iter_mut().zip(old) {
        let unavailable = (set.replicas - set.available).min(removable);
        *size -= unavailable;
        removable -= unavailable;
    }

    let available: i32 = new.available + old.iter().map(|set| set.available).sum::<i32>();
    let mut spare = (available - goal.least_available()).max(0);
    for size in &mut sizes {
        let taken = spare.min(*size);
        *size -= taken;
        spare -= taken;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::goal::Strategy as Rollout;
    use super::*;

    fn goal(replicas: i32, surge: i32, unavailable: i32) -> Goal {
        Goal { strategy: Rollout::RollingUpdate, replicas, surge, unavailable }
    }

    fn counts(replicas: i32, available: i32) -> Counts {
        Counts { replicas, available, pods: replicas }
    }

    #[test]
    fn the_new_set_grows_into_the_surge_first() {
        assert_eq!(step(&goal(10, 3, 2), counts(0, 0), &[counts(10, 10)]), Step::New(3));
    }

    #[test]
    fn old_sets_shrink_by_what_may_be_unavailable() {
        assert_eq!(step(&goal(10, 3, 2), counts(3, 0), &[counts(10, 10)]), Step::Old(vec![8]));
        assert_eq!(step(&goal(10, 3, 2), counts(3, 0), &[counts(8, 8)]), Step::New(5));
        assert_eq!(step(&goal(10, 3, 2), counts(5, 0), &[counts(8, 8)]), Step::Wait);
    }

    #[test]
    fn without_surge_an_old_pod_goes_before_a_new_one_comes() {
        assert_eq!(step(&goal(3, 0, 1), counts(0, 0), &[counts(3, 3)]), Step::Old(vec![2]));
        assert_eq!(step(&goal(3, 0, 1), counts(0, 0), &[counts(2, 2)]), Step::New(1));
        assert_eq!(step(&goal(3, 0, 1), counts(1, 0), &[counts(2, 2)]), Step::Wait);
    }

    #[test]
    fn the_new_set_waits_for_old_pods_that_are_to_go_but_are_there_yet() {
        let lagging = Counts { replicas: 8, available: 8, pods: 10 };
        assert_eq!(step(&goal(10, 3, 2), counts(3, 0), &[lagging]), Step::Wait);
    }

    #[test]
    fn unhealthy_old_pods_go_first_even_when_the_new_ones_are_not_available() {
        assert_eq!(step(&goal(10, 2, 2), counts(2, 0), &[counts(3, 0), counts(7, 7)]), Step::Old(vec![1, 7]));
    }

    #[test]
    fn a_new_set_that_is_too_large_shrinks() {
        assert_eq!(step(&goal(3, 1, 0), counts(5, 5), &[]), Step::New(3));
    }

    /// A cluster as far as a rollout sees it: for each set, which of its pods are available.
    #[derive(Clone, Debug)]
    struct Pods {
        new: Vec<bool>,
        old: Vec<Vec<bool>>,
    }

    impl Pods {
        fn counts(set: &[bool]) -> Counts {
            let count = |length: usize| i32::try_from(length).expect("a small number");
            counts(count(set.len()), count(set.iter().filter(|available| **available).count()))
        }

        fn available(&self) -> i32 {
            Self::counts(&self.new).available
                + self.old.iter().map(|set| Self::counts(set).available).sum::<i32>()
        }

        fn total(&self) -> i32 {
            Self::counts(&self.new).replicas
                + self.old.iter().map(|set| Self::counts(set).replicas).sum::<i32>()
        }

        /// What the ReplicaSet controller does: pods that come are not available, those that are not go first.
        fn resize(set: &mut Vec<bool>, size: i32) {
            set.sort_unstable_by_key(|available| !available);
            set.resize(usize::try_from(size).expect("no negative size"), false);
        }

        fn next(&self, goal: &Goal) -> Step {
            let old: Vec<_> = self.old.iter().map(|set| Self::counts(set)).collect();
            step(goal, Self::counts(&self.new), &old)
        }

        fn apply(&mut self, step: &Step) {
            match step {
                Step::New(size) => Self::resize(&mut self.new, *size),
                Step::Old(sizes) => {
                    for (set, size) in self.old.iter_mut().zip(sizes) {
                        Self::resize(set, *size);
                    }
                }
                Step::Wait => {}
            }
        }

        /// Each pod becomes, or stops being, available as the dice say.
        fn shuffle(&mut self, dice: &[bool]) {
            let pods = self.new.iter_mut().chain(self.old.iter_mut().flatten());
            for (pod, available) in pods.zip(dice.iter().cycle()) {
                *pod = *available;
            }
        }
    }

    prop_compose! {
        /// A goal that can be reached (one bound is positive) and up to three old sets within it.
        fn rollout()(replicas in 0..12i32, surge in 0..6i32, unavailable in 0..6i32)
            (old in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 0..6), 0..3),
             replicas in Just(replicas), surge in Just(surge), unavailable in Just(unavailable)) -> (Goal, Pods) {
            let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
            (goal(replicas, surge, unavailable.min(replicas)), Pods { new: Vec::new(), old })
        }
    }

    proptest! {
        #[test]
        fn a_rollout_stays_within_its_bounds_however_the_pods_fare(
            (goal, mut pods) in rollout(),
            moments in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 1..16), 1..60),
        ) {
            for dice in &moments {
                let (before_total, before_available) = (pods.total(), pods.available());
                pods.apply(&pods.clone().next(&goal));
                prop_assert!(pods.total() <= goal.most().max(before_total), "more pods than the surge allows: {pods:?}");
                prop_assert!(pods.available() >= goal.least_available().min(before_available),
                    "a step took pods that were needed: {before_available} -> {pods:?}");
                pods.shuffle(dice);
            }
        }

        #[test]
        fn a_rollout_ends_once_pods_become_available((goal, mut pods) in rollout()) {
            for _ in 0..200 {
                let step = pods.next(&goal);
                pods.apply(&step);
                if step == Step::Wait {
                    pods.shuffle(&[true]);
                }
            }
            prop_assert_eq!(pods.next(&goal), Step::Wait);
            prop_assert_eq!(Pods::counts(&pods.new).replicas, goal.replicas);
            prop_assert!(pods.old.iter().all(Vec::is_empty), "old pods are left: {:?}", pods);
        }

        #[test]
        fn a_rollout_is_never_stuck_on_old_pods_that_are_not_available((goal, mut pods) in rollout()) {
            for set in &mut pods.old {
                set.fill(false);
            }
            for _ in 0..200 {
                let step = pods.next(&goal);
                pods.apply(&step);
                pods.new.fill(true);
            }
            prop_assert!(pods.old.iter().all(Vec::is_empty), "old pods are left: {:?}", pods);
        }
    }
}
