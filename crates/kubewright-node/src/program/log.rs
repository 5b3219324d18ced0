//! What a program has printed by some moment, as lines of a log.

use std::time::Duration;

use super::{Printed, Program};

/// The most that is kept of what a program prints again and again, as a log that is rotated keeps its last part.
const MOST_REPEATS: u32 = 10_000;

/// Something in a log, so long after the start; it may be several lines, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) after: Duration,
    pub(crate) text: String,
}

/// What a program that has run for `ran` has printed, and when it prints next, if it does; `None` when that is not known.
pub(crate) fn lines(program: &Program, ran: Duration) -> Option<(Vec<Line>, Option<Duration>)> {
    let output = program.output.as_ref()?;
    let line = |printed: &Printed, later: Duration| Line {
        after: printed.after.saturating_add(later),
        text: printed.text.clone(),
    };
    let mut all: Vec<Line> = output.iter().map(|printed| line(printed, Duration::ZERO)).collect();
    if let Some(cycle) = program.cycle {
        let rounds = ran.saturating_sub(cycle.from).as_nanos() / cycle.every.as_nanos().max(1);
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX).saturating_add(1);
        let first = rounds.saturating_sub(MOST_REPEATS).max(1);
        for round in first..=rounds {
            let repeated = output.iter().filter(|printed| printed.after >= cycle.from);
            all.extend(repeated.map(|printed| line(printed, cycle.every.saturating_mul(round))));
        }
    }
    let next = all.iter().map(|line| line.after).filter(|after| *after > ran).min();
    all.retain(|line| line.after <= ran);
    Some((all, next))
}
