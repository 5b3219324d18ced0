//! From a seed to what goes wrong.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use kubewright_cluster::admin::{ApiFault, Match, NoAnswer, Rule, Schedule, Verb, WatchEnd};
use kubewright_world::Dice;

use super::{FaultKind, OPERATORS};

/// The longest window in which things go wrong.
const WINDOW: usize = 60;
/// How many waves of one seed have dice of their own.
const WAVES: u64 = 1 << 20;

/// One thing that goes wrong.
#[expect(clippy::large_enum_variant, reason = "a plan has a handful of them, most of which are rules")]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Requests or watches fail, as a rule says.
    Rule(Rule),
    /// The API server is away.
    Restart,
    /// The operators are killed after so many more writes, when they are about to write again, and started anew after as
    /// long as the episode lasts.
    Crash {
        /// How many writes come before.
        after: u64,
    },
    /// The operators' clocks are so much ahead, to the second; behind, if that is negative.
    ClockSkew(SignedDuration),
    /// The webhooks that are mounted are not reached.
    WebhookDown,
    /// A pod is evicted: which one is chosen by this number.
    Evict(usize),
    /// A node is deleted, and made again after the episode: which one is chosen by this number.
    NodeGone(usize),
}

/// Something that goes wrong for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// What it counts as.
    pub kind: FaultKind,
    /// When it begins, after the plan does.
    pub from: Duration,
    /// For how long.
    pub lasting: Duration,
    /// What it is.
    pub fault: Fault,
}

/// Fault plan: all that goes wrong in one window of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What happens, by kind.
    pub episodes: Vec<Episode>,
}

impl Plan {
    /// What a seed says, of these kinds. A test in which time passes has several waves, each with a plan of its own.
    #[must_use]
    pub fn of(seed: u64, wave: u64, kinds: &BTreeSet<FaultKind>) -> Self {
        let mixed = |salt: u64| Dice::from_seed(seed.wrapping_mul(WAVES).wrapping_add(wave) ^ (salt << 48));
        // How much there is of everything: some seeds are mild, some are wild.
        let share = 0.05 + 0.5 * Dice::from_seed(seed).fraction();
        let chosen = mixed(0xffff);
        let window = seconds(&chosen, 5, WINDOW);
        let mut episodes = Vec::new();
        for (number, kind) in (0..).zip(FaultKind::ALL) {
            // Rolled for all of them, so that one that is left out changes nothing for the rest.
            let (picked, dice) = (chosen.fraction() < share, mixed(number));
            if picked && kinds.contains(&kind) {
                episodes.extend(episodes_of(kind, &dice, window));
            }
        }
        Self { episodes }
    }

    /// The kinds of which there is something.
    #[must_use]
    pub fn kinds(&self) -> BTreeSet<FaultKind> {
        self.episodes.iter().map(|episode| episode.kind).collect()
    }

    /// When all of it is over.
    #[must_use]
    pub fn end(&self) -> Duration {
        self.episodes.iter().map(|episode| episode.from + episode.lasting).max().unwrap_or_default()
    }
}

fn episodes_of(kind: FaultKind, dice: &Dice, window: Duration) -> Vec<Episode> {
    let number = match kind {
        FaultKind::Conflict
        | FaultKind::Throttle
        | FaultKind::Error
        | FaultKind::Latency
        | FaultKind::Duplicate
        | FaultKind::ClockSkew => 1,
        _ => 1 + dice.below(3),
    };
    let mut episodes = Vec::new();
    for _ in 0..number {
        // Most of what an operator does is done soon after something has happened.
        let from = match dice.below(2) {
            0 => Duration::ZERO,
            _ => window.mul_f64(0.9 * dice.fraction() * dice.fraction()),
        };
        let most = window.saturating_sub(from);
        let fault = fault(kind, dice);
        let lasting = match kind {
            FaultKind::Crash | FaultKind::Restart => most.min(seconds(dice, 1, 15)),
            _ => most.mul_f64(0.2 + 0.8 * dice.fraction()),
        };
        episodes.push(Episode { kind, from, lasting, fault });
    }
    episodes
}

fn fault(kind: FaultKind, dice: &Dice) -> Fault {
    let by_chance = |least: f64, most: f64| {
        let probability = least + (most - least) * dice.fraction();
        Schedule::by_chance(probability, dice.below(usize::MAX) as u64)
    };
    let rule = |fault, schedule| Fault::Rule(rule(fault).at(schedule));
    match kind {
        FaultKind::Conflict => rule(ApiFault::Conflict {}, by_chance(0.05, 0.7)),
        FaultKind::Throttle => {
            let retry_after = 1 + u32::try_from(dice.below(5)).unwrap_or(0);
            rule(ApiFault::TooManyRequests { retry_after }, by_chance(0.05, 0.5))
        }
        FaultKind::Error => {
            let code = if dice.below(2) == 0 { 500 } else { 503 };
            rule(ApiFault::Error { code, reason: None, message: None }, by_chance(0.05, 0.7))
        }
        FaultKind::Timeout => {
            let done = dice.below(2) == 0;
            let answer = if dice.below(2) == 0 { NoAnswer::Cut } else { NoAnswer::GatewayTimeout };
            let Fault::Rule(rule) = rule(ApiFault::Timeout { done, answer }, by_chance(0.1, 0.7)) else {
                unreachable!("it was made here")
            };
            // What was read is read again: what matters is what was written.
            Fault::Rule(Rule { matching: rule.matching.clone().verbs(WRITES), ..rule })
        }
        FaultKind::Latency => {
            let by = Duration::from_millis(1 << dice.below(12));
            rule(ApiFault::Latency { by }, by_chance(0.2, 1.0))
        }
        FaultKind::DropWatch => {
            let how = if dice.below(2) == 0 { WatchEnd::Cleanly } else { WatchEnd::Reset };
            rule(ApiFault::DropWatch { how }, by_chance(0.1, 0.6))
        }
        FaultKind::StaleWatch => {
            let lasting = Some(seconds(dice, 1, 20));
            match dice.below(2) {
                0 => Fault::Rule(self::rule(ApiFault::HoldWatch { lasting })),
                _ => rule(ApiFault::HoldWatch { lasting }, by_chance(0.1, 0.6)),
            }
        }
        FaultKind::ExpireWatch => Fault::Rule(self::rule(ApiFault::ExpireWatch {})),
        FaultKind::Duplicate => rule(ApiFault::RepeatWatch {}, by_chance(0.2, 1.0)),
        FaultKind::Restart => Fault::Restart,
        FaultKind::Crash => Fault::Crash { after: dice.below(6) as u64 },
        FaultKind::LostLeader => {
            let leases = Match { group: Some("coordination.k8s.io".to_owned()), ..operators() };
            let fault = ApiFault::Timeout { done: false, answer: NoAnswer::Cut };
            Fault::Rule(Rule::new(fault).on(leases).at(Schedule::always()))
        }
        FaultKind::ClockSkew => {
            let most = 300;
            let by = i64::try_from(dice.below(2 * most + 1)).unwrap_or(0) - most as i64;
            Fault::ClockSkew(SignedDuration::from_secs(by))
        }
        FaultKind::WebhookDown => Fault::WebhookDown,
        FaultKind::Evict => Fault::Evict(dice.below(1 << 16)),
        FaultKind::NodeGone => Fault::NodeGone(dice.below(1 << 16)),
    }
}

/// Verbs of writes.
pub(crate) const WRITES: [Verb; 5] =
    [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];

/// Requests of the operators.
pub(crate) fn operators() -> Match {
    Match { user: Some(OPERATORS.to_owned()), ..Match::default() }
}

fn rule(fault: ApiFault) -> Rule {
    Rule::new(fault).on(operators())
}

/// From `least` to `most` seconds, to the millisecond.
fn seconds(dice: &Dice, least: usize, most: usize) -> Duration {
    Duration::from_millis((1000 * least + dice.below(1000 * (most - least) + 1)) as u64)
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Episode { kind, from, lasting, fault } in &self.episodes {
            let from = from.as_secs_f64();
            writeln!(f, "  {kind} at {from:.3} s for {:.3} s: {fault}", lasting.as_secs_f64())?;
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(Rule { fault, schedule: Some(schedule), .. }) if schedule.probability < 1.0 => {
                write!(f, "{fault:?} for {:.0} % of them", schedule.probability * 100.0)
            }
            Self::Rule(rule) => write!(f, "{:?}", rule.fault),
            Self::Restart => f.write_str("the API server is away"),
            Self::Crash { after } => write!(f, "killed before a write, after {after} others"),
            Self::ClockSkew(by) => write!(f, "clocks are {by:#} ahead"),
            Self::WebhookDown => f.write_str("webhooks are not reached"),
            Self::Evict(_) => f.write_str("a pod is evicted"),
            Self::NodeGone(_) => f.write_str("a node goes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all() -> BTreeSet<FaultKind> {
        FaultKind::ALL.into()
    }

    #[test]
    fn seeds_differ_in_their_kinds_and_each_kind_comes_up_alone_and_with_others() {
        let plans: Vec<BTreeSet<FaultKind>> =
            (0..1000).map(|seed| Plan::of(seed, 0, &all()).kinds()).collect();
        for kind in FaultKind::ALL {
            let with = plans.iter().filter(|kinds| kinds.contains(&kind)).count();
            assert!((100..600).contains(&with), "{kind}: {with}");
            assert!(plans.iter().any(|kinds| kinds.len() <= 3 && kinds.contains(&kind)), "{kind}");
        }
        assert!(plans.iter().any(BTreeSet::is_empty) && plans.iter().any(|kinds| kinds.len() > 10));
    }

    #[test]
    fn waves_of_one_seed_differ() {
        assert_ne!(Plan::of(7, 0, &all()), Plan::of(7, 1, &all()));
    }

    #[test]
    fn a_name_is_read_as_it_is_written() {
        for kind in FaultKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!("conflit".parse::<FaultKind>().expect_err("none").contains("there are conflict, throttle"));
    }

    proptest! {
        #[test]
        fn the_same_seed_makes_the_same_plan_and_what_is_left_out_changes_nothing_else(seed: u64, wave in 0..9_u64) {
            let plan = Plan::of(seed, wave, &all());
            prop_assert_eq!(&plan, &Plan::of(seed, wave, &all()));
            prop_assert!(plan.end() <= Duration::from_secs(WINDOW as u64));
            for kind in plan.kinds() {
                let mut others = all();
                others.remove(&kind);
                let rest = plan.episodes.iter().filter(|episode| episode.kind != kind).cloned().collect();
                prop_assert_eq!(Plan::of(seed, wave, &others), Plan { episodes: rest });
            }
        }
    }
}
