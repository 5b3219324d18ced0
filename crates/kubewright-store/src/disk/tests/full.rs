//! A disk that has no room, and has room again.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::join_all;
use proptest::prelude::*;

use super::sim::Does;
use super::*;

/// What a commit does to the disk, and what beginning a new log does.
const STAGES: [Does; 5] = [Does::Append, Does::Sync, Does::Create, Does::Rename, Does::SyncFolder];

/// A store on a disk that has no room for what one of `stages` does, after five commits and a refusal; the refusal is
/// given, too.
fn full_at(stages: &'static [Does]) -> (Disk<Tag>, Sim, Vec<Step>, CommitError<Tag>) {
    let (sim, story) = (Sim::default(), story(10));
    let store = open(&sim, LONG).expect("new");
    for step in &story[..5] {
        wait(take(&store, step)).expect("no conflict");
    }
    sim.fails(move |does, _, _| stages.contains(&does).then_some(ErrorKind::StorageFull));
    let refused = wait(take(&store, &story[5])).expect_err("there is no room");
    (store, sim, story, refused)
}

#[test]
fn writes_go_on_by_themselves_when_there_is_room_again() {
    let cases: [&'static [Does]; 4] = [
        &[Does::Append],
        &[Does::Sync],
        &[Does::Append, Does::Create, Does::Cut],
        &[Does::Append, Does::Sync, Does::Cut, Does::Create, Does::Rename, Does::SyncFolder, Does::Mark],
    ];
    for stages in cases {
        let (store, sim, story, refused) = full_at(stages);
        assert!(matches!(refused, CommitError::NoRoom(_) | CommitError::Unavailable(_)), "{refused}");
        assert_eq!(store.revision(), Revision(5), "{stages:?}: nobody sees what was refused");
        assert!(wait(take(&store, &story[5])).is_err(), "{stages:?}: it is still full");
        assert!(store.health().is_err());
        sim.heal();
        for (revision, step) in (6..).zip(&story[5..]) {
            assert_eq!(wait(take(&store, step)).expect("there is room"), Revision(revision), "{stages:?}");
        }
        assert!(store.health().is_ok(), "{stages:?}");
        check(&store, &story);
        for left in Left::ALL {
            let store = open(&sim.after(left), LONG).expect("nothing is damaged");
            assert_eq!(store.revision(), Revision(10), "{stages:?} {left:?}");
            check(&store, &story);
        }
    }
}

#[test]
fn what_was_refused_for_want_of_room_is_not_there_however_the_machine_stops() {
    // One failure at a time: there is room for a new log, or the group was cut off while it was written.
    for stage in [&[Does::Append], &[Does::Append, Does::Create], &[Does::Append, Does::Rename]]
        as [&'static [Does]; 3]
    {
        let (_store, sim, _, refused) = full_at(stage);
        assert!(matches!(refused, CommitError::NoRoom(_)), "{stage:?}: {refused}");
        for left in Left::ALL {
            let store = open(&sim.after(left), LONG).expect("nothing is damaged");
            assert_eq!(store.revision(), Revision(5), "{stage:?} {left:?}");
        }
    }
    let first = AtomicUsize::new(0);
    let (sim, story) = (Sim::default(), story(10));
    let store = open(&sim, LONG).expect("new");
    for step in &story[..5] {
        wait(take(&store, step)).expect("no conflict");
    }
    // Only the sync of the commit has no room, and cutting it off fails as well.
    sim.fails(move |does, name, _| {
        let sync = does == Does::Sync && name == "log-00000000000000000000" || does == Does::Cut;
        (sync && first.fetch_add(1, Ordering::Relaxed) < 2).then_some(ErrorKind::QuotaExceeded)
    });
    let refused = wait(take(&store, &story[5])).expect_err("there is no room");
    assert!(matches!(refused, CommitError::NoRoom(_)), "a new log says that it did not happen: {refused}");
    for left in Left::ALL {
        assert_eq!(
            open(&sim.after(left), LONG).expect("nothing is damaged").revision(),
            Revision(5),
            "{left:?}"
        );
    }
}

#[test]
fn all_that_was_decided_after_a_refused_commit_is_refused() {
    let sim = Sim::default();
    let store = open(&sim, LONG).expect("new");
    sim.hold();
    let put = |key: &str, expect| Step { key: key.to_owned(), expect, deletes: false };
    let steps = [
        put("a", Expect::Absent),
        put("a", Expect::At(Revision(1))),
        put("b", Expect::Absent),
        put("a", Expect::Absent),
    ];
    let mut commits: Vec<_> = steps.iter().map(|step| Box::pin(take(&store, step))).collect();
    assert!((&mut commits[0]).now_or_never().is_none());
    sim.wait_until_held();
    assert!(commits.iter_mut().all(|commit| commit.now_or_never().is_none()));
    sim.fails(|does, name, _| {
        (does == Does::Sync && name.starts_with("log")).then_some(ErrorKind::StorageFull)
    });
    sim.release();
    for outcome in wait(join_all(commits)) {
        assert!(matches!(outcome, Err(CommitError::NoRoom(_))), "also what lost against what did not happen");
    }
    sim.heal();
    assert_eq!(wait(take(&store, &steps[2])).expect("there is room"), Revision(1));
    assert!(store.snapshot().get("things", "a").is_none());
}

#[test]
fn who_asks_for_the_health_learns_that_there_is_room_again_without_a_commit() {
    let (store, sim, _, _) = full_at(&STAGES);
    let why = store.health().expect_err("it is full");
    assert!(why.contains("/sim/") && why.contains("no storage space"), "{why}");
    sim.heal();
    let asked = (0..10_000_000).find(|_| {
        std::thread::yield_now();
        store.health().is_ok()
    });
    assert!(asked.is_some(), "the writer looks when it is asked");
    assert!(matches!(open(&sim.after(Left::Everything), LONG), Ok(store) if store.revision() == Revision(5)));
}

#[test]
fn room_for_less_than_was_refused_is_not_room() {
    let (store, sim, _, _) = full_at(&[Does::Append]);
    let tried = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&tried);
    // There is room for the first bytes of a log, and no more.
    sim.fails(move |does, name, _| {
        let fails = does == Does::Append && name.ends_with(&u64::MAX.to_string());
        fails.then(|| count.fetch_add(1, Ordering::Relaxed)).map(|_| ErrorKind::StorageFull)
    });
    let asked = (0..10_000_000).find(|_| {
        assert!(store.health().is_err());
        std::thread::yield_now();
        tried.load(Ordering::Relaxed) > 2
    });
    assert!(asked.is_some(), "it is tried each time");
    drop(store);
    assert!(names(&sim).iter().all(|name| name.starts_with("log-")), "nothing is left: {:?}", names(&sim));
}

#[test]
fn a_compaction_without_room_is_kept_with_the_next_commit() {
    let (store, sim, story, _) = full_at(&[Does::Append]);
    store.compact(Revision(4));
    assert!(wait(take(&store, &story[5])).is_err());
    sim.heal();
    wait(take(&store, &story[5])).expect("there is room");
    drop(store);
    let store = open(&sim, LONG).expect("closed well");
    assert_eq!(store.watch(&"things".into(), Revision(3)).expect_err("compacted").oldest, Revision(4));
}

#[test]
fn a_checkpoint_without_room_stops_no_commit_and_leaves_nothing_behind() {
    let story = story(80);
    for stage in [Does::Create, Does::Append, Does::Sync, Does::Rename] {
        let sim = Sim::default();
        sim.fails(move |does, name, _| {
            (does == stage && name.contains("checkpoint")).then_some(ErrorKind::StorageFull)
        });
        // A store tries one at a time, on a thread of its own, however long that takes. So there are two stores, one after the other.
        for half in story[..40].chunks(20) {
            let store = open(&sim, SHORT).expect("new, or closed well");
            for step in half {
                wait(take(&store, step)).expect("there is room for it");
            }
        }
        let left = names(&sim);
        assert!(left.iter().all(|name| name.starts_with("log-")), "{stage:?}: {left:?}");
        assert!(left.len() > 2, "{stage:?}: it was tried more than once: {left:?}");
        sim.heal();
        let store = open(&sim, SHORT).expect("closed well");
        for step in &story[40..] {
            wait(take(&store, step)).expect("no conflict");
        }
        check(&store, &story);
        drop(store);
        assert!(names(&sim).len() <= 4, "{stage:?}: what is older is removed: {:?}", names(&sim));
        check(&open(&sim, SHORT).expect("closed well"), &story);
    }
}

#[test]
fn a_log_that_cannot_be_begun_lets_the_one_before_go_on_and_is_tried_again_after_as_much() {
    let story = story(80);
    for stage in [Does::Create, Does::Sync, Does::Rename, Does::SyncFolder] {
        let sim = Sim::default();
        let store = open(&sim, SHORT).expect("new");
        let tried = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&tried);
        sim.fails(move |does, name, _| {
            let fails =
                does == stage && (name.starts_with("new-log") || name.is_empty() || does == Does::Rename);
            fails.then(|| count.fetch_add(1, Ordering::Relaxed)).map(|_| ErrorKind::StorageFull)
        });
        for step in &story {
            wait(take(&store, step)).expect("there is room for it");
        }
        check(&store, &story);
        let length = sim.get("log-00000000000000000000").len();
        let tried = tried.load(Ordering::Relaxed);
        assert!((2..=length / 300).contains(&tried), "{stage:?}: {tried} times for {length} bytes");
        for left in Left::ALL {
            let store = open(&sim.after(left), SHORT).expect("nothing is damaged");
            assert_eq!(store.revision(), Revision(80), "{stage:?} {left:?}");
            check(&store, &story);
        }
    }
}

/// What a test does to a store.
#[derive(Clone, Debug)]
enum Act {
    /// Commits that wait together: to which keys, and whether they delete what is there.
    Commit(Vec<(u8, bool)>),
    /// The machine stops.
    Stop(u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let commit = prop::collection::vec((0..4_u8, any::<bool>()), 1..4).prop_map(Act::Commit);
    prop::collection::vec(prop_oneof![6 => commit, 1 => (0..4_u8).prop_map(Act::Stop)], 1..40)
}

/// What must be in the store.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    revision: u64,
    entries: BTreeMap<String, (u64, Vec<u8>)>,
}

impl Model {
    fn step(&self, key: u8, deletes: bool) -> Step {
        let key = format!("key-{key}");
        let at = self.entries.get(&key).map(|(revision, _)| Revision(*revision));
        Step { key, expect: at.map_or(Expect::Absent, Expect::At), deletes: deletes && at.is_some() }
    }

    fn take(&mut self, step: &Step) {
        self.revision += 1;
        if step.deletes {
            self.entries.remove(&step.key);
        } else {
            self.entries.insert(step.key.clone(), (self.revision, bytes(step, self.revision)));
        }
    }
}

/// Commits what waits together, each decided after the one before. Gives what must be there, and what may be there when
/// the store is opened again.
fn commit(store: &Disk<Tag>, model: &mut Model, keys: &[(u8, bool)]) -> Vec<Model> {
    let mut ahead = model.clone();
    let mut steps = Vec::new();
    for (key, deletes) in keys {
        let step = ahead.step(*key, *deletes);
        ahead.take(&step);
        steps.push(step);
    }
    let mut may_be: Vec<Model> = Vec::new();
    let mut refused = false;
    for (step, outcome) in steps.iter().zip(wait(join_all(steps.iter().map(|step| take(store, step))))) {
        match outcome {
            Ok(revision) => {
                model.take(step);
                assert_eq!(revision.0, model.revision, "no revision is left out");
                may_be.clear();
            }
            Err(CommitError::Unavailable(_)) => {
                let from: Vec<Model> = may_be.iter().chain([&*model]).cloned().collect();
                may_be.extend(from.into_iter().map(|mut there| {
                    there.take(step);
                    there
                }));
                refused = true;
            }
            Err(CommitError::NoRoom(_)) => refused = true,
            Err(CommitError::Conflict(_)) => assert!(refused, "it is decided after what comes before it"),
        }
    }
    assert_eq!((store.revision().0, shown(store)), (model.revision, model.entries.clone()));
    may_be
}

proptest! {
    #[test]
    fn nothing_that_was_acknowledged_is_lost_and_nothing_that_was_refused_comes_back(
        acts in acts(),
        faults in prop::collection::vec(prop::bool::weighted(0.2), 300),
    ) {
        let mut sim = Sim::default();
        let mut model = Model::default();
        let mut may_be: Vec<Model> = Vec::new();
        let mut store = open(&sim, SHORT).expect("new");
        let script = |sim: &Sim| {
            let faults = faults.clone();
            sim.fails(move |_, _, before| {
                faults.get(before % 400).is_some_and(|fails| *fails).then_some(ErrorKind::StorageFull)
            });
        };
        script(&sim);
        for act in acts {
            match act {
                Act::Commit(keys) => {
                    let acknowledged = model.revision;
                    let unknown = commit(&store, &mut model, &keys);
                    if model.revision > acknowledged {
                        may_be.clear();
                    }
                    may_be.extend(unknown);
                }
                Act::Stop(left) => {
                    let found = sim.after(Left::ALL[usize::from(left)]);
                    drop(store);
                    sim = found;
                    store = open(&sim, SHORT).expect("nothing is damaged");
                    let there = Model { revision: store.revision().0, entries: shown(&store) };
                    prop_assert!(there == model || may_be.contains(&there), "{there:?} is neither {model:?} nor of {may_be:?}");
                    model = there;
                    may_be.clear();
                    script(&sim);
                }
            }
        }
    }
}

#[test]
fn a_store_without_a_mark_can_be_read_while_the_disk_is_full() {
    let sim = Sim::default();
    let story = story(5);
    let store = open(&sim, LONG).expect("new");
    for step in &story {
        wait(take(&store, step)).expect("no conflict");
    }
    drop(store);
    sim.remove(MARK).expect("it was there");
    sim.fails(|does, _, _| (does == Does::Mark).then_some(ErrorKind::StorageFull));
    let store = open(&sim, LONG).expect("all is there");
    assert_eq!(store.revision(), Revision(5));
    check(&store, &story);
}
