//! How many events there may be of one thing.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// So many at once (`defaultSpamBurst` in `k8s.io/client-go/tools/record/events_cache.go`).
const BURST: i32 = 25;
/// And one more each time this much has gone by (`defaultSpamQPS`).
const REFILL: SignedDuration = SignedDuration::from_mins(5);
/// Of how many things is remembered what they have spent.
const MOST: usize = 4096;

/// A token bucket for each key, with client-go's numbers: 25 events at once, and one more every five minutes.
#[derive(Debug)]
pub struct SpamFilter<K> {
    /// When the bucket of a key is full again.
    full: BTreeMap<K, Timestamp>,
}

impl<K> Default for SpamFilter<K> {
    fn default() -> Self {
        Self { full: BTreeMap::new() }
    }
}

impl<K: Ord> SpamFilter<K> {
    /// Whether there may be another event of `key`, which then is counted.
    pub fn take(&mut self, key: K, now: Timestamp) -> bool {
        let full = self.full.get(&key).map_or(now, |full| (*full).max(now));
        if full.duration_since(now) > REFILL * (BURST - 1) {
            return false;
        }
        if self.full.len() >= MOST && !self.full.contains_key(&key) {
            self.forget_some(now);
        }
        self.full.insert(key, full.saturating_add(REFILL).unwrap_or(Timestamp::MAX));
        true
    }

    /// Forgets a key that is gone.
    pub fn forget<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.full.remove(key);
    }

    /// How many keys are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.full.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.full.is_empty()
    }

    /// Makes room: for those whose bucket is full, or for half of them if none is, those that have spent least.
    fn forget_some(&mut self, now: Timestamp) {
        let before = self.full.len();
        self.full.retain(|_, full| *full > now);
        if self.full.len() == before {
            let mut times: Vec<_> = self.full.values().copied().collect();
            let (_, middle, _) = times.select_nth_unstable(before / 2);
            let middle = *middle;
            self.full.retain(|_, full| *full > middle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(filter: &mut SpamFilter<&'static str>, key: &'static str, times: usize, at: Timestamp) -> usize {
        (0..times).filter(|_| filter.take(key, at)).count()
    }

    #[test]
    fn a_burst_is_let_through_and_then_one_in_five_minutes() {
        let (mut filter, start) = (SpamFilter::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(taken(&mut filter, "a", 100, start), 25);
        assert_eq!(taken(&mut filter, "a", 100, start + SignedDuration::from_secs(299)), 0);
        assert_eq!(taken(&mut filter, "a", 100, start + SignedDuration::from_mins(5)), 1);
        assert_eq!(taken(&mut filter, "a", 100, start + SignedDuration::from_mins(16)), 2);
        assert_eq!(taken(&mut filter, "a", 100, start + SignedDuration::from_hours(24)), 25);
    }

    #[test]
    fn each_key_has_a_bucket_of_its_own_until_it_is_forgotten() {
        let (mut filter, start) = (SpamFilter::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(taken(&mut filter, "a", 100, start), 25);
        assert_eq!(taken(&mut filter, "b", 100, start), 25);
        filter.forget("a");
        assert_eq!(filter.len(), 1);
    }

    #[test]
    fn only_so_many_keys_are_remembered_and_those_that_spent_most() {
        let (mut filter, start) = (SpamFilter::default(), Timestamp::UNIX_EPOCH);
        for _ in 0..25 {
            assert!(filter.take(0, start));
        }
        for key in 1..3 * MOST {
            assert!(filter.take(key, start));
        }
        assert!(filter.len() <= MOST);
        assert!(!filter.take(0, start));
    }
}
