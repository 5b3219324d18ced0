//! How long answers take on both sides.

use std::collections::BTreeMap;
use std::time::Duration;

/// What takes more than this many times as long as on the reference is a finding.
const TOO_SLOW: u32 = 3;
/// Together, on our side: less than this is chance.
const LEAST: Duration = Duration::from_millis(200);

/// Sums by what was asked.
#[derive(Debug, Default)]
pub(crate) struct Times {
    by_what: BTreeMap<String, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    times: u32,
    reference: Duration,
    ours: Duration,
}

impl Times {
    /// Counts a request that both have answered.
    pub(crate) fn add(&mut self, what: &str, reference: Duration, ours: Duration) {
        let sum = self.by_what.entry(what.to_owned()).or_default();
        sum.times += 1;
        sum.reference += reference;
        sum.ours += ours;
    }

    /// What takes more than three times as long as there: a line each, with the means.
    pub(crate) fn slow(&self) -> Vec<String> {
        let slow =
            self.by_what.iter().filter(|(_, sum)| sum.ours > sum.reference * TOO_SLOW && sum.ours > LEAST);
        slow.map(|(what, sum)| {
            format!(
                "{what}: {} times, {:.1?} → {:.1?}",
                sum.times,
                sum.reference / sum.times,
                sum.ours / sum.times
            )
        })
        .collect()
    }

    /// All that was asked: the time of the reference, and ours.
    pub(crate) fn whole(&self) -> (Duration, Duration) {
        let sums = self.by_what.values();
        sums.fold((Duration::ZERO, Duration::ZERO), |(reference, ours), sum| {
            (reference + sum.reference, ours + sum.ours)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_thrice_as_long_is_slow_and_what_takes_no_time_is_not() {
        let millis = Duration::from_millis;
        let mut times = Times::default();
        for _ in 0..2 {
            times.add("put", millis(100), millis(310));
            times.add("get", millis(100), millis(290));
            times.add("patch", millis(1), millis(50));
        }
        assert_eq!(times.slow(), ["put: 2 times, 100.0ms → 310.0ms"]);
        assert_eq!(times.whole(), (millis(402), millis(1300)));
    }
}
