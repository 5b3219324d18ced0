//! What is known of an operator: what it comes to when nothing goes wrong.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    plan::{Act, Wish},
    state::{State, Volatile, differences},
    story::{ObjectId, Rest, Story},
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
            match self.expected.get(&step.wish) {
                Some(known) => self.volatile.learn(known, &passed.state),
                None => drop(self.expected.insert(step.wish.clone(), passed.state.clone())),
            }
        }
    }

    /// Whether a state is what is expected of a wish; so, too, where nothing is.
    #[must_use]
    pub fn is_reached(&self, wish: &Wish, state: &State) -> bool {
        self.expected.get(wish).is_none_or(|expected| differences(expected, state, &self.volatile).is_empty())
    }
}
