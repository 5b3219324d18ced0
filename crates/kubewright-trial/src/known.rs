//! What is known of an operator: what it comes to when nothing goes wrong.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    plan::{Act, Wish},
    state::{State, Volatile, differences},
    story::{ObjectId, Request, Rest, Story},
};

/// What runs in which nothing went wrong have shown.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The samples.
    pub samples: Vec<ObjectId>,
    /// What the operator comes to, by what is asked of it.
    pub expected: BTreeMap<Wish, State>,
    /// What differs by itself.
    pub volatile: Volatile,
    /// Wishes that the operator does not fulfil: what it comes to may depend on what it fulfilled before.
    pub unfulfilled: BTreeSet<Wish>,
    /// What the operator makes for itself, without a sample.
    pub own: BTreeSet<ObjectId>,
}

impl Known {
    /// Nothing is known yet.
    #[must_use]
    pub fn of(samples: Vec<ObjectId>) -> Self {
        Self { samples, ..Self::default() }
    }

    /// Learns from a run in which nothing went wrong.
    pub fn learn(&mut self, story: &Story) {
        for (step, passed) in story.plan.steps.iter().zip(&story.steps) {
            if passed.rest != Rest::Quiet || passed.refused.is_some() {
                continue;
            }
            if step.act == Act::Wait {
                self.own.extend(passed.state.keys().filter(|id| !self.samples.contains(id)).cloned());
                continue;
            }
            let is_refused = |request: &Request| request.writes() && matches!(request.code, Some(400 | 422));
            let is_fulfilled = self.is_as_ready(&passed.state) && !story.requests_in(passed).any(is_refused);
            if matches!(step.wish, Wish::Changed(_)) && !is_fulfilled {
                self.unfulfilled.insert(step.wish.clone());
                continue;
            }
            match self.expected.get(&step.wish) {
                Some(known) => self.volatile.learn(known, &passed.state),
                None => drop(self.expected.insert(step.wish.clone(), passed.state.clone())),
            }
        }
    }

    /// Whether it was seen what a wish comes to.
    #[must_use]
    pub fn knows(&self, wish: &Wish) -> bool {
        self.expected.contains_key(wish) || self.unfulfilled.contains(wish)
    }

    /// Whether each sample that says that it is ready as its file has it says so in a state.
    fn is_as_ready(&self, state: &State) -> bool {
        let Some(plain) = self.expected.get(&Wish::Samples) else { return true };
        let is_ready =
            |state: &State, id: &ObjectId| state.get(id).is_some_and(|object| is_ready(&object["status"]));
        self.samples.iter().all(|id| !is_ready(plain, id) || is_ready(state, id))
    }

    /// Whether a state is what is expected of a wish; so, too, where nothing is.
    #[must_use]
    pub fn is_reached(&self, wish: &Wish, state: &State) -> bool {
        self.expected.get(wish).is_none_or(|expected| differences(expected, state, &self.volatile).is_empty())
    }
}

/// Whether a status says that all is done: by a condition, or by a field of its own.
pub(crate) fn is_ready(status: &Value) -> bool {
    let is_true = |condition: &Value| {
        matches!(condition["type"].as_str(), Some("Ready" | "Available")) && condition["status"] == "True"
    };
    status["ready"] == true || status["conditions"].as_array().is_some_and(|all| all.iter().any(is_true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        plan::{Plan, Step},
        planner,
        story::Passed,
        wish::Change,
    };

    fn story(plan: Plan, ready: &[bool]) -> Story {
        let passed = ready.iter().map(|ready| Passed {
            from: std::time::Duration::ZERO,
            until: std::time::Duration::ZERO,
            rest: Rest::Quiet,
            state: State::from([(ObjectId::new("g/pages", "a"), json!({"status": {"ready": ready}}))]),
            refused: None,
        });
        let steps = passed.collect();
        Story { plan, steps, writes: Vec::new(), requests: Vec::new(), lives: Vec::new(), recording: None }
    }

    #[test]
    fn what_a_wish_comes_to_that_is_not_fulfilled_is_not_expected_of_others() {
        let mut known = Known::of(vec![ObjectId::new("g/pages", "a")]);
        known.learn(&story(Plan::new("plain", [Step::create()]), &[true]));
        let change = |value: &str| Change {
            sample: 0,
            field: "/spec/size".to_owned(),
            value: Some(value.to_owned()),
            is_hostile: false,
        };
        known.learn(&story(planner::fresh(&change("2")), &[true]));
        known.learn(&story(planner::fresh(&change("nonsense")), &[false]));
        let wish = |value: &str| Wish::Changed(change(value));
        assert!(known.expected.contains_key(&wish("2")) && !known.expected.contains_key(&wish("nonsense")));
        assert!(known.knows(&wish("2")) && known.knows(&wish("nonsense")) && !known.knows(&wish("3")));
    }
}
