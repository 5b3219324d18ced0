//! What the autoscaler remembers of one object: what it would have liked lately, and what it did.

use jiff::{SignedDuration, Timestamp};

/// A number of replicas and when it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamped {
    replicas: i32,
    at: Timestamp,
}

/// Recommendations before anything was held back, and changes that were made. It lives as long as the controller: after
/// a restart it starts with the replicas that are there, as in kube-controller-manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    recommendations: Vec<Stamped>,
    added: Vec<Stamped>,
    removed: Vec<Stamped>,
}

impl History {
    /// Begins with the replicas that are there, where nothing is known yet (`recordInitialRecommendation`).
    pub(super) fn begin(&mut self, replicas: i32, now: Timestamp) {
        if self.recommendations.is_empty() {
            self.recommendations.push(Stamped { replicas, at: now });
        }
    }

    /// Remembers what would be best now, in the place of something older than `longest`.
    pub(super) fn recommend(&mut self, replicas: i32, longest: SignedDuration, now: Timestamp) {
        put(&mut self.recommendations, Stamped { replicas, at: now }, longest);
    }

    /// The recommendations that are at most, or less than, so old.
    pub(super) fn recommended(&self, age: Age, now: Timestamp) -> impl Iterator<Item = i32> {
        self.recommendations
            .iter()
            .filter(move |one| age.holds(now.duration_since(one.at)))
            .map(|one| one.replicas)
    }

    /// Remembers a change, in the place of one in the same direction that is older than `longest`.
    pub(super) fn changed(&mut self, from: i32, to: i32, longest: SignedDuration, now: Timestamp) {
        let changes = if to > from { &mut self.added } else { &mut self.removed };
        let by = to.saturating_sub(from).saturating_abs();
        put(changes, Stamped { replicas: by, at: now }, longest);
    }

    /// How many replicas there were so long ago, of `current` (`getReplicasChangePerPeriod`).
    pub(super) fn replicas_before(&self, period: SignedDuration, current: i32, now: Timestamp) -> i32 {
        let within = |changes: &[Stamped]| {
            let recent = changes.iter().filter(|one| now.duration_since(one.at) < period);
            recent.fold(0_i32, |sum, one| sum.saturating_add(one.replicas))
        };
        current.saturating_sub(within(&self.added)).saturating_add(within(&self.removed))
    }
}

/// Puts something new in the place of the last that is older than `longest`, or behind all.
fn put(all: &mut Vec<Stamped>, new: Stamped, longest: SignedDuration) {
    match all.iter_mut().rev().find(|one| new.at.duration_since(one.at) > longest) {
        Some(old) => *old = new,
        None => all.push(new),
    }
}

/// How old a recommendation may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Age {
    AtMost(SignedDuration),
    Below(SignedDuration),
}

impl Age {
    fn holds(self, age: SignedDuration) -> bool {
        match self {
            Self::AtMost(most) => age <= most,
            Self::Below(bound) => age < bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).expect("a time")
    }

    const MINUTE: SignedDuration = SignedDuration::from_secs(60);

    #[test]
    fn the_first_recommendation_is_what_is_there() {
        let mut history = History::default();
        history.begin(3, at(0));
        history.begin(7, at(1));
        assert_eq!(history.recommended(Age::AtMost(MINUTE), at(2)).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_recommendation_counts_until_its_time_is_over() {
        let mut history = History::default();
        history.begin(3, at(0));
        assert_eq!(history.recommended(Age::AtMost(MINUTE), at(60)).count(), 1);
        assert_eq!(history.recommended(Age::Below(MINUTE), at(60)).count(), 0);
        history.recommend(1, MINUTE, at(61));
        assert_eq!(history.recommended(Age::AtMost(MINUTE), at(61)).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn what_was_added_and_removed_lately_is_told_from_what_is_there() {
        let mut history = History::default();
        history.changed(2, 6, MINUTE, at(0));
        history.changed(6, 5, MINUTE, at(30));
        assert_eq!(history.replicas_before(MINUTE, 5, at(59)), 2);
        assert_eq!(history.replicas_before(MINUTE, 5, at(60)), 6);
        assert_eq!(history.replicas_before(MINUTE, 5, at(90)), 5);
        // What is old makes room for what is new.
        history.changed(5, 7, MINUTE, at(100));
        assert_eq!((history.added.len(), history.removed.len()), (1, 1));
    }
}
