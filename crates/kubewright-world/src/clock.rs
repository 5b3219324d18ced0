//! What time it is.

use jiff::Timestamp;
use tokio::time::Instant;

/// Where simulated time starts: 2026-01-01T00:00:00Z.
pub const SIMULATION_START: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// Tells the wall-clock time of its world. Waiting is tokio's business (`tokio::time`).
#[derive(Clone, Copy, Debug)]
pub struct Clock(Source);

#[derive(Clone, Copy, Debug)]
enum Source {
    System,
    Simulated { origin: Instant },
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// [`SIMULATION_START`] now, and from here on as fast as tokio's clock: paused, advanced or real.
    #[must_use]
    pub fn simulated() -> Self {
        Self(Source::Simulated { origin: Instant::now() })
    }

    /// The time, to the nanosecond.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    pub fn now(&self) -> Timestamp {
        match self.0 {
            Source::System => Timestamp::now(),
            Source::Simulated { origin } => SIMULATION_START + Instant::now().duration_since(origin),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn simulated_time_follows_tokios_clock() {
        let clock = Clock::simulated();
        assert_eq!(clock.now(), SIMULATION_START);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(clock.now(), SIMULATION_START + Duration::from_secs(3600));
    }
}
