//! What time it is.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::standstill::{self, TooLong};

/// Where simulated time starts: 2026-01-01T00:00:00Z.
pub const SIMULATION_START: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// Wall-clock time of a world. Waiting is tokio's business (`tokio::time`).
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    skew: Option<ClockSkew>,
}

/// Clock skew: how far clocks that are [skewed by](Clock::skewed_by) it go ahead of their world, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct ClockSkew(&'static AtomicI64);

/// What [`ClockSkew`] was called.
#[deprecated(since = "0.1.0", note = "is called `ClockSkew`")]
pub type ClockHand = ClockSkew;

impl Default for ClockSkew {
    /// Of clocks that are right. Its few bytes are never freed.
    fn default() -> Self {
        Self(Box::leak(Box::default()))
    }
}

impl ClockSkew {
    /// Sets the clocks to so much ahead of their world, or behind if that is negative; to the second.
    pub fn set_ahead(&self, by: SignedDuration) {
        self.0.store(by.as_secs(), Ordering::SeqCst);
    }
}

#[derive(Clone, Copy, Debug)]
enum Source {
    System,
    /// Tokio's clock, with nobody outside.
    Simulated(Origin),
    /// Tokio's clock, with clients and webhooks outside that live by the machine's.
    Paced(Origin),
}

/// What time it is at an instant of tokio's clock.
#[derive(Clone, Copy, Debug)]
struct Origin {
    start: Timestamp,
    at: Instant,
}

impl Clock {
    fn of(source: Source) -> Self {
        Self { source, skew: None }
    }

    /// This clock as a machine has it whose time is set now and then, by hand or by NTP, while tokio's goes on: for tests.
    #[must_use]
    pub fn skewed_by(self, skew: ClockSkew) -> Self {
        Self { skew: Some(skew), ..self }
    }

    /// What [`Clock::skewed_by`] was called.
    #[deprecated(since = "0.1.0", note = "is called `skewed_by`")]
    #[must_use]
    pub fn set_by(self, skew: ClockSkew) -> Self {
        self.skewed_by(skew)
    }

    /// Whether it is the clock of a simulation: of tokio's time, with nobody outside.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self.source, Source::Simulated(_))
    }

    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::of(Source::System)
    }

    /// [`SIMULATION_START`] now, and from here on as fast as tokio's clock: paused, advanced or real.
    #[must_use]
    pub fn simulated() -> Self {
        Self::of(Source::Simulated(Origin { start: SIMULATION_START, at: Instant::now() }))
    }

    /// `start` now, and from here on as fast as tokio's clock, which somebody paces.
    pub(crate) fn paced(start: Timestamp) -> Self {
        Self::of(Source::Paced(Origin { start, at: Instant::now() }))
    }

    /// The time, to the nanosecond.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    pub fn now(&self) -> Timestamp {
        let now = match self.source {
            Source::System => Timestamp::now(),
            Source::Simulated(origin) | Source::Paced(origin) => {
                let passed = Instant::now().duration_since(origin.at);
                origin.start.saturating_add(passed).unwrap_or(Timestamp::MAX)
            }
        };
        let Some(ClockSkew(ahead)) = self.skew else { return now };
        let ahead = SignedDuration::from_secs(ahead.load(Ordering::SeqCst));
        let end = if ahead.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
        now.saturating_add(ahead).unwrap_or(end)
    }

    /// The clock by which those outside live: the machine's, where there are any. Certificates are made and checked by
    /// it, as the programs outside do with theirs.
    #[must_use]
    pub fn outside(&self) -> Self {
        match self.source {
            Source::Paced(_) => Self::system(),
            Source::System | Source::Simulated(_) => *self,
        }
    }

    /// Whether time may jump: whoever keeps connections to the outside should not end them for having been silent.
    #[must_use]
    pub fn may_jump(&self) -> bool {
        !matches!(self.source, Source::System)
    }

    /// Waits for an answer from outside, for at most `longest`. On a [paced](crate::Pacing) clock time stands still
    /// meanwhile, and `longest` is of the machine's: an answer that takes a moment there is not late because an hour is
    /// passed over here.
    ///
    /// # Errors
    /// When there is no answer for so long.
    pub async fn wait_outside<F: Future>(&self, longest: Duration, answer: F) -> Result<F::Output, TooLong> {
        match self.source {
            Source::Paced(_) => standstill::wait(longest, answer).await,
            Source::System | Source::Simulated(_) => {
                tokio::time::timeout(longest, answer).await.map_err(|_| TooLong)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn simulated_time_follows_tokios_clock() {
        let clock = Clock::simulated();
        assert_eq!(clock.now(), SIMULATION_START);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(clock.now(), SIMULATION_START + Duration::from_secs(3600));
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_tells_the_new_time_to_all_who_have_it() {
        let skew = ClockSkew::default();
        let clock = Clock::simulated().skewed_by(skew);
        let copy = clock;
        assert_eq!(copy.now(), SIMULATION_START);
        for hours in [1, -48, 0] {
            skew.set_ahead(SignedDuration::from_hours(hours));
            assert_eq!(copy.now(), SIMULATION_START + SignedDuration::from_hours(hours));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_paced_clock_has_another_time_outside() {
        let start = SIMULATION_START + jiff::SignedDuration::from_hours(24 * 365 * 50);
        let paced = Clock::paced(start);
        assert_eq!(paced.now(), start);
        let outside = paced.outside().now().duration_since(Clock::system().now());
        assert!(outside.abs() < jiff::SignedDuration::from_hours(1), "{outside}");
        assert_eq!(Clock::simulated().outside().now(), SIMULATION_START);
    }
}
