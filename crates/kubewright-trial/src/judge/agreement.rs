//! Whether runs in which nothing goes wrong come to the same.

use std::collections::{BTreeMap, BTreeSet};

use super::{clock::is_by_the_clock, states::subject, timeline::timeline};
use crate::{
    finding::{Check, Finding},
    state::Difference,
    story::{ObjectId, Rest, Story},
};

/// Runs of one plan that end with different numbers of objects of a kind. Where nothing goes wrong it is chance that decides, mostly
/// how old the cache of the program is. Names are not compared: a program may make them up.
///
/// Gives each finding with the number of the run that its timeline is of, and how many runs end as that one.
#[must_use]
pub fn disagreements(stories: &[&Story]) -> Vec<(Finding, usize, usize)> {
    let steps = stories.iter().map(|story| story.steps.len()).min().unwrap_or_default();
    let mut told: BTreeSet<String> = BTreeSet::new();
    let mut found = Vec::new();
    for step in 0..steps {
        let quiet: Vec<usize> =
            (0..stories.len()).filter(|run| stories[*run].steps[step].rest == Rest::Quiet).collect();
        let counts: Vec<BTreeMap<&str, usize>> =
            quiet.iter().map(|run| counts(stories[*run], step)).collect();
        let collections: BTreeSet<&str> = counts.iter().flat_map(|counts| counts.keys().copied()).collect();
        for collection in collections {
            let of_runs: Vec<usize> =
                counts.iter().map(|counts| counts.get(collection).copied().unwrap_or_default()).collect();
            let (Some(least), Some(most)) = (of_runs.iter().min(), of_runs.iter().max()) else { continue };
            if least == most || !told.insert(collection.to_owned()) {
                continue;
            }
            let place = of_runs.iter().position(|count| count == most).unwrap_or_default();
            let run = quiet[place];
            let seen = of_runs.iter().filter(|count| *count == most).count();
            let id = ObjectId::new(collection, "");
            let message = format!(
                "runs in which nothing goes wrong come to different ends: {least} {name} in one, {most} in another",
                name = id.resource()
            );
            let too_many =
                Difference { id, field: String::new(), expected: None, reached: Some(String::new()) };
            let finding = Finding {
                check: Check::State,
                subject: subject(&too_many),
                message,
                differences: Vec::new(),
                timeline: timeline(stories[run], &stories[run].steps[step]),
                steps: None,
            };
            found.push((finding, run, seen));
        }
    }
    found
}

/// How many objects there are of each collection after a step, but for those that were made as it was time.
fn counts(story: &Story, step: usize) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for id in story.steps[step].state.keys().filter(|id| !is_by_the_clock(id, story)) {
        *counts.entry(&*id.collection).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::{planner, state::State, story::Passed};

    fn story(keys: &[&str]) -> Story {
        let state: State = keys.iter().map(|key| (ObjectId::new("/configmaps", *key), json!({}))).collect();
        let passed =
            Passed { from: Duration::ZERO, until: Duration::ZERO, rest: Rest::Quiet, state, refused: None };
        let plan = planner::undisturbed(1);
        Story { plan, steps: vec![passed], writes: Vec::new(), requests: Vec::new(), lives: Vec::new() }
    }

    #[test]
    fn runs_that_end_with_different_numbers_of_objects_are_told_with_the_one_that_has_most() {
        let runs = [story(&["a/1"]), story(&["a/1", "a/2"]), story(&["a/1"])];
        let found = disagreements(&runs.each_ref());
        let [(finding, 1, 1)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.check, &*finding.subject), (Check::State, "configmaps  too many"));
        assert!(finding.message.ends_with("1 configmaps in one, 2 in another"), "{}", finding.message);
    }

    #[test]
    fn names_that_a_program_makes_up_are_no_difference() {
        let runs = [story(&["a/x"]), story(&["a/y"])];
        assert_eq!(disagreements(&runs.each_ref()), Vec::new());
    }
}
