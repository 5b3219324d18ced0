//! When a failure that lasts is worth a line in the log.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How often it is told that a watch still fails.
const REPORT_EVERY: Duration = Duration::from_secs(300);

/// A time in which nothing works.
#[derive(Debug, Default)]
pub(super) struct Outage {
    began: Option<Instant>,
    reported: Option<Instant>,
}

impl Outage {
    /// Something failed; whether that is to be reported.
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        self.began.get_or_insert(now);
        let due = self.reported.is_none_or(|reported| now.duration_since(reported) >= REPORT_EVERY);
        if due {
            self.reported = Some(now);
        }
        due
    }

    /// Something worked; how long nothing did before.
    pub(super) fn ended(&mut self) -> Option<Duration> {
        let began = std::mem::take(self).began?;
        Some(began.elapsed())
    }
}

/// A time in which the server cannot be reached, for all watches of a cache. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerOutage(Arc<Mutex<Outage>>);

impl ServerOutage {
    /// As [`Outage::is_due`].
    pub(super) fn is_due(&self) -> bool {
        self.0.lock().is_due()
    }

    /// As [`Outage::ended`].
    pub(super) fn ended(&self) -> Option<Duration> {
        self.0.lock().ended()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_told_when_it_begins_and_every_five_minutes() {
        let (mut outage, mut reported) = (Outage::default(), 0);
        for _ in 0..1000 {
            reported += usize::from(outage.is_due());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(reported, 4);
        assert_eq!(outage.ended(), Some(Duration::from_secs(1000)));
        assert_eq!(outage.ended(), None);
        assert!(outage.is_due(), "the next one is another");
    }
}
