//! How far back lists can go: kube-apiserver has etcd forget what is older than some minutes
//! (`k8s.io/apiserver/pkg/storage/etcd3/compact.go`).
//!
//! Watches are not concerned: they read from the watch cache there, from the ring of their collection here.
//!
//! kube-apiserver writes a key of its own (`compact_rev_key`) each time, so that what was listed before is of an older version
//! even where nobody else writes. Here it is written where somebody asks for what is too old and nothing is newer.

use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use kubewright_kinds::Summary;
use kubewright_store::{Change, CommitError, Draft, Expect, Name, Revision};
use serde_json::json;

use super::Engine;

/// The collection of the key, and the key. No kind has this collection: no request shows it.
static KEY: LazyLock<Name> = LazyLock::new(|| Name::from("compact_rev_key"));

/// `--etcd-compaction-interval`.
const INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// What of the past lists may show. At the end of each interval all before its beginning is forgotten, so that a version
/// is kept for five minutes at least, and for ten at most. (One that is still the newest at an end counts as of the interval
/// that begins there.)
///
/// It has no timer: who writes and who lists says what time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    /// When the current interval began.
    since: Timestamp,
    /// The version of the cluster then; none in the first interval, whose beginning is not looked at.
    then: Option<Revision>,
    /// The oldest version that can be listed.
    oldest: Revision,
}

impl Past {
    /// Of a cluster that starts now.
    pub(crate) fn starting(now: Timestamp) -> Self {
        Self { since: now, then: None, oldest: Revision(0) }
    }

    /// Lets time pass until now; `newest` is the version of the cluster, which nothing has changed since the last call.
    pub(crate) fn pass(&mut self, now: Timestamp, newest: impl FnOnce() -> Revision) {
        let passed = now.duration_since(self.since);
        if passed < INTERVAL {
            return;
        }
        let intervals = passed.as_secs() / INTERVAL.as_secs();
        let newest = newest();
        // Whatever was forgotten at the end of the last interval but one was so at the end of the last, too.
        let last = if intervals > 1 { Some(newest) } else { self.then };
        self.oldest = last.map_or(Revision(0), Revision::next);
        self.then = Some(newest);
        let whole = INTERVAL.saturating_mul(i32::try_from(intervals).unwrap_or(i32::MAX));
        self.since = self.since.saturating_add(whole).unwrap_or(now);
    }

    /// Whether a list of this version can still be shown.
    pub(crate) fn reaches(&self, version: Revision) -> bool {
        version >= self.oldest
    }
}

impl Engine {
    /// Makes a version that can be listed, where the newest cannot: nobody has written for an interval and more. Where the store
    /// takes no writes there is none, and lists of a version are refused until there is.
    pub(crate) async fn outlive_the_past(&self) {
        self.let_time_pass();
        let is_past = || !self.past.lock().reaches(self.store.revision());
        if !is_past() {
            return;
        }
        let _no_reset = self.epochs.enter().await;
        while is_past() {
            let before = self.snapshot().get(&KEY, &KEY).map(|entry| entry.revision);
            let expect = before.map_or(Expect::Absent, Expect::At);
            let committed = self.store.commit(&KEY, &KEY, expect, Change::Put(mark())).await;
            if matches!(committed, Err(CommitError::NoRoom(_) | CommitError::Unavailable(_))) {
                return;
            }
        }
    }
}

/// What is written: an object, as everything in a store is.
fn mark() -> Draft<Summary> {
    let object = json!({"kind": "CompactRevision", "apiVersion": "v1", "metadata": {"name": &**KEY}});
    let tag = Arc::new(Summary::unserved(&object));
    Draft { bytes: object.to_string().into_bytes(), revision_at: None, tag }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The past after the cluster was looked at in these seconds, in these versions.
    fn past(looks: &[(i64, u64)]) -> Past {
        let start = Timestamp::UNIX_EPOCH;
        let mut past = Past::starting(start);
        for (seconds, version) in looks {
            past.pass(start + SignedDuration::from_secs(*seconds), || Revision(*version));
        }
        past
    }

    #[test]
    fn a_version_is_kept_for_five_minutes_at_least_and_for_ten_at_most() {
        assert!(
            past(&[(1, 7), (299, 8), (300, 9), (599, 9)]).reaches(Revision(1)),
            "the first end forgets nothing"
        );
        let second = past(&[(299, 8), (301, 9), (600, 20)]);
        assert!(second.reaches(Revision(10)) && !second.reaches(Revision(9)), "{second:?}");
        let third = past(&[(299, 8), (301, 9), (600, 20), (905, 30)]);
        assert!(third.reaches(Revision(21)) && !third.reaches(Revision(20)), "{third:?}");
    }

    #[test]
    fn where_nothing_was_written_for_two_intervals_the_present_is_past() {
        let past = past(&[(10, 5), (3601, 9)]);
        assert!(past.reaches(Revision(10)) && !past.reaches(Revision(9)), "{past:?}");
    }

    #[test]
    fn a_clock_that_is_set_back_forgets_nothing() {
        assert_eq!(past(&[(300, 9), (20, 12)]), past(&[(300, 9)]));
    }
}
