//! How long to wait before something that failed is tried again (`k8s.io/client-go/util/flowcontrol`, as the kubelet sets it
//! up for containers and for images).

use std::time::Duration;

use jiff::Timestamp;

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(300);
/// What went well for so long is forgiven.
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);

/// The wait after the next failure: ten seconds, doubled each time, at most five minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Backoff(Option<Entry>);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    wait: Duration,
    updated: Timestamp,
}

impl Backoff {
    /// Until when to wait after something that happened at `since`, and how long that is in all; `None` when the wait is
    /// over, or there is none.
    pub(crate) fn wait(&self, since: Timestamp, now: Timestamp) -> Option<(Timestamp, Duration)> {
        let entry = self.0.filter(|entry| !entry.is_forgiven(since))?;
        let until = since.checked_add(entry.wait).ok()?;
        (until > now).then_some((until, entry.wait))
    }

    /// It is tried once more after what happened at `since`: the next wait is longer.
    pub(crate) fn next(&mut self, since: Timestamp, now: Timestamp) {
        let wait = match self.0.filter(|entry| !entry.is_forgiven(since)) {
            Some(entry) => (entry.wait * 2).min(LONGEST),
            None => FIRST,
        };
        self.0 = Some(Entry { wait, updated: now });
    }
}

impl Entry {
    fn is_forgiven(&self, since: Timestamp) -> bool {
        Duration::try_from(since.duration_since(self.updated)).is_ok_and(|passed| passed > FORGIVEN_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    const START: Timestamp = Timestamp::constant(1_767_225_600, 0);

    #[test]
    fn the_first_failure_waits_for_nothing_and_the_others_ever_longer() {
        let mut backoff = Backoff::default();
        let mut now = START;
        let mut waits = Vec::new();
        for _ in 0..8 {
            let ended = now;
            if let Some((until, wait)) = backoff.wait(ended, now) {
                waits.push(wait.as_secs());
                now = until;
            }
            backoff.next(ended, now);
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn ten_good_minutes_are_a_new_start() {
        let mut backoff = Backoff::default();
        backoff.next(START, START);
        backoff.next(START, START);
        let soon = START + SignedDuration::from_secs(600);
        assert_eq!(backoff.wait(soon, soon).map(|(_, wait)| wait.as_secs()), Some(20));
        let late = START + SignedDuration::from_secs(601);
        assert_eq!(backoff.wait(late, late), None);
        backoff.next(late, late);
        assert_eq!(backoff.wait(late, late).map(|(_, wait)| wait.as_secs()), Some(10));
    }
}
