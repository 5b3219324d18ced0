//! A conversation with both servers, and the shortest one that still differs in a way.

use anyhow::Result;

use crate::compare::{Difference, Tokens, compare};
use crate::conversation::Conversation;
use crate::fold::{place_of, sort_of};
use crate::hold::{Got, hold};
use crate::side::Side;

/// Both servers.
pub(crate) struct Pair {
    pub(crate) reference: Side,
    pub(crate) ours: Side,
}

/// What differs: the request's number and the differences.
pub(crate) type Differences = Vec<(usize, Vec<Difference>)>;

/// What a conversation got, and what differs.
pub(crate) struct Outcome {
    pub(crate) reference: Vec<Got>,
    pub(crate) ours: Vec<Got>,
    pub(crate) differences: Differences,
    /// What differed, but not each time that it was held.
    pub(crate) unstable: Differences,
}

/// How often a conversation that differs is held again. What is one of two by chance differs each time in one of 32.
const AGAIN: usize = 5;

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
        Ok(Outcome { reference, ours, differences, unstable: Vec::new() })
    }

    /// Holds a conversation; where it differs, some times more, and keeps what differs each time: what Go's maps or the
    /// moment decide does not.
    ///
    /// # Errors
    /// Where one of them does not answer.
    pub(crate) async fn judge(&self, conversation: &Conversation, run: &str) -> Result<Outcome> {
        let mut outcome = self.hold(conversation, run).await?;
        for time in 0..AGAIN {
            if outcome.differences.is_empty() {
                break;
            }
            let again = self.hold(conversation, &format!("{run}a{time}")).await?;
            let (kept, unstable) = each_time(outcome.differences, &again.differences);
            outcome.differences = kept;
            outcome.unstable.extend(unstable);
        }
        Ok(outcome)
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

/// Those that differ in the same place of the same answer again, and the others.
fn each_time(differences: Differences, again: &Differences) -> (Differences, Differences) {
    let is_again = |at: usize, difference: &Difference| {
        let found = again.iter().filter(|(number, _)| *number == at).flat_map(|(_, found)| found);
        found.into_iter().any(|other| place_of(other) == place_of(difference))
    };
    let (mut kept, mut others) = (Vec::new(), Vec::new());
    for (at, found) in differences {
        let (same, gone): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|difference| is_again(at, difference));
        for (to, part) in [(&mut kept, same), (&mut others, gone)] {
            if !part.is_empty() {
                to.push((at, part));
            }
        }
    }
    (kept, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_differ_again_in_its_place_is_unstable() {
        let at =
            |path: &str| Difference { path: path.to_owned(), reference: String::new(), ours: String::new() };
        let first = vec![(1, vec![at("spec.volumes.0.name"), at("status")]), (3, vec![at("status")])];
        let again = vec![(1, vec![at("spec.volumes.2.name")]), (2, vec![at("status")])];
        let (kept, unstable) = each_time(first, &again);
        assert_eq!(kept.iter().map(|(at, found)| (*at, found.len())).collect::<Vec<_>>(), [(1, 1)]);
        assert_eq!(
            unstable.iter().map(|(at, found)| (*at, found.len())).collect::<Vec<_>>(),
            [(1, 1), (3, 1)]
        );
    }
}
