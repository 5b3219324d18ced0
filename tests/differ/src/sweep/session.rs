//! Sessions: requests about one object, some of all, that are sent one after the other.

use std::collections::BTreeSet;

use super::print::Causes;
use super::requests::Try;
use crate::compare::Difference;
use crate::conversation::{Ask, Conversation};
use crate::fold::text_of;
use crate::shrink::Outcome;

/// Requests that are sent one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// Stores the object, where there has to be one, and reads it.
    pub(crate) before: Vec<Ask>,
    pub(crate) tries: Vec<Try>,
}

impl Session {
    pub(crate) fn conversation(&self) -> Conversation {
        let asks = self.before.iter().chain(self.tries.iter().map(|one| &one.ask)).cloned().collect();
        Conversation { seed: 0, asks }
    }

    /// The same as two, where there is more than one request. What one request does to a server is no loss for the others then.
    pub(crate) fn halves(&self) -> Vec<Self> {
        if self.tries.len() < 2 {
            return Vec::new();
        }
        let (first, second) = self.tries.split_at(self.tries.len() / 2);
        [first, second].map(|tries| Self { before: self.before.clone(), tries: tries.to_vec() }).into()
    }

    fn tried(&self, at: usize) -> Option<&Try> {
        self.tries.get(at.checked_sub(self.before.len())?)
    }

    /// Takes down how it was answered.
    pub(crate) fn note(&self, conversation: &Conversation, outcome: &Outcome, causes: &mut Causes) {
        // Where the stored object differs by itself, it does so in each later answer, too.
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for (at, differences) in &outcome.differences {
            let ask = &conversation.asks[*at];
            let one = self.tried(*at);
            let (spot, change) =
                one.map_or_else(Default::default, |one| (one.trial.spot(), one.trial.change()));
            let request = format!("{change}\n  {}", text_of(&outcome.reference[*at].sent));
            // A message says again what its causes say.
            let has_causes = differences.iter().any(|found| found.path.starts_with("body.details.causes"));
            let is_new = |found: &&Difference| {
                !(known.contains(found.path.as_str()) || has_causes && found.path == "body.message")
            };
            for found in differences.iter().filter(is_new).take(3) {
                causes.add(&ask.place.resource.kind, &spot, &request, found);
            }
            if one.is_none() {
                if differences.iter().any(|found| found.path == "status") {
                    // What follows is about an object that only one of them has.
                    return;
                }
                known.extend(differences.iter().map(|found| found.path.as_str()));
            }
        }
    }
}
