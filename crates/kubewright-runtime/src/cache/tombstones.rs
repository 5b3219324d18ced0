//! What is remembered of objects that are gone, as long as somebody may still tell of their life.

use std::collections::BTreeMap;

use super::version::version;
use crate::{Key, object::Head};

/// How long a tombstone stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The server said that the object is gone; the watch may be behind. Until the watch tells of the end, or the list
    /// of this number is complete.
    Watched {
        /// The number of a list that begins after the end.
        list: u64,
    },
    /// The end was observed while writes were on their way, whose answers may be older. Until every write is answered
    /// that began before the write of this number.
    Answered {
        /// The number of the first write that begins after the end.
        write: u64,
    },
}

#[derive(Debug)]
struct Tombstone {
    uid: String,
    /// The last known version.
    version: Option<u64>,
    until: Until,
}

/// The tombstones of a kind's objects.
#[derive(Debug, Default)]
pub(super) struct Tombstones(BTreeMap<Key, Vec<Tombstone>>);

impl Tombstones {
    /// Remembers the end of an object, last known in this `version`. One that is remembered already stays as it is.
    pub(super) fn add(&mut self, key: &Key, uid: &str, version: Option<u64>, until: Until) {
        let here = self.0.entry(key.clone()).or_default();
        if here.iter().all(|tombstone| tombstone.uid != uid) {
            here.push(Tombstone { uid: uid.to_owned(), version, until });
        }
    }

    /// Whether what is told of an object is older than its end: a uid never comes back, and neither does what was
    /// there before.
    pub(super) fn hide(&self, key: &Key, head: Head<'_>) -> bool {
        let (uid, version) = (head.uid, version(head));
        self.0.get(key).into_iter().flatten().any(|tombstone| {
            let older = version.zip(tombstone.version).is_some_and(|(version, last)| version <= last);
            tombstone.uid == uid || older
        })
    }

    /// The watch told of the end. Says whether that was remembered.
    pub(super) fn remove(&mut self, key: &Key, uid: &str) -> bool {
        let Some(here) = self.0.get_mut(key) else { return false };
        let before = here.len();
        here.retain(|tombstone| tombstone.uid != uid);
        let was_known = here.len() < before;
        if here.is_empty() {
            self.0.remove(key);
        }
        was_known
    }

    /// The list of this number is complete.
    pub(super) fn list_ended(&mut self, number: u64) {
        self.retain(|until| !matches!(until, Until::Watched { list } if list <= number));
    }

    /// Every write before the one of this number is answered.
    pub(super) fn answered(&mut self, number: u64) {
        self.retain(|until| !matches!(until, Until::Answered { write } if write <= number));
    }

    fn retain(&mut self, keep: impl Fn(Until) -> bool) {
        self.0.retain(|_, here| {
            here.retain(|tombstone| keep(tombstone.until));
            !here.is_empty()
        });
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}
