//! When a failure that lasts is worth a line in the log.

use std::time::Duration;

use tokio::time::Instant;

/// How often it is told that a watch still fails.
const TOLD_EVERY: Duration = Duration::from_secs(300);

/// A time in which nothing works.
#[derive(Debug, Default)]
pub(super) struct Outage {
    began: Option<Instant>,
    told: Option<Instant>,
}

impl Outage {
    /// Something failed; whether that is to be told.
    pub(super) fn is_to_be_told(&mut self) -> bool {
        let now = Instant::now();
        self.began.get_or_insert(now);
        let due = self.told.is_none_or(|told| now.duration_since(told) >= TOLD_EVERY);
        if due {
            self.told = Some(now);
        }
        due
    }

    /// Something worked; how long nothing did before.
    pub(super) fn ended(&mut self) -> Option<Duration> {
        let began = std::mem::take(self).began?;
        Some(began.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_told_when_it_begins_and_every_five_minutes() {
        let (mut outage, mut told) = (Outage::default(), 0);
        for _ in 0..1000 {
            told += usize::from(outage.is_to_be_told());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(told, 4);
        assert_eq!(outage.ended(), Some(Duration::from_secs(1000)));
        assert_eq!(outage.ended(), None);
        assert!(outage.is_to_be_told(), "the next one is another");
    }
}
