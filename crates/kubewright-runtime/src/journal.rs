//! The latest reconciles of a manager's controllers, for `/debug/reconciles` and for who observes them.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{Access, Backlog, Key, Reasons, accesses::Accesses};

/// How many reconciles are kept of each controller.
const KEPT: usize = 256;

/// A reconcile that has ended, as [`Manager::on_reconcile`](crate::Manager::on_reconcile) is told of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReconcileRecord {
    /// The controller.
    pub controller: Arc<str>,
    /// What was reconciled.
    pub key: Key,
    /// When it began, by the manager's clock.
    pub began: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// How long the key had waited in the queue since it was due.
    pub waited: Duration,
    /// Why it was reconciled, as [`Reasons`] are displayed: the objects that they are about are not kept for it.
    pub reasons: String,
    /// `done`, `requeue after 30s`, or what went wrong.
    pub outcome: String,
    /// Whether it went wrong.
    pub has_failed: bool,
    /// What it read and wrote through its [`Context`](crate::Context), in its order, the first 100 different ones: from the cache, and by requests. What
    /// it asks by [`Context::client`](crate::Context::client), and what is done in tasks that it spawns, is not among it.
    pub accesses: Vec<Access>,
    /// How many other accesses there were.
    pub accesses_left_out: u64,
}

/// How a reconcile went that has ended.
pub(crate) struct Reconciled {
    pub(crate) began: Timestamp,
    pub(crate) took: Duration,
    /// What it read and wrote, where that was noted.
    pub(crate) accesses: Option<Accesses>,
}

type Observer = Arc<dyn Fn(&ReconcileRecord) + Send + Sync>;

/// Who wants to know of reconciles.
#[derive(Default)]
struct Listeners {
    /// Whether somebody may ask for those that are kept.
    may_ask: AtomicBool,
    observers: Mutex<Vec<Observer>>,
}

impl Listeners {
    fn want_to_know(&self) -> bool {
        self.may_ask.load(Ordering::Relaxed) || !self.observers.lock().is_empty()
    }
}

/// The latest reconciles of one controller; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    controller: Arc<str>,
    kept: Arc<Mutex<Kept>>,
    listeners: Arc<Listeners>,
}

#[derive(Debug, Default)]
struct Kept {
    records: VecDeque<ReconcileRecord>,
    /// How many there were before those.
    forgotten: u64,
}

impl Journal {
    /// Where a reconcile notes what it reads and writes, where somebody wants to know.
    pub(crate) fn accesses(&self) -> Option<Accesses> {
        self.listeners.want_to_know().then(Accesses::default)
    }

    /// Notes a reconcile that has ended, where somebody wants to know. `outcome` says how, and whether it went wrong.
    pub(crate) fn note(
        &self,
        key: &Key,
        reasons: &Reasons,
        reconciled: Reconciled,
        outcome: impl FnOnce() -> (String, bool),
    ) {
        let observers = self.listeners.observers.lock().clone();
        let may_ask = self.listeners.may_ask.load(Ordering::Relaxed);
        if observers.is_empty() && !may_ask {
            return;
        }
        let (outcome, has_failed) = outcome();
        let Reconciled { began, took, accesses } = reconciled;
        let (accesses, accesses_left_out) = accesses.map(|accesses| accesses.take()).unwrap_or_default();
        let record = ReconcileRecord {
            controller: Arc::clone(&self.controller),
            key: key.clone(),
            began,
            took,
            waited: reasons.waited(),
            reasons: reasons.to_string(),
            outcome,
            has_failed,
            accesses,
            accesses_left_out,
        };
        observers.iter().for_each(|observer| observer(&record));
        if may_ask {
            let mut kept = self.kept.lock();
            if kept.records.len() == KEPT {
                kept.records.pop_front();
                kept.forgotten += 1;
            }
            kept.records.push_back(record);
        }
    }

    /// The latest first.
    fn report(&self) -> Vec<Value> {
        self.kept.lock().records.iter().rev().map(shown).collect()
    }

    /// Those after the first `position` that are kept, oldest first, and the position behind all.
    fn since(&self, position: u64) -> (Vec<Value>, u64) {
        let kept = self.kept.lock();
        let skipped = usize::try_from(position.saturating_sub(kept.forgotten)).unwrap_or(usize::MAX);
        let records = kept.records.iter().skip(skipped).map(shown).collect();
        (records, kept.forgotten + kept.records.len() as u64)
    }
}

fn shown(record: &ReconcileRecord) -> Value {
    json!({
        "key": record.key.to_string(), "began": record.began.to_string(), "reasons": record.reasons,
        "waitedSeconds": record.waited.as_secs_f64(), "tookSeconds": record.took.as_secs_f64(),
        "outcome": record.outcome, "failed": record.has_failed, "accesses": record.accesses,
        "accessesLeftOut": record.accesses_left_out,
    })
}

/// The journals of all controllers of a manager, and what their queues hold; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journals {
    journals: Arc<Mutex<Vec<Journal>>>,
    listeners: Arc<Listeners>,
    backlog: Backlog,
}

impl Journals {
    pub(crate) fn new(backlog: Backlog) -> Self {
        Self { backlog, ..Self::default() }
    }

    /// Keeps the latest reconciles from now on: somebody may ask.
    pub(crate) fn keep(&self) {
        self.listeners.may_ask.store(true, Ordering::Relaxed);
    }

    /// Tells `observer` of each reconcile that ends from now on.
    pub(crate) fn observe(&self, observer: impl Fn(&ReconcileRecord) + Send + Sync + 'static) {
        self.listeners.observers.lock().push(Arc::new(observer));
    }

    /// The journal of one more controller.
    pub(crate) fn begin(&self, controller: Arc<str>) -> Journal {
        let journal = Journal { controller, kept: Arc::default(), listeners: Arc::clone(&self.listeners) };
        self.journals.lock().push(journal.clone());
        journal
    }

    /// What there is, as JSON: for each controller how many keys wait, those that fail, and the latest reconciles.
    pub(crate) fn json(&self) -> String {
        self.describe(Journal::report).to_string()
    }

    /// The same, with the reconciles that have ended since this was last called with these positions.
    pub(crate) fn since(&self, positions: &mut HashMap<Arc<str>, u64>) -> Value {
        self.describe(|journal| {
            let position = positions.entry(Arc::clone(&journal.controller)).or_default();
            let (records, next) = journal.since(*position);
            *position = next;
            records
        })
    }

    fn describe(&self, mut reconciles: impl FnMut(&Journal) -> Vec<Value>) -> Value {
        let (failing, waiting) = (self.backlog.failing(), self.backlog.waiting());
        let journals = self.journals.lock().clone();
        let described = journals.iter().map(|journal| {
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
                "failing": failing, "reconciles": reconciles(journal),
            })
        });
        json!({"controllers": described.collect::<Vec<_>>()})
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").field("may_ask", &self.may_ask).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reconciled() -> Reconciled {
        Reconciled { began: Timestamp::UNIX_EPOCH, took: Duration::from_millis(5), accesses: None }
    }

    fn note(journal: &Journal, name: &str) {
        let key = Key::namespaced("default", name);
        journal.note(&key, &Reasons::default(), reconciled(), || ("done".to_owned(), false));
    }

    #[test]
    fn the_latest_reconciles_are_kept_and_told_the_last_one_first() {
        let journals = Journals::default();
        journals.keep();
        let journal = journals.begin("web".into());
        for number in 0..KEPT + 10 {
            note(&journal, &number.to_string());
        }
        let told: Value = serde_json::from_str(&journals.json()).expect("JSON");
        let web = &told["controllers"][0];
        assert_eq!((web["controller"].as_str(), web["waiting"].as_u64()), (Some("web"), Some(0)));
        let reconciles = web["reconciles"].as_array().expect("a list");
        assert_eq!(reconciles.len(), KEPT);
        assert_eq!(reconciles[0]["key"], format!("default/{}", KEPT + 9));
    }

    #[test]
    fn each_reconcile_is_reported_once() {
        let journals = Journals::default();
        journals.keep();
        let (journal, mut positions) = (journals.begin("web".into()), HashMap::new());
        let mut since = || {
            let told = journals.since(&mut positions);
            let reconciles = told["controllers"][0]["reconciles"].as_array().cloned().unwrap_or_default();
            reconciles.iter().filter_map(|one| one["key"].as_str().map(str::to_owned)).collect::<Vec<_>>()
        };
        note(&journal, "a");
        note(&journal, "b");
        assert_eq!(since(), ["default/a", "default/b"]);
        note(&journal, "c");
        assert_eq!((since(), since()), (vec!["default/c".to_owned()], Vec::new()));
    }

    #[test]
    fn nothing_is_noted_where_nobody_wants_to_know_and_an_observer_is_told_of_all() {
        let journals = Journals::default();
        let journal = journals.begin("web".into());
        let dear = || -> (String, bool) { panic!("it is not asked for") };
        let key = Key::namespaced("default", "a");
        assert!(journal.accesses().is_none());
        journal.note(&key, &Reasons::default(), reconciled(), dear);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&seen);
        journals.observe(move |record| told.lock().push(record.key.to_string()));
        note(&journal, "b");
        assert_eq!(*seen.lock(), ["default/b"]);
        assert_eq!(journal.report(), Vec::<Value>::new(), "nobody may ask");
    }
}
