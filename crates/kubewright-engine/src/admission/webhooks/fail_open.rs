//! Webhooks that could not be asked, and whose `failurePolicy: Ignore` let the request pass unseen: nobody is told by the
//! answer, as in Kubernetes, so the log and `/metrics` are.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How often the log tells of the same webhook.
const PAUSE: Duration = Duration::from_secs(60);
/// Of how many webhooks is remembered how often they failed: whoever may configure webhooks could make any number.
const MOST: usize = 1000;

/// How often each webhook was passed over.
#[derive(Default)]
pub struct FailOpen(Mutex<BTreeMap<Passed, Tally>>);

/// A webhook by its name, and the phase of admission that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passed {
    pub webhook: String,
    /// `admit` or `validating`, as metrics say it.
    pub phase: &'static str,
}

struct Tally {
    total: u64,
    told: Instant,
    untold: u64,
}

impl FailOpen {
    /// A webhook could not be asked, and does not mind.
    pub(super) fn passed_over(&self, webhook: &str, phase: &'static str, why: &str) {
        if let Some(times) = self.count(Passed { webhook: webhook.to_owned(), phase }, Instant::now()) {
            tracing::warn!(webhook, why, times, "failed calling webhook, failing open");
        }
    }

    /// How often that has happened since it was told of last, if it is to be told now.
    fn count(&self, passed: Passed, now: Instant) -> Option<u64> {
        let mut known = self.0.lock();
        if let Some(tally) = known.get_mut(&passed) {
            tally.total += 1;
            tally.untold += 1;
            if now.duration_since(tally.told) < PAUSE {
                return None;
            }
            tally.told = now;
            return Some(std::mem::take(&mut tally.untold));
        }
        if known.len() >= MOST
            && let Some(oldest) = known.iter().min_by_key(|(_, tally)| tally.told).map(|(one, _)| one.clone())
        {
            known.remove(&oldest);
        }
        known.insert(passed, Tally { total: 1, told: now, untold: 0 });
        Some(1)
    }

    /// How often each was passed over.
    pub fn totals(&self) -> Vec<(Passed, u64)> {
        self.0.lock().iter().map(|(passed, tally)| (passed.clone(), tally.total)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_is_counted_and_the_log_hears_of_a_webhook_once_a_minute() {
        let passed = |webhook: &str| Passed { webhook: webhook.to_owned(), phase: "admit" };
        let fail_open = FailOpen::default();
        let start = Instant::now();
        let count =
            |webhook: &str, seconds| fail_open.count(passed(webhook), start + Duration::from_secs(seconds));
        assert_eq!(
            [count("a", 0), count("a", 1), count("b", 2), count("a", 59)],
            [Some(1), None, Some(1), None]
        );
        assert_eq!([count("a", 60), count("a", 61)], [Some(3), None]);
        assert_eq!(fail_open.totals(), [(passed("a"), 5), (passed("b"), 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn any_number_of_webhooks_takes_a_bounded_memory() {
        let fail_open = FailOpen::default();
        for number in 0..2 * MOST {
            fail_open.passed_over(&number.to_string(), "admit", "no");
        }
        assert_eq!(fail_open.totals().len(), MOST);
    }
}
