//! How long a Job waits before it replaces failed pods (`pkg/controller/job/backoff_utils.go`).

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::pods::{failures, finished_at, ignored_failures};

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// The failures in a row since a pod last succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    count: i32,
    last: Option<Timestamp>,
}

impl Failures {
    /// After these pods have ended, too.
    pub(super) fn after<'a>(
        self,
        succeeded: impl IntoIterator<Item = &'a Pod>,
        failed: impl IntoIterator<Item = &'a Pod>,
    ) -> Self {
        let since = succeeded.into_iter().map(finished_at).max();
        let mut after = if since.is_some() { Self::default() } else { self };
        let counted = failed.into_iter().map(finished_at).filter(|at| since.is_none_or(|since| *at > since));
        let mut newest = None;
        for at in counted {
            after.count = after.count.saturating_add(1);
            newest = newest.max(at);
        }
        after.last = newest.or(after.last);
        after
    }

    /// How long to wait from `now` on: ten seconds after the first failure, twice as long after each further one, ten
    /// minutes at most.
    pub(super) fn wait(self, now: Timestamp) -> Duration {
        let Some(last) = self.last.filter(|_| self.count > 0) else { return Duration::ZERO };
        let doublings = u32::try_from(self.count - 1).unwrap_or_default();
        let delay = FIRST.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST);
        // Not negative where a clock is behind: then it waits longer, as Kubernetes does.
        let left = (last + delay).duration_since(now);
        Duration::try_from(left).unwrap_or_default()
    }
}

/// How long an index waits for the pod that replaces this failed one.
pub(super) fn wait_of_index(failed: &Pod, now: Timestamp) -> Duration {
    let count = failures(failed).saturating_add(ignored_failures(failed)).saturating_add(1);
    Failures { count, last: finished_at(failed) }.wait(now)
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::tests::pod;
    use super::*;

    /// A pod that ended so many seconds ago.
    fn ended(seconds: u64) -> Pod {
        let at = (NOW - Duration::from_secs(seconds)).to_string();
        pod(
            "p",
            json!({"containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": {"exitCode": 1, "finishedAt": at}}}]}),
        )
    }

    #[test]
    fn the_wait_doubles_with_each_failure_up_to_ten_minutes() {
        let mut failures = Failures::default();
        let mut waits = Vec::new();
        for _ in 0..9 {
            failures = failures.after([], [&ended(0)]);
            waits.push(failures.wait(NOW).as_secs());
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
        assert_eq!(failures.wait(NOW + Duration::from_secs(590)).as_secs(), 10);
        assert_eq!(failures.wait(NOW + Duration::from_secs(700)), Duration::ZERO);
    }

    #[test]
    fn a_success_ends_the_row_but_for_what_failed_after_it() {
        let row = Failures::default().after([], [&ended(50), &ended(40)]);
        assert_eq!(row.after([&ended(30)], []).wait(NOW), Duration::ZERO);
        let again = row.after([&ended(30)], [&ended(35), &ended(5)]);
        assert_eq!(again.wait(NOW), Duration::from_secs(5));
    }

    proptest! {
        #[test]
        fn it_never_waits_longer_than_ten_minutes(count in 1..40_usize, ago in 0..2000_u64) {
            let pods = vec![ended(ago); count];
            let wait = Failures::default().after([], &pods).wait(NOW);
            prop_assert!(wait <= LONGEST);
            prop_assert!(ago < 600 || wait.is_zero());
        }
    }
}
