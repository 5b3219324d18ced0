//! The latest reconciles of a manager's controllers, as `/debug/reconciles` tells them.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{Backlog, Key, Reasons};

/// How many reconciles are kept of each controller.
const KEPT: usize = 256;

/// The latest reconciles of one controller; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    controller: Arc<str>,
    entries: Arc<Mutex<VecDeque<Entry>>>,
}

/// A reconcile that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) began: Timestamp,
    pub(crate) took: Duration,
    /// As text: the objects that reasons are about are not kept for it.
    pub(crate) reasons: String,
    pub(crate) waited: Duration,
    /// `done`, `requeue after 30s`, or what went wrong.
    pub(crate) outcome: String,
}

impl Journal {
    pub(crate) fn new(controller: Arc<str>) -> Self {
        Self { controller, entries: Arc::default() }
    }

    pub(crate) fn note(
        &self,
        key: &Key,
        reasons: &Reasons,
        began: Timestamp,
        took: Duration,
        outcome: String,
    ) {
        let (key, waited, reasons) = (key.clone(), reasons.waited(), reasons.to_string());
        let entry = Entry { key, began, took, reasons, waited, outcome };
        let mut entries = self.entries.lock();
        if entries.len() == KEPT {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    /// The latest first.
    fn report(&self) -> Vec<Value> {
        let entries = self.entries.lock();
        let told = |entry: &Entry| {
            json!({
                "key": entry.key.to_string(), "began": entry.began.to_string(), "reasons": entry.reasons,
                "waitedSeconds": entry.waited.as_secs_f64(), "tookSeconds": entry.took.as_secs_f64(),
                "outcome": entry.outcome,
            })
        };
        entries.iter().rev().map(told).collect()
    }
}

/// The journals of all controllers of a manager, and what their queues hold; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journals {
    journals: Arc<Mutex<Vec<Journal>>>,
    backlog: Backlog,
}

impl Journals {
    pub(crate) fn new(backlog: Backlog) -> Self {
        Self { journals: Arc::default(), backlog }
    }

    /// The journal of one more controller.
    pub(crate) fn begin(&self, controller: Arc<str>) -> Journal {
        let journal = Journal::new(controller);
        self.journals.lock().push(journal.clone());
        journal
    }

    /// What there is, as JSON: for each controller how many keys wait, those that fail, and the latest reconciles.
    pub(crate) fn json(&self) -> String {
        let (failing, waiting) = (self.backlog.failing(), self.backlog.waiting());
        let journals = self.journals.lock().clone();
        let told = journals.iter().map(|journal| {
            let of_it = failing.iter().filter(|failing| *failing.controller == *journal.controller);
            let failing: Vec<Value> = of_it
                .map(|failing| {
                    json!({
                        "key": failing.key.to_string(), "error": failing.error,
                        "failedSecondsAgo": failing.since.as_secs_f64(), "retryInSeconds": failing.after.as_secs_f64(),
                    })
                })
                .collect();
            json!({
                "controller": &*journal.controller, "waiting": waiting.get(&journal.controller).copied().unwrap_or(0),
                "failing": failing, "reconciles": journal.report(),
            })
        });
        json!({"controllers": told.collect::<Vec<_>>()}).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_reconciles_are_kept_and_told_the_last_one_first() {
        let journals = Journals::default();
        let journal = journals.begin("web".into());
        for number in 0..KEPT + 10 {
            let key = Key::namespaced("default", number.to_string());
            let took = Duration::from_millis(5);
            journal.note(&key, &Reasons::default(), Timestamp::UNIX_EPOCH, took, "done".to_owned());
        }
        let told: Value = serde_json::from_str(&journals.json()).expect("JSON");
        let web = &told["controllers"][0];
        assert_eq!((web["controller"].as_str(), web["waiting"].as_u64()), (Some("web"), Some(0)));
        let reconciles = web["reconciles"].as_array().expect("a list");
        assert_eq!(reconciles.len(), KEPT);
        assert_eq!(reconciles[0]["key"], format!("default/{}", KEPT + 9));
    }
}
