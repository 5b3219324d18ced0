//! How fast failed keys come back.

use std::time::Duration;

use tokio::time::Instant;

/// Rate limit of retries: how long a key that failed has to wait for its next try: each on its own, and if wished all of them together.
///
/// The default is controller-runtime's: 5 ms after the first failure, twice as long after each further one, at most
/// 1000 s, and no overall limit. Keys that come by events are never held back; a failure of a try that an event led to, before the retry
/// was due, does not put the retry off any further.
///
/// ```
/// use std::time::Duration;
/// use kubewright_runtime::workqueue::RateLimit;
///
/// // At most one retry in ten seconds and key, and five in a second over all keys, after a first ten at once.
/// let gentle = RateLimit::per_key(Duration::from_secs(10), Duration::from_secs(600)).overall(5.0, 10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    first: Duration,
    longest: Duration,
    overall: Option<Overall>,
}

/// A token bucket: `burst` retries at once, then `per_second`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Overall {
    per_second: f64,
    burst: u32,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self::per_key(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl RateLimit {
    /// Waits `first` after the first failure of a key, twice as long after each further one, at most `longest`
    /// (`ItemExponentialFailureRateLimiter` of client-go).
    #[must_use]
    pub fn per_key(first: Duration, longest: Duration) -> Self {
        Self { first, longest, overall: None }
    }

    /// client-go's `DefaultControllerRateLimiter`: the default, and over all keys 10 retries a second after 100 at once.
    #[must_use]
    pub fn client_go() -> Self {
        Self::default().overall(10.0, 100)
    }

    /// Besides, lets only so many retries a second through, over all keys, after `burst` at once (a token bucket, client-go's
    /// `BucketRateLimiter`). The longer of both waits counts.
    #[must_use]
    pub fn overall(mut self, per_second: f64, burst: u32) -> Self {
        self.overall = Some(Overall { per_second, burst });
        self
    }

    /// What makes no sense.
    pub(crate) fn mistake(&self) -> Option<&'static str> {
        if self.first.is_zero() {
            return Some(
                "a rate limit with a first delay of 0 retries without end: give it some milliseconds",
            );
        }
        if self.longest < self.first {
            return Some("the longest delay of a rate limit is shorter than its first: exchange them");
        }
        let overall = self.overall?;
        if overall.burst == 0 || overall.interval().is_none() {
            return Some("an overall rate limit needs more than 0 retries a second and a burst of 1 or more");
        }
        None
    }

    /// The wait of a key that failed so often before.
    pub(super) fn delay(&self, failures: u32) -> Duration {
        self.first.saturating_mul(2_u32.saturating_pow(failures)).min(self.longest)
    }
}

impl Overall {
    /// The time between two retries, where there is a sensible one.
    fn interval(&self) -> Option<Duration> {
        let interval = Duration::try_from_secs_f64(self.per_second.recip()).ok()?;
        (!interval.is_zero()).then_some(interval)
    }
}

/// The state of the overall limit: when the next retry would be due if all came in even steps (the generic cell rate
/// algorithm, which is a token bucket without tokens).
#[derive(Debug, Default)]
pub(crate) struct Bucket(Option<Instant>);

impl Bucket {
    /// Takes one retry; says how long it has to wait.
    pub(crate) fn take(&mut self, limit: &RateLimit, now: Instant) -> Duration {
        let Some((overall, interval)) =
            limit.overall.and_then(|overall| Some((overall, overall.interval()?)))
        else {
            return Duration::ZERO;
        };
        let even = self.0.map_or(now, |even| even.max(now));
        self.0 = even.checked_add(interval);
        even.saturating_duration_since(now)
            .saturating_sub(interval.saturating_mul(overall.burst.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overall_limit_lets_a_burst_through_and_then_even_steps() {
        let limit = RateLimit::default().overall(10.0, 3);
        let (mut bucket, now) = (Bucket::default(), Instant::now());
        let taken: Vec<_> = (0..6).map(|_| bucket.take(&limit, now).as_millis()).collect();
        assert_eq!(taken, [0, 0, 0, 100, 200, 300]);
        let later = now + Duration::from_secs(10);
        assert_eq!(bucket.take(&limit, later), Duration::ZERO, "tokens come back");
    }

    #[test]
    fn no_overall_limit_holds_nothing_back() {
        let (mut bucket, now) = (Bucket::default(), Instant::now());
        assert!((0..1000).all(|_| bucket.take(&RateLimit::default(), now).is_zero()));
    }

    #[test]
    fn a_limit_that_makes_no_sense_is_told_with_its_remedy() {
        let second = Duration::from_secs(1);
        assert!(RateLimit::per_key(Duration::ZERO, second).mistake().is_some());
        assert!(RateLimit::per_key(second, Duration::ZERO).mistake().is_some());
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(RateLimit::default().overall(rate, 1).mistake().is_some(), "{rate}");
        }
        assert!(RateLimit::default().overall(1.0, 0).mistake().is_some());
        assert_eq!(RateLimit::client_go().mistake(), None);
    }
}
