//! What was spoken of: how often what was asked, of which kinds, and how it was answered.

use std::collections::BTreeMap;

use crate::conversation::Conversation;
use crate::hold::Got;
use crate::shrink::Outcome;
use crate::times::Times;

/// Counts of conversations, requests, kinds and statuses.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    pub(crate) held: usize,
    pub(crate) differing: usize,
    /// The seeds of those that differed, but not each time.
    pub(crate) unstable: Vec<u64>,
    requests: BTreeMap<String, usize>,
    kinds: BTreeMap<String, usize>,
    statuses: BTreeMap<u16, usize>,
    pub(crate) times: Times,
}

impl Coverage {
    /// Takes in a conversation.
    pub(crate) fn count(&mut self, conversation: &Conversation, outcome: &Outcome) {
        self.held += 1;
        self.differing += usize::from(!outcome.differences.is_empty());
        if outcome.differences.is_empty() && !outcome.unstable.is_empty() {
            self.unstable.push(conversation.seed);
        }
        let answers = outcome.reference.iter().zip(&outcome.ours);
        for (ask, (reference, ours)) in conversation.asks.iter().zip(answers) {
            self.request(&ask.what, &ask.place.resource.kind, reference, ours);
        }
    }

    /// Takes in a request.
    pub(crate) fn request(&mut self, what: &str, kind: &str, reference: &Got, ours: &Got) {
        *self.requests.entry(what.to_owned()).or_default() += 1;
        *self.kinds.entry(kind.to_owned()).or_default() += 1;
        *self.statuses.entry(reference.status).or_default() += 1;
        self.times.add(what, reference.took, ours.took);
    }

    /// How many requests were answered.
    pub(crate) fn requests(&self) -> usize {
        self.statuses.values().sum()
    }

    pub(crate) fn print(&self) {
        let line = |of: &mut dyn Iterator<Item = String>| of.collect::<Vec<_>>().join(", ");
        println!(
            "requests: {}",
            line(&mut self.requests.iter().map(|(name, times)| format!("{name} {times}")))
        );
        println!("kinds: {}", line(&mut self.kinds.iter().map(|(name, times)| format!("{name} {times}"))));
        println!(
            "answers: {}",
            line(&mut self.statuses.iter().map(|(status, times)| format!("{status} {times}")))
        );
    }
}
