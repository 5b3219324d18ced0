//! The shortest story that still differs in a way.

use crate::controllers::hold::{Outcome, Sides};
use crate::controllers::story::Story;

/// The story without what the difference does not need, and what it came to last: at most so many tries.
pub(crate) async fn shrink(sides: &Sides, story: &Story, sort: &str, run: &str) -> (Story, Option<Outcome>) {
    let mut shortest = story.clone();
    let mut last = None;
    let mut tries = 0;
    let mut from = shortest.steps.len().saturating_sub(1);
    while from > 0 && tries < 20 {
        from -= 1;
        let mut candidate = shortest.clone();
        candidate.steps.remove(from);
        tries += 1;
        if let Ok(outcome) = sides.hold(&candidate, &format!("{run}{tries}")).await
            && outcome.sorts().contains(sort)
        {
            candidate.steps.truncate(outcome.at + 1);
            from = from.min(candidate.steps.len());
            shortest = candidate;
            last = Some(outcome);
        }
    }
    (shortest, last)
}
