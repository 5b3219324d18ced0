//! The shortest conversation that still differs in a way.

use anyhow::Result;

use crate::compare::{Tokens, compare};
use crate::conversation::Conversation;
use crate::fold::sort_of;
use crate::hold::{Got, hold};
use crate::side::Side;

/// Both servers.
pub(crate) struct Pair {
    pub(crate) reference: Side,
    pub(crate) ours: Side,
}

/// What a conversation got, and what differs: the request's number and the differences.
pub(crate) struct Outcome {
    pub(crate) reference: Vec<Got>,
    pub(crate) ours: Vec<Got>,
    pub(crate) differences: Vec<(usize, Vec<crate::compare::Difference>)>,
}

impl Pair {
    /// Holds a conversation with both at once.
    ///
    /// # Errors
    /// Where one of them does not answer.
    pub(crate) async fn hold(&self, conversation: &Conversation, run: &str) -> Result<Outcome> {
        let (reference, ours) =
            tokio::join!(hold(&self.reference, conversation, run), hold(&self.ours, conversation, run));
        let (reference, ours) = (
            reference.map_err(|error| error.context("the reference"))?,
            ours.map_err(|error| error.context("ours"))?,
        );
        let (mut theirs, mut own) = (Tokens::default(), Tokens::default());
        let mut differences = Vec::new();
        for (at, (left, right)) in reference.iter().zip(&ours).enumerate() {
            let found = compare(left, right, &mut theirs, &mut own, conversation.asks[at].stream);
            if !found.is_empty() {
                differences.push((at, found));
            }
        }
        Ok(Outcome { reference, ours, differences })
    }

    /// The conversation without what the difference does not need. At most 60 tries.
    pub(crate) async fn shrink(
        &self,
        conversation: &Conversation,
        at: usize,
        sort: &str,
        run: &str,
    ) -> Conversation {
        let mut shortest = conversation.clone();
        shortest.asks.truncate(at + 1);
        let mut tries = 0;
        let mut size = (shortest.asks.len() / 2).max(1);
        while size >= 1 && tries < 60 {
            let mut from = 0;
            while from + size < shortest.asks.len() && tries < 60 {
                let mut candidate = shortest.clone();
                candidate.asks.drain(from..from + size);
                tries += 1;
                if self.still(&candidate, sort, &format!("{run}s{tries}")).await {
                    shortest = candidate;
                } else {
                    from += size;
                }
            }
            if size == 1 {
                break;
            }
            size /= 2;
        }
        shortest
    }

    async fn still(&self, candidate: &Conversation, sort: &str, run: &str) -> bool {
        let Ok(outcome) = self.hold(candidate, run).await else { return false };
        outcome.differences.iter().any(|(at, found)| {
            found.iter().any(|difference| sort_of(&candidate.asks[*at], difference) == sort)
        })
    }
}
