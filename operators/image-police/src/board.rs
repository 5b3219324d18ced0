//! What is known of each namespace between two passes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::{
    WhiteList,
    plan::{Known, MINUTE, Plan},
};

/// Each namespace that has lists, and what is known of it.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<BTreeMap<String, Entry>>);

#[derive(Debug, Default)]
struct Entry {
    known: Known,
    /// The lists of the cluster that are enforced in it.
    wide: Vec<String>,
}

/// What a list of the cluster sees of its namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) namespaces: i64,
    pub(crate) violations: i64,
}

impl Board {
    /// What is known of a namespace. Who has just begun to work knows what the statuses of its lists tell.
    pub(crate) fn known<'a>(
        &self,
        namespace: &str,
        lists: impl Iterator<Item = &'a WhiteList>,
        now: Timestamp,
    ) -> Known {
        let mut board = self.0.lock();
        if let Some(entry) = board.get_mut(namespace) {
            entry.known.deletions.retain(|at| now.duration_since(*at) < MINUTE);
            return entry.known.clone();
        }
        let mut known = Known::default();
        for status in lists.filter_map(|list| list.status.as_ref()) {
            known.violations.extend(status.violations.iter().cloned());
            known.exempt.extend(status.exempt.iter().cloned());
        }
        known
    }

    /// Keeps what a pass found, and when it deleted something. A namespace that nobody judges is forgotten.
    pub(crate) fn keep(&self, namespace: &str, plan: &Plan, before: Known, deleted: &[Timestamp]) {
        let mut board = self.0.lock();
        let mut deletions = before.deletions;
        deletions.extend_from_slice(deleted);
        if plan.judges.is_empty() && deletions.is_empty() {
            board.remove(namespace);
            return;
        }
        let known = Known { violations: plan.violations.clone(), exempt: plan.exempt.clone(), deletions };
        board.insert(namespace.to_owned(), Entry { known, wide: plan.wide.clone() });
    }

    /// Forgets a namespace.
    pub(crate) fn forget(&self, namespace: &str) {
        self.0.lock().remove(namespace);
    }

    /// What the list of the cluster of this name sees.
    pub(crate) fn sum(&self, list: &str) -> Sum {
        let board = self.0.lock();
        let mut sum = Sum::default();
        for entry in board.values().filter(|entry| entry.wide.iter().any(|name| name == list)) {
            sum.namespaces += 1;
            sum.violations += i64::try_from(entry.known.violations.len()).unwrap_or(i64::MAX);
        }
        sum
    }
}
