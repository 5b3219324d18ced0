//! How many Events are told of one object.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kubewright::Key;

/// So many at once: the numbers of client-go's spam filter (`k8s.io/client-go/tools/record/events_cache.go`).
const BURST: i64 = 25;
/// And one more each time this much has gone by.
const REFILL: SignedDuration = SignedDuration::from_mins(5);

/// A token bucket for each object, so that a fight with another writer does not flood the cluster with Events.
#[derive(Debug, Default)]
pub(crate) struct Budget(BTreeMap<Key, Spent>);

#[derive(Debug)]
struct Spent {
    tokens: i64,
    since: Timestamp,
}

impl Budget {
    /// Whether one more Event may be told of the object at `key`, which then is spent.
    pub(crate) fn take(&mut self, key: &Key, now: Timestamp) -> bool {
        let spent = self.0.entry(key.clone()).or_insert(Spent { tokens: 0, since: now });
        let refilled = now.duration_since(spent.since).as_secs().max(0) / REFILL.as_secs();
        if refilled >= spent.tokens {
            *spent = Spent { tokens: 0, since: now };
        } else {
            spent.tokens -= refilled;
            spent.since += REFILL * i32::try_from(refilled).unwrap_or(i32::MAX);
        }
        let granted = spent.tokens < BURST;
        spent.tokens += i64::from(granted);
        granted
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(budget: &mut Budget, name: &str, times: usize, at: Timestamp) -> usize {
        let key = Key { namespace: Some("default".to_owned()), name: name.to_owned() };
        (0..times).filter(|_| budget.take(&key, at)).count()
    }

    #[test]
    fn a_burst_is_told_and_then_one_in_five_minutes() {
        let (mut budget, start) = (Budget::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(taken(&mut budget, "a", 100, start), 25);
        assert_eq!(taken(&mut budget, "a", 100, start + SignedDuration::from_secs(299)), 0);
        assert_eq!(taken(&mut budget, "a", 100, start + SignedDuration::from_mins(5)), 1);
        assert_eq!(taken(&mut budget, "a", 100, start + SignedDuration::from_mins(16)), 2);
        assert_eq!(taken(&mut budget, "a", 100, start + SignedDuration::from_hours(24)), 25);
    }

    #[test]
    fn each_object_has_a_budget_of_its_own_until_it_is_gone() {
        let (mut budget, start) = (Budget::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(taken(&mut budget, "a", 100, start), 25);
        assert_eq!(taken(&mut budget, "b", 100, start), 25);
        budget.forget(&Key { namespace: Some("default".to_owned()), name: "a".to_owned() });
        assert_eq!(budget.0.len(), 1);
    }
}
