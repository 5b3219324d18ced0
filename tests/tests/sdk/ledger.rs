//! A record of who works on what.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

/// Who works on what. Two replicas on one key fail the test.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    working: BTreeMap<String, String>,
    /// Replica and key of every reconcile that ended, in order.
    done: Vec<(String, String)>,
    overlaps: Vec<String>,
}

/// A reconcile that goes on until it is dropped.
pub(crate) struct Working {
    ledger: Ledger,
    key: String,
    replica: String,
}

impl Ledger {
    /// `what` is a key, or anything that only one may do at a time.
    pub(crate) fn begin(&self, replica: &str, what: &str) -> Working {
        let mut entries = self.0.lock();
        if let Some(other) = entries.working.insert(what.to_owned(), replica.to_owned()) {
            entries.overlaps.push(format!("{replica} began {what} while {other} was at it"));
        }
        Working { ledger: self.clone(), key: what.to_owned(), replica: replica.to_owned() }
    }

    /// What was done since the last time, by key: who did it, in order.
    pub(crate) fn take(&self) -> BTreeMap<String, Vec<String>> {
        let mut by_key: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (replica, key) in std::mem::take(&mut self.0.lock().done) {
            by_key.entry(key).or_default().push(replica);
        }
        by_key
    }

    #[track_caller]
    pub(crate) fn assert_no_overlap(&self) {
        let overlaps = self.0.lock().overlaps.clone();
        assert!(overlaps.is_empty(), "{overlaps:#?}");
    }
}

impl Working {
    /// The reconcile ended; one that is only dropped did not.
    pub(crate) fn done(self) {
        self.ledger.0.lock().done.push((self.replica.clone(), self.key.clone()));
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.ledger.0.lock().working.remove(&self.key);
    }
}
