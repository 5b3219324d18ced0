//! How long a daemon that failed is let be before it is replaced (`flowcontrol.Backoff` in `k8s.io/client-go`): a node
//! that refuses a pod would be asked again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// Whose failures: the set's uid, the generation that was observed, and the node.
pub(super) type BackoffKey = (String, i64, String);

/// What failed lately.
#[derive(Default)]
pub(super) struct Backoff(BTreeMap<BackoffKey, Entry>);

struct Entry {
    delay: Duration,
    since: Timestamp,
}

impl Entry {
    fn age(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.since)).unwrap_or_default()
    }

    /// After twice the longest delay everything is forgiven.
    fn is_over(&self, now: Timestamp) -> bool {
        self.age(now) > LONGEST * 2
    }
}

impl Backoff {
    /// The delay that is still running; `None` when the place may be tried again.
    pub(super) fn running(&self, place: &BackoffKey, now: Timestamp) -> Option<Duration> {
        let entry = self.0.get(place).filter(|entry| !entry.is_over(now))?;
        (entry.age(now) < entry.delay).then_some(entry.delay)
    }

    /// Notes that the place is tried again now; the next time it has to wait twice as long.
    pub(super) fn tried(&mut self, place: BackoffKey, now: Timestamp) {
        self.0.retain(|_, entry| !entry.is_over(now));
        let delay = self.0.get(&place).map_or(SHORTEST, |entry| (entry.delay * 2).min(LONGEST));
        self.0.insert(place, Entry { delay, since: now });
    }
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    #[test]
    fn each_try_doubles_the_wait_up_to_a_quarter_of_an_hour() {
        let (mut backoff, place) = (Backoff::default(), ("u".to_owned(), 1, "n".to_owned()));
        assert_eq!(backoff.running(&place, NOW), None);
        for expected in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900] {
            backoff.tried(place.clone(), NOW);
            assert_eq!(backoff.running(&place, NOW), Some(Duration::from_secs(expected)));
        }
        assert_eq!(backoff.running(&place, NOW + Duration::from_secs(900)), None);
        let much_later = NOW + Duration::from_secs(1801);
        backoff.tried(place.clone(), much_later);
        assert_eq!(backoff.running(&place, much_later), Some(SHORTEST));
    }
}
