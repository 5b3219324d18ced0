//! Which of the matching requests a rule strikes: a pure function of how many there were, and of dice.

use std::num::NonZeroU64;

use kubewright_world::Dice;

/// Schedule of a rule: when it strikes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// How often in all; without end when it is not given.
    pub times: Option<NonZeroU64>,
    /// How many it lets pass at first.
    pub after: u64,
    /// It strikes each so-manieth of those that follow.
    pub every: NonZeroU64,
    /// How likely it strikes then: 0 is never, 1 is always.
    pub probability: f64,
    /// Where its dice start; chosen by the cluster's when it is not given.
    pub seed: Option<u64>,
}

impl Default for Schedule {
    /// The next one, and none after it.
    fn default() -> Self {
        Self { times: Some(NonZeroU64::MIN), after: 0, every: NonZeroU64::MIN, probability: 1.0, seed: None }
    }
}

impl Schedule {
    /// The next so many.
    #[must_use]
    pub fn times(times: NonZeroU64) -> Self {
        Self { times: Some(times), ..Self::default() }
    }

    /// All from now on.
    #[must_use]
    pub fn always() -> Self {
        Self { times: None, ..Self::default() }
    }

    /// Each with this probability, as dice from `seed` decide.
    #[must_use]
    pub fn by_chance(probability: f64, seed: u64) -> Self {
        Self { probability, seed: Some(seed), ..Self::always() }
    }

    /// Whether it strikes what comes now, which is counted.
    pub(super) fn strikes(&self, tally: &mut Tally, dice: &Dice) -> bool {
        tally.seen += 1;
        let strikes = tally.seen > self.after
            && !self.is_spent(tally)
            && (tally.seen - self.after).is_multiple_of(self.every.get())
            && (self.probability >= 1.0 || dice.fraction() < self.probability);
        tally.hits += u64::from(strikes);
        strikes
    }

    /// Whether it will never strike again.
    pub(super) fn is_spent(&self, tally: &Tally) -> bool {
        self.times.is_some_and(|times| tally.hits >= times.get())
    }
}

/// What a rule has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// How many came by.
    pub(super) seen: u64,
    /// How many of them it struck.
    pub(super) hits: u64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(number: u64) -> NonZeroU64 {
        NonZeroU64::new(number).expect("not zero")
    }

    /// Which of the first ten are struck.
    fn struck(schedule: Schedule) -> Vec<u64> {
        let (mut tally, dice) = (Tally::default(), Dice::from_seed(0));
        (1..=10).filter(|_| schedule.strikes(&mut tally, &dice)).collect()
    }

    #[test]
    fn by_default_the_next_one_is_struck_and_no_other() {
        assert_eq!(struck(Schedule::default()), [1]);
    }

    #[test]
    fn some_pass_then_each_so_manieth_is_struck_so_often() {
        assert_eq!(struck(Schedule::times(number(2))), [1, 2]);
        assert_eq!(struck(Schedule { after: 3, ..Schedule::times(number(2)) }), [4, 5]);
        assert_eq!(struck(Schedule { every: number(3), ..Schedule::always() }), [3, 6, 9]);
        assert_eq!(struck(Schedule { after: 1, every: number(4), ..Schedule::default() }), [5]);
        assert_eq!(struck(Schedule { probability: 0.0, ..Schedule::always() }), Vec::<u64>::new());
    }

    #[test]
    fn the_same_seed_strikes_the_same_ones() {
        let struck = |seed| -> Vec<bool> {
            let (mut tally, dice) = (Tally::default(), Dice::from_seed(seed));
            let schedule = Schedule::by_chance(0.3, seed);
            (0..1000).map(|_| schedule.strikes(&mut tally, &dice)).collect()
        };
        assert_eq!(struck(7), struck(7));
        assert_ne!(struck(7), struck(8));
        let hits = struck(7).into_iter().filter(|hit| *hit).count();
        assert!((200..400).contains(&hits), "{hits}");
    }

    proptest! {
        #[test]
        fn a_schedule_keeps_its_promises(
            times in proptest::option::of(1..20_u64),
            after in 0..30_u64,
            every in 1..10_u64,
            probability in 0.0..=1.0_f64,
            seed: u64,
        ) {
            let times = times.map(number);
            let schedule = Schedule { times, after, every: number(every), probability, seed: None };
            let (mut tally, dice) = (Tally::default(), Dice::from_seed(seed));
            let mut hits = 0;
            for at in 1..=200_u64 {
                let spent = schedule.is_spent(&tally);
                let strikes = schedule.strikes(&mut tally, &dice);
                prop_assert!(!(strikes && spent));
                prop_assert!(!strikes || at > after && (at - after) % every == 0);
                hits += u64::from(strikes);
            }
            prop_assert_eq!(tally, Tally { seen: 200, hits });
            prop_assert!(times.is_none_or(|times| hits <= times.get()));
            if probability >= 1.0 {
                let due = (200 - after) / every;
                prop_assert_eq!(hits, times.map_or(due, |times| due.min(times.get())));
            }
        }
    }
}
