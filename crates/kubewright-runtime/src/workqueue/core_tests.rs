//! The core against a model that has one record per key and looks through all of them.

use std::{cmp::Reverse, time::Duration};

use proptest::{collection::vec, prelude::*};
use tokio::time::Instant;

use super::{
    Priority, RateLimit,
    core::{Core, LOWEST_TURN, Later, Taken},
};
use crate::reason::Reason;

const KEYS: usize = 4;

#[derive(Clone, Debug)]
enum Op {
    Add(usize, i32),
    AddAfter(usize, u64),
    Fail(usize),
    Forget(usize),
    Get,
    Done(usize),
    Wait(u64),
    ShutDown,
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..KEYS;
    prop_oneof![
        4 => (key(), -1..2).prop_map(|(key, priority)| Op::Add(key, priority)),
        3 => (key(), 0..40_u64).prop_map(|(key, ms)| Op::AddAfter(key, ms)),
        2 => key().prop_map(Op::Fail),
        1 => key().prop_map(Op::Forget),
        6 => Just(Op::Get),
        4 => key().prop_map(Op::Done),
        4 => (0..30_u64).prop_map(Op::Wait),
        1 => Just(Op::ShutDown),
    ]
}

#[derive(Clone, Default)]
struct Record {
    /// That it is wanted, and how much.
    wanted: Option<i32>,
    /// That it is worked on, and how much it was wanted then.
    busy: Option<i32>,
    /// When it took its place in the order, if it has one.
    position: Option<u64>,
    /// When it is to be added, and when that was planned.
    plan: Option<(Instant, u64)>,
    /// How much it is wanted then.
    planned: i32,
    /// Whether that is a retry.
    is_retry: bool,
    failures: u32,
    /// When the retry was due, if this try came before it.
    early: Option<Instant>,
}

#[derive(Default)]
struct Model {
    records: [Record; KEYS],
    steps: u64,
    gets: u64,
    shut_down: bool,
}

impl Model {
    fn step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }

    fn add(&mut self, key: usize, priority: i32) {
        let position = self.step();
        let record = &mut self.records[key];
        if self.shut_down {
            return;
        }
        if record.wanted.is_none() {
            record.position = record.busy.is_none().then_some(position);
        }
        record.wanted = record.wanted.max(Some(priority));
    }

    fn add_at(&mut self, key: usize, time: Instant, is_retry: bool) {
        let step = self.step();
        let record = &mut self.records[key];
        if self.shut_down {
            return;
        }
        let now = record.busy.or(record.wanted).unwrap_or(0);
        record.planned = if record.plan.is_some() { record.planned.max(now) } else { now };
        if record.plan.is_none_or(|(planned, _)| time < planned) {
            record.plan = Some((time, step));
            record.is_retry = is_retry;
        }
    }

    fn fail(&mut self, key: usize, now: Instant) {
        let back_off = |failures| Duration::from_millis(5 * 2_u64.pow(failures));
        let failures = self.records[key].failures;
        if let Some(due) = self.records[key].early.take() {
            let due = if due > now { due } else { now + back_off(failures.saturating_sub(1)) };
            self.add_at(key, due, true);
            return;
        }
        self.records[key].failures += 1;
        self.add_at(key, now + back_off(failures), true);
    }

    fn forget(&mut self, key: usize) {
        let record = &mut self.records[key];
        if record.failures > 0 {
            (record.failures, record.early) = (0, None);
        }
    }

    fn get(&mut self, now: Instant) -> Option<usize> {
        let due = |model: &Self| {
            let due = (0..KEYS).filter(|key| model.records[*key].plan.is_some_and(|(time, _)| time <= now));
            due.min_by_key(|key| model.records[*key].plan)
        };
        while let Some(key) = due(self) {
            self.records[key].plan = None;
            self.add(key, self.records[key].planned);
        }
        let ready = (0..KEYS).filter(|key| self.records[*key].position.is_some());
        let lowest = ready.clone().filter_map(|key| self.records[key].wanted).min()?;
        self.gets += 1;
        let only_lowest = self.gets.is_multiple_of(LOWEST_TURN);
        let key = ready
            .filter(|key| !only_lowest || self.records[*key].wanted == Some(lowest))
            .min_by_key(|key| (Reverse(self.records[*key].wanted), self.records[*key].position))?;
        let Record { failures, wanted, plan, is_retry, .. } = self.records[key];
        let early = plan.filter(|_| is_retry).map(|(time, _)| time);
        self.records[key] = Record { busy: wanted, failures, early, ..Record::default() };
        Some(key)
    }

    fn done(&mut self, key: usize) {
        let position = self.step();
        let record = &mut self.records[key];
        if record.busy.take().is_some() {
            record.position = record.wanted.map(|_| position);
        }
    }

    fn shut_down(&mut self) {
        self.shut_down = true;
        self.records.iter_mut().for_each(|record| record.plan = None);
    }
}

proptest! {
    #[test]
    fn the_queue_agrees_with_the_model(ops in vec(op(), 0..120)) {
        let (mut core, mut model, mut now) = (Core::new(RateLimit::default()), Model::default(), Instant::now());
        for op in ops {
            match op {
                Op::Add(key, priority) => { core.add(key, Priority(priority), now, Reason::Added); model.add(key, priority); }
                Op::AddAfter(key, ms) => {
                    let time = now + Duration::from_millis(ms);
                    core.add_at(key, time, Later::Requeue);
                    model.add_at(key, time, false);
                }
                Op::Fail(key) => { core.add_after_failure(key, now); model.fail(key, now); }
                Op::Forget(key) => { core.forget(&key); model.forget(key); }
                Op::Get => prop_assert_eq!(core.get(now).map(|taken| taken.key), model.get(now)),
                Op::Done(key) => { core.done(&key); model.done(key); }
                Op::Wait(ms) => now += Duration::from_millis(ms),
                Op::ShutDown => { core.shut_down(); model.shut_down(); }
            }
            let next = model.records.iter().filter_map(|record| record.plan).map(|(time, _)| time).min();
            prop_assert_eq!(core.next_due(), next);
            prop_assert_eq!(core.len(), model.records.iter().filter(|record| record.position.is_some()).count());
            let drained = model.shut_down && model.records.iter().all(|record| record.wanted.is_none());
            prop_assert_eq!(core.is_drained(), drained);
        }
    }
}

fn got<T>(taken: Option<Taken<T>>) -> Option<T> {
    taken.map(|taken| taken.key)
}

#[test]
fn the_back_off_doubles_up_to_a_thousand_seconds_and_starts_anew_when_forgotten() {
    let (mut core, now) = (Core::new(RateLimit::default()), Instant::now());
    let mut delays = Vec::new();
    for _ in 0..40 {
        core.add_after_failure("key", now);
        delays.push(core.next_due().map(|due| due - now));
        let late = now + Duration::from_secs(2000);
        assert_eq!(got(core.get(late)), Some("key"));
        core.done(&"key");
    }
    let millis = |ms| Some(Duration::from_millis(ms));
    assert_eq!(delays[..4], [millis(5), millis(10), millis(20), millis(40)]);
    assert_eq!(delays[17], millis(5 << 17));
    assert!(delays[18..].iter().all(|delay| *delay == millis(1_000_000)));
    core.forget(&"key");
    core.add_after_failure("key", now);
    assert_eq!(core.next_due(), Some(now + Duration::from_millis(5)));
}

#[test]
fn a_try_before_the_retry_is_due_puts_it_off_no_further() {
    let (mut core, now) = (Core::new(RateLimit::default()), Instant::now());
    (0..10).for_each(|_| {
        core.add_after_failure("key", now);
        assert_eq!(got(core.get(now + Duration::from_secs(60))), Some("key"));
        core.done(&"key");
    });
    core.add_after_failure("key", now);
    let due = now + Duration::from_millis(5 << 10);
    assert_eq!(core.next_due(), Some(due));
    for millis in 0..100 {
        let event = now + Duration::from_millis(millis);
        core.add("key", Priority::NORMAL, event, Reason::Added);
        assert_eq!(got(core.get(event)), Some("key"));
        core.add_after_failure("key", event);
        core.done(&"key");
        assert_eq!((core.next_due(), core.failures(&"key")), (Some(due), 11));
    }
    let (event, late) = (due - Duration::from_millis(1), due + Duration::from_millis(1));
    core.add("key", Priority::NORMAL, event, Reason::Added);
    assert_eq!(got(core.get(event)), Some("key"));
    core.add_after_failure("key", late);
    core.done(&"key");
    assert_eq!(
        core.next_due(),
        Some(late + Duration::from_millis(5 << 10)),
        "it was due while it was worked on"
    );
    assert_eq!(got(core.get(late + Duration::from_secs(60))), Some("key"));
    core.add_after_failure("key", late);
    assert_eq!(core.failures(&"key"), 12, "the retry itself counts");
}

#[test]
fn what_comes_later_with_a_higher_priority_is_worked_on_first_and_the_lowest_is_not_starved() {
    let (mut core, now) = (Core::new(RateLimit::default()), Instant::now());
    (0..100).for_each(|key| core.add(key, Priority::LOW, now, Reason::Added));
    core.add(200, Priority::NORMAL, now, Reason::Added);
    core.add(50, Priority::NORMAL, now, Reason::Added);
    core.add(201, Priority::NORMAL, now, Reason::Added);
    let first: Vec<_> = (0..5).filter_map(|_| got(core.get(now))).collect();
    assert_eq!(first, [50, 200, 201, 0, 1], "the raised one keeps the place that it took");
    let mut low = 0;
    for busy in 300..460 {
        core.add(busy, Priority::NORMAL, now, Reason::Added);
        low += usize::from(got(core.get(now)).is_some_and(|key| key < 100));
    }
    assert_eq!(low, 10);
}

#[test]
fn a_retry_has_the_priority_of_the_try() {
    let (mut core, now) = (Core::new(RateLimit::default()), Instant::now());
    core.add("low", Priority::LOW, now, Reason::Added);
    assert_eq!(got(core.get(now)), Some("low"));
    core.add_after_failure("low", now);
    core.done(&"low");
    core.add("low-2", Priority::LOW, now, Reason::Added);
    core.add("normal", Priority::NORMAL, now, Reason::Added);
    let later = now + Duration::from_secs(1);
    assert_eq!(
        [got(core.get(later)), got(core.get(later)), got(core.get(later))],
        [Some("normal"), Some("low-2"), Some("low")]
    );
}

#[test]
fn nothing_is_remembered_of_a_hundred_thousand_keys_that_were_worked_on() {
    let (mut core, now) = (Core::new(RateLimit::default()), Instant::now());
    for key in 0..100_000_u32 {
        core.add(key, Priority::LOW, now, Reason::Added);
        assert_eq!(got(core.get(now)), Some(key));
        if key % 2 == 0 {
            core.add_after_failure(key, now);
            core.forget(&key);
            core.done(&key);
            assert_eq!(got(core.get(now + Duration::from_secs(1))), Some(key));
        }
        core.done(&key);
    }
    assert_eq!(core.remembered(), 0);
}

fn failing(core: &Core<&'static str>) -> Vec<(&'static str, String, Duration)> {
    core.failing().map(|(key, last, due)| (*key, last.why.clone(), due - last.at)).collect()
}

#[test]
fn why_a_key_failed_is_known_until_it_is_forgotten() {
    let (mut core, now) = (Core::new(RateLimit::default()), Instant::now());
    core.explain_failure(&"a", "nobody asked".into(), now);
    for (key, why) in [("a", "first"), ("b", "other"), ("a", "second")] {
        core.add_after_failure(key, now);
        core.explain_failure(&key, why.into(), now);
    }
    let (soon, later) = (Duration::from_millis(5), now + Duration::from_millis(5));
    assert_eq!(failing(&core), [("a", "second".into(), soon), ("b", "other".into(), soon)]);
    assert_eq!(got(core.get(later)), Some("a"));
    assert_eq!(failing(&core), [], "one is being tried, the other is due");
    core.forget(&"a");
    core.done(&"a");
    core.forget(&"b");
    assert_eq!(failing(&core), []);
    assert_eq!(got(core.get(later)), Some("b"));
    core.done(&"b");
    assert_eq!(core.remembered(), 0);
}
