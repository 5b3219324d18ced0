//! The core against a model that has one record per key and looks through all of them.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};
use tokio::time::Instant;

use super::core::Core;

const KEYS: usize = 4;

#[derive(Clone, Debug)]
enum Op {
    Add(usize),
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
        4 => key().prop_map(Op::Add),
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
    wanted: bool,
    busy: bool,
    /// When it took its place in the order, if it has one.
    place: Option<u64>,
    /// When it is to be added, and when that was planned.
    plan: Option<(Instant, u64)>,
    failures: u32,
}

#[derive(Default)]
struct Model {
    records: [Record; KEYS],
    steps: u64,
    shut_down: bool,
}

impl Model {
    fn step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }

    fn add(&mut self, key: usize) {
        let place = self.step();
        let record = &mut self.records[key];
        if !self.shut_down && !record.wanted {
            record.wanted = true;
            record.place = (!record.busy).then_some(place);
        }
    }

    fn add_at(&mut self, key: usize, time: Instant) {
        let step = self.step();
        let plan = &mut self.records[key].plan;
        if !self.shut_down && plan.is_none_or(|(planned, _)| time < planned) {
            *plan = Some((time, step));
        }
    }

    fn fail(&mut self, key: usize, now: Instant) {
        let failures = self.records[key].failures;
        self.records[key].failures += 1;
        self.add_at(key, now + Duration::from_millis(5 * 2_u64.pow(failures)));
    }

    fn get(&mut self, now: Instant) -> Option<usize> {
        let due = |model: &Self| {
            let due = (0..KEYS).filter(|key| model.records[*key].plan.is_some_and(|(time, _)| time <= now));
            due.min_by_key(|key| model.records[*key].plan)
        };
        while let Some(key) = due(self) {
            self.records[key].plan = None;
            self.add(key);
        }
        let ready = (0..KEYS).filter(|key| self.records[*key].place.is_some());
        let key = ready.min_by_key(|key| self.records[*key].place)?;
        let failures = self.records[key].failures;
        self.records[key] = Record { busy: true, failures, ..Record::default() };
        Some(key)
    }

    fn done(&mut self, key: usize) {
        let place = self.step();
        let record = &mut self.records[key];
        if record.busy {
            record.busy = false;
            record.place = record.wanted.then_some(place);
        }
    }

    fn shut_down(&mut self) {
        self.shut_down = true;
        self.records.iter_mut().for_each(|record| record.plan = None);
    }
}

proptest! {
    #[test]
    fn the_queue_agrees_with_the_model(ops in vec(op(), 0..80)) {
        let (mut core, mut model, mut now) = (Core::new(), Model::default(), Instant::now());
        for op in ops {
            match op {
                Op::Add(key) => { core.add(key, now); model.add(key); }
                Op::AddAfter(key, ms) => {
                    let time = now + Duration::from_millis(ms);
                    core.add_at(key, time);
                    model.add_at(key, time);
                }
                Op::Fail(key) => { core.add_after_failure(key, now); model.fail(key, now); }
                Op::Forget(key) => { core.forget(&key); model.records[key].failures = 0; }
                Op::Get => prop_assert_eq!(core.get(now).map(|taken| taken.key), model.get(now)),
                Op::Done(key) => { core.done(&key); model.done(key); }
                Op::Wait(ms) => now += Duration::from_millis(ms),
                Op::ShutDown => { core.shut_down(); model.shut_down(); }
            }
            let next = model.records.iter().filter_map(|record| record.plan).map(|(time, _)| time).min();
            prop_assert_eq!(core.next_due(), next);
            prop_assert_eq!(core.len(), model.records.iter().filter(|record| record.place.is_some()).count());
            let drained = model.shut_down && model.records.iter().all(|record| !record.wanted);
            prop_assert_eq!(core.is_drained(), drained);
        }
    }
}

#[test]
fn the_back_off_doubles_up_to_a_thousand_seconds_and_starts_anew_when_forgotten() {
    let (mut core, now) = (Core::new(), Instant::now());
    let mut delays = Vec::new();
    for _ in 0..40 {
        core.add_after_failure("key", now);
        delays.push(core.next_due().map(|due| due - now));
        let late = now + Duration::from_secs(2000);
        assert_eq!(core.get(late).map(|taken| taken.key), Some("key"));
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
