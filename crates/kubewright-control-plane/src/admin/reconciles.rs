//! What operators tell of their reconciles and queues.

use std::collections::{BTreeMap, VecDeque};
use std::mem;

use jiff::Timestamp;
use kubewright_meta::access::{Access, Found};
use kubewright_recording::{Author, Reconcile};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

/// How many reconciles are kept.
const KEPT: usize = 16_384;
/// Of how many controllers the queues are kept.
const MOST_QUEUES: usize = 1_024;
/// How many reconciles of each controller are shown at once, as an operator does itself.
const SHOWN: usize = 256;
/// How many accesses are kept of a reconcile, and of all together.
const LONGEST_ACCESSES: usize = 100;
const MOST_ACCESSES: usize = 65_536;
/// The most bytes of each text that is kept.
const LONGEST: usize = 2_000;
/// The most bytes of what names the objects of an access: a group and a plural, a namespace and a name are shorter.
const LONGEST_NAME: usize = 400;

/// The queue of a controller, as its operator told it last.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Queue {
    /// Whose it is.
    pub by: Author,
    /// The controller.
    pub controller: String,
    /// When that was told, in cluster time.
    pub time: Timestamp,
    /// How many keys are due.
    pub waiting: u64,
    /// The keys that failed and are tried again later.
    pub failing: Vec<FailingKey>,
}

/// A key that failed and is tried again later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FailingKey {
    /// Namespace and name.
    pub key: String,
    /// Why it failed.
    pub error: String,
    /// In how many seconds it is tried again, from when it was told on.
    #[serde(default)]
    pub retry_in_seconds: f64,
}

/// Report of an operator on its controllers, in the form of its `/debug/reconciles`.
#[derive(Debug, Deserialize)]
pub(super) struct OperatorReport {
    controllers: Vec<ControllerReport>,
}

#[derive(Debug, Deserialize)]
struct ControllerReport {
    controller: String,
    #[serde(default)]
    waiting: u64,
    #[serde(default)]
    failing: Vec<FailingKey>,
    #[serde(default)]
    reconciles: Vec<ReportedReconcile>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReportedReconcile {
    key: String,
    began: Timestamp,
    #[serde(default)]
    reasons: String,
    #[serde(default)]
    waited_seconds: f64,
    #[serde(default)]
    took_seconds: f64,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    failed: bool,
    #[serde(default)]
    accesses: Vec<Access>,
    #[serde(default)]
    accesses_left_out: u64,
}

/// The last reconciles, and the queues.
#[derive(Debug, Default)]
pub(super) struct Reconciles {
    kept: VecDeque<Reconcile>,
    /// How many accesses they have together.
    accesses: usize,
    forgotten: u64,
    queues: BTreeMap<(String, String, String), Queue>,
    /// How many there ever were, and how often queues were told.
    pub(super) count: watch::Sender<u64>,
}

impl Reconciles {
    /// Notes a reconcile.
    pub(super) fn add(&mut self, reconcile: Reconcile) {
        self.accesses += reconcile.accesses.len();
        self.kept.push_back(reconcile);
        while self.kept.len() > KEPT || self.accesses > MOST_ACCESSES {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.accesses -= oldest.accesses.len();
            self.forgotten += 1;
        }
        self.count.send_modify(|count| *count += 1);
    }

    /// Notes what an operator tells at a time. The clock of a program of its own is its own: a reconcile that has ended later than
    /// it is told of has ended now.
    pub(super) fn record(&mut self, by: &Author, now: Timestamp, report: OperatorReport) {
        for ControllerReport { controller, waiting, failing, reconciles } in report.controllers {
            let controller = short(controller);
            for mut one in reconciles {
                let surplus = one.accesses.len().saturating_sub(LONGEST_ACCESSES);
                one.accesses.truncate(LONGEST_ACCESSES);
                self.add(Reconcile {
                    time: one.began.min(now),
                    by: by.clone(),
                    controller: controller.clone(),
                    key: short(one.key),
                    reasons: short(one.reasons),
                    waited: one.waited_seconds,
                    took: one.took_seconds,
                    outcome: short(one.outcome),
                    failed: one.failed,
                    accesses: one.accesses.into_iter().map(short_access).collect(),
                    accesses_left_out: one.accesses_left_out.saturating_add(surplus as u64),
                });
            }
            let failing = failing.into_iter().take(KEPT);
            let failing =
                failing.map(|one| FailingKey { key: short(one.key), error: short(one.error), ..one });
            let place = (by.user.clone(), by.program.clone(), controller.clone());
            if self.queues.len() < MOST_QUEUES || self.queues.contains_key(&place) {
                let failing = failing.collect();
                self.queues.insert(place, Queue { by: by.clone(), controller, time: now, waiting, failing });
            }
        }
        self.count.send_modify(|count| *count += 1);
    }

    /// Those after the first `position` that are kept, and the position behind all.
    pub(super) fn since(&self, position: u64) -> (Vec<Reconcile>, u64) {
        let skipped = usize::try_from(position.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        let reconciles = self.kept.iter().skip(skipped).cloned().collect();
        (reconciles, self.forgotten + self.kept.len() as u64)
    }

    /// The reconcile at a position, if it is kept.
    pub(super) fn at(&self, position: u64) -> Option<&Reconcile> {
        self.kept.get(usize::try_from(position.checked_sub(self.forgotten)?).ok()?)
    }

    /// What there is now, controller by controller, in the form of an operator's `/debug/reconciles`: the latest reconciles first.
    pub(super) fn show(&self, now: Timestamp) -> Value {
        let mut latest: BTreeMap<(&str, &str, &str), Vec<&Reconcile>> = BTreeMap::new();
        for (user, program, controller) in self.queues.keys() {
            latest.insert((user, program, controller), Vec::new());
        }
        for one in self.kept.iter().rev() {
            let of_it = latest.entry((&one.by.user, &one.by.program, &one.controller)).or_default();
            if of_it.len() < SHOWN {
                of_it.push(one);
            }
        }
        let controllers = latest.into_iter().map(|((user, program, controller), reconciles)| {
            let place = (user.to_owned(), program.to_owned(), controller.to_owned());
            let queue = self.queues.get(&place);
            let failing = queue.into_iter().flat_map(|queue| {
                let since = now.duration_since(queue.time).as_secs_f64();
                queue.failing.iter().map(move |one| {
                    json!({"key": one.key, "error": one.error, "retryInSeconds": (one.retry_in_seconds - since).max(0.0)})
                })
            });
            json!({
                "user": user, "userAgent": program, "controller": controller,
                "waiting": queue.map_or(0, |queue| queue.waiting),
                "failing": failing.collect::<Vec<_>>(),
                "reconciles": reconciles.into_iter().map(shown).collect::<Vec<_>>(),
            })
        });
        json!({"controllers": controllers.collect::<Vec<_>>()})
    }

    /// The queues of all controllers that have told of them.
    pub(super) fn queues(&self) -> Vec<Queue> {
        self.queues.values().cloned().collect()
    }
}

fn shown(one: &Reconcile) -> Value {
    json!({
        "key": one.key, "began": one.time.to_string(), "reasons": one.reasons, "waitedSeconds": one.waited,
        "tookSeconds": one.took, "outcome": one.outcome, "failed": one.failed, "accesses": one.accesses,
        "accessesLeftOut": one.accesses_left_out,
    })
}

fn short_access(mut access: Access) -> Access {
    for text in [&mut access.verb, &mut access.resource, &mut access.key] {
        *text = cut(mem::take(text), LONGEST_NAME);
    }
    if let Found::Version(version) = &mut access.found {
        *version = cut(mem::take(version), LONGEST_NAME);
    }
    access
}

fn short(text: String) -> String {
    cut(text, LONGEST)
}

fn cut(mut text: String, longest: usize) -> String {
    text.truncate(text.floor_char_boundary(longest));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn report(reconciles: &serde_json::Value, waiting: u64) -> OperatorReport {
        let report = json!({"controllers": [{"controller": "web", "waiting": waiting,
            "failing": [{"key": "default/b", "error": "no", "retryInSeconds": 2.0}], "reconciles": reconciles}]});
        kubewright_objects::from_value(report).expect("a report")
    }

    #[test]
    fn reconciles_are_given_once_and_of_queues_the_last_that_was_told() {
        let (mut all, by) = (Reconciles::default(), Author { user: "u".into(), program: "web/1".into() });
        let one = |key: &str, began: i64| json!({"key": key, "began": second(began).to_string(), "outcome": "done"});
        all.record(&by, second(10), report(&json!([one("default/a", 9), one("default/b", 99)]), 3));
        let (told, position) = all.since(0);
        let told: Vec<_> = told.iter().map(|one| (&*one.key, one.time.as_second())).collect();
        assert_eq!(told, [("default/a", 9), ("default/b", 10)], "none is later than now");
        all.record(&by, second(11), report(&json!([]), 0));
        assert_eq!(all.since(position).0, []);
        let queues = all.queues();
        assert_eq!((queues.len(), queues[0].waiting, &*queues[0].failing[0].key), (1, 0, "default/b"));
        let shown = &all.show(second(12))["controllers"][0];
        assert_eq!(shown["failing"][0]["retryInSeconds"], 1.0, "a second has passed since");
        assert_eq!(shown["reconciles"][0]["key"], "default/b", "the latest comes first");
    }

    #[test]
    fn the_oldest_reconciles_are_forgotten_and_texts_are_cut() {
        let mut all = Reconciles::default();
        for number in 0..KEPT + 1 {
            all.add(Reconcile { key: number.to_string(), ..Reconcile::default() });
        }
        assert_eq!((all.since(0).0.len(), &*all.since(0).0[0].key), (KEPT, "1"));
        assert_eq!(all.at(0).map(|one| &*one.key), None, "it is forgotten");
        assert_eq!(all.at(1).map(|one| &*one.key), Some("1"));
        assert_eq!(short("é".repeat(LONGEST)).len(), LONGEST);
    }

    #[test]
    fn accesses_are_kept_as_far_as_there_is_room_and_what_is_left_out_is_counted() {
        let (mut all, by) = (Reconciles::default(), Author::default());
        let access = |number: usize| json!({"verb": "get", "resource": "/pods", "key": format!("default/{number}"), "version": "7"});
        let accesses: Vec<_> = (0..LONGEST_ACCESSES + 5).map(access).collect();
        let one = json!({"key": "default/a", "began": second(9).to_string(), "accesses": accesses, "accessesLeftOut": 2});
        for _ in 0..MOST_ACCESSES / LONGEST_ACCESSES + 1 {
            all.record(&by, second(10), report(&json!([one]), 0));
        }
        let kept = all.since(0).0;
        assert_eq!(
            (kept.len(), kept[0].accesses.len(), kept[0].accesses_left_out),
            (MOST_ACCESSES / LONGEST_ACCESSES, LONGEST_ACCESSES, 7)
        );
        let shown = &all.show(second(12))["controllers"][0]["reconciles"][0]["accesses"][0];
        assert_eq!(*shown, json!({"verb": "get", "resource": "/pods", "key": "default/0", "version": "7"}));
    }
}
