//! On which day the token of a Secret was used last: a label of the Secret says so
//! (`k8s.io/kubernetes/pkg/serviceaccount/legacy.go`, `patchSecretWithLastUsedDate`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::{Timestamp, ToSpan, tz::TimeZone};
use parking_lot::Mutex;

/// On a Secret: the day.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// A Secret whose token was used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Used {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid: another Secret of the name is another one.
    pub uid: String,
    /// The day, as `2026-01-31`.
    pub day: String,
}

/// What was used and is not written down yet.
#[derive(Debug, Default)]
pub(super) struct Usage {
    /// Whether there is anything: what most requests ask.
    any: AtomicBool,
    pending: Mutex<BTreeSet<Used>>,
}

/// [`Usage`] at a moment.
pub(super) struct UsageAt<'a> {
    usage: &'a Usage,
    now: Timestamp,
}

impl Usage {
    pub(super) fn on(&self, now: Timestamp) -> UsageAt<'_> {
        UsageAt { usage: self, now }
    }

    pub(super) fn take(&self) -> Vec<Used> {
        match self.any.swap(false, Ordering::AcqRel) {
            true => std::mem::take(&mut *self.pending.lock()).into_iter().collect(),
            false => Vec::new(),
        }
    }
}

impl UsageAt<'_> {
    /// Notes that the token of a Secret with these labels was used, unless they say so.
    pub(super) fn note(&self, (namespace, name, uid): (&str, &str, &str), labels: &BTreeMap<String, String>) {
        let today = day(self.now);
        let tomorrow =
            self.now.to_zoned(TimeZone::UTC).checked_add(1.day()).map(|then| day(then.timestamp()));
        let said = labels.get(LAST_USED);
        if said == Some(&today) || (said.is_some() && said == tomorrow.ok().as_ref()) {
            return;
        }
        let (namespace, name, uid) = (namespace.to_owned(), name.to_owned(), uid.to_owned());
        self.usage.pending.lock().insert(Used { namespace, name, uid, day: today });
        self.usage.any.store(true, Ordering::Release);
    }
}

fn day(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d").to_string()
}

#[cfg(test)]
mod tests {
    use kubewright_world::SIMULATION_START as NOW;

    use super::*;

    #[test]
    fn a_use_is_noted_once_a_day() {
        let usage = Usage::default();
        let labelled = |day: &str| BTreeMap::from([(LAST_USED.to_owned(), day.to_owned())]);
        let secret = ("ns", "s", "1");
        usage.on(NOW).note(secret, &BTreeMap::new());
        usage.on(NOW).note(secret, &BTreeMap::new());
        let noted = usage.take();
        let today = day(NOW);
        assert_eq!(noted.iter().map(|used| &used.day).collect::<Vec<_>>(), [&today]);
        assert_eq!(usage.take(), []);
        usage.on(NOW).note(secret, &labelled(&today));
        assert_eq!(usage.take(), []);
        usage.on(NOW).note(secret, &labelled("1999-01-01"));
        assert_eq!(usage.take().len(), 1);
    }
}
