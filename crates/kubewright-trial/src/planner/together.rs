//! Changes of several fields at once, and back: which ones a seed decides.

use std::collections::BTreeSet;

use super::{Group, single};
use crate::{
    change::Change,
    plan::{Act, Desired, Plan, Step},
};

/// How many seeds there are.
const SEEDS: u64 = 4;
/// How often a change is looked for that fits to those that were chosen.
const TRIES: usize = 16;

/// For each seed two or three fields that are changed together, then all but the first back, then that one too. The same seed is the same
/// plan for the same samples and schema.
pub(super) fn plans(changes: &[Change]) -> Vec<Group> {
    let wanted: Vec<&Change> = changes.iter().filter(|change| !change.is_hostile).collect();
    let mut seen = BTreeSet::new();
    let chosen = (0..SEEDS).filter_map(|seed| Some((seed, chosen(&wanted, seed)?)));
    chosen
        .filter(|(_, chosen)| seen.insert(chosen.iter().copied().collect::<BTreeSet<_>>()))
        .map(|(seed, chosen)| single(plan(seed, &chosen)))
        .collect()
}

fn plan(seed: u64, chosen: &[&Change]) -> Plan {
    let change = |change: Change| Step::new(Act::Change(Some(change.clone())), Desired::Changed(change));
    Plan::new(
        format!("together/{seed}"),
        [
            Step::create(),
            change(Change::together(chosen.iter().copied())),
            change(chosen[0].clone()),
            Step::new(Act::Change(None), Desired::Samples),
            Step::delete(),
        ],
    )
}

/// Two changes of different fields for an even seed, and three, where there are so many, for an odd one.
fn chosen<'a>(changes: &[&'a Change], seed: u64) -> Option<Vec<&'a Change>> {
    let mut numbers = Numbers(seed);
    let mut chosen: Vec<&Change> = Vec::new();
    let most = if seed.is_multiple_of(2) { 2 } else { 3 };
    for _ in 0..TRIES {
        let Some(change) = numbers.below(changes.len()).and_then(|place| changes.get(place)) else { break };
        if chosen.len() < most && chosen.iter().all(|one| !one.overlaps(change)) {
            chosen.push(change);
        }
    }
    (chosen.len() > 1).then_some(chosen)
}

/// Numbers that a seed decides (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound; none below 0.
    fn below(&mut self, bound: usize) -> Option<usize> {
        let number = self.next().checked_rem(u64::try_from(bound).ok()?)?;
        usize::try_from(number).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(fields: &[&str]) -> Vec<Change> {
        fields.iter().map(|field| Change::one(0, *field, Some("2".to_owned()), false)).collect()
    }

    #[test]
    fn a_seed_decides_which_fields_are_changed_together() {
        let all = changes(&["/spec/a", "/spec/b", "/spec/c", "/spec/d"]);
        let (one, other) = (plans(&all), plans(&all));
        assert_eq!(one, other);
        for group in &one {
            let [plan] = &group[..] else { panic!("{group:?}") };
            let Act::Change(Some(change)) = &plan.steps[1].act else { panic!("{plan:?}") };
            assert!((2..=3).contains(&change.settings.len()), "{change}");
            assert_eq!(plan.steps[3].desired, Desired::Samples);
        }
        assert!(one.len() > 1);
    }

    #[test]
    fn fields_that_overlap_are_not_changed_together() {
        assert_eq!(
            plans(&changes(&["/spec/a", "/spec/a/b", "/spec/a/c/d"]))
                .concat()
                .into_iter()
                .filter(|plan| plan.steps[1].act.to_string().contains("spec.a=2"))
                .count(),
            0
        );
        assert_eq!(plans(&changes(&["/spec/a"])), Vec::<Group>::new());
        assert_eq!(plans(&[]), Vec::<Group>::new());
    }
}
