//! A store whose disk stops at any moment.

use std::io::ErrorKind;

use futures::future::join_all;

use super::*;

/// How many commits wait for the disk together.
const TOGETHER: usize = 3;

/// Tells the story to a store on `sim` until its disk fails; gives the last revision that was acknowledged.
fn play(sim: &Sim, story: &[Step]) -> u64 {
    played(sim, story).0
}

/// As [`tell`]; says also of how many commits the outcome is not known.
fn played(sim: &Sim, story: &[Step]) -> (u64, u64) {
    let Ok(store) = open(sim, SHORT) else { return (0, 0) };
    let mut unknown = 0;
    let mut acknowledged = store.revision().0;
    for steps in story[acknowledged as usize..].chunks(TOGETHER) {
        let outcomes = wait(join_all(steps.iter().map(|step| take(&store, step))));
        for outcome in outcomes {
            match outcome {
                Ok(revision) => {
                    assert_eq!(revision.0, acknowledged + 1, "in the order of the story");
                    acknowledged = revision.0;
                }
                Err(CommitError::Unavailable(why)) => {
                    assert!(why.to_string().starts_with("the store is not available: "));
                    unknown += 1;
                }
                Err(CommitError::NoRoom(why)) => {
                    assert!(why.to_string().starts_with("the store has no room: /sim/: "), "{why}");
                }
                Err(CommitError::Conflict(_)) => panic!("the story has no conflicts"),
            }
        }
        // Nobody sees what was not acknowledged.
        assert_eq!(store.revision().0, acknowledged);
        if store.health().is_err() {
            break;
        }
    }
    (acknowledged, unknown)
}

#[test]
fn what_was_acknowledged_is_there_whenever_the_disk_stops() {
    let story = story(40);
    let whole = Sim::default();
    assert_eq!(play(&whole, &story), 40);
    let operations = whole.operations();
    assert!(operations > 60, "{operations}: it has checkpoints");
    let kinds = [ErrorKind::Other, ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    for (stop, how) in (0..operations).flat_map(|stop| kinds.map(|how| (stop, how))) {
        let sim = Sim::failing_from(stop, how);
        let (acknowledged, unknown) = played(&sim, &story);
        for left in Left::ALL {
            let found = sim.after(left);
            let store = open(&found, SHORT).unwrap_or_else(|error| panic!("{stop} {left:?}: {error}"));
            let revision = store.revision().0;
            assert!(
                (acknowledged..=acknowledged + unknown).contains(&revision),
                "{stop} {left:?}: {acknowledged} was acknowledged, and {revision} is there"
            );
            check(&store, &story);
            drop(store);
            assert_eq!(play(&found, &story), 40, "{stop} {left:?}: the story goes on");
            check(&open(&found, SHORT).expect("closed well"), &story);
        }
    }
}

#[test]
fn a_store_that_is_opened_again_goes_on_with_the_events_since_its_last_checkpoint() {
    let story = story(40);
    let sim = Sim::default();
    assert_eq!(play(&sim, &story[..6]), 6);
    let store = open(&sim, LONG).expect("closed well");
    for step in &story[6..10] {
        wait(take(&store, step)).expect("no conflict");
    }
    drop(store);
    let store = open(&sim, LONG).expect("closed well");
    let mut cursor = store.watch(&"things".into(), Revision(8)).expect("it is in the log");
    let read = cursor.try_batch(9.try_into().expect("not 0")).expect("nothing was dropped");
    assert_eq!(read.iter().map(|event| event.revision().0).collect::<Vec<_>>(), [9, 10]);
    assert!(read.iter().all(|event| *event.entry.tag == tag(&event.entry.bytes)));
    assert_eq!(store.snapshot_at(&"things".into(), Revision(9)).expect("it is in the ring").revision().0, 9);
}

#[test]
fn the_past_before_a_checkpoint_is_gone() {
    let story = story(40);
    let sim = Sim::default();
    play(&sim, &story);
    let names = names(&sim);
    assert!(names.iter().any(|name| name.starts_with("checkpoint")), "{names:?}");
    assert!(names.len() <= 4, "what is older was removed: {names:?}");
    let store = open(&sim, SHORT).expect("closed well");
    let gone = store.watch(&"things".into(), Revision(3)).expect_err("it is in no log");
    assert_eq!(gone.newest, Revision(40));
    assert!(gone.oldest > Revision(3));
    assert!(store.watch(&"things".into(), Revision(40)).is_ok());
}

#[test]
fn a_compaction_is_remembered() {
    let story = story(10);
    let sim = Sim::default();
    let store = open(&sim, LONG).expect("new");
    for step in &story {
        wait(take(&store, step)).expect("no conflict");
    }
    store.compact(Revision(7));
    assert!(store.watch(&"things".into(), Revision(6)).is_err());
    drop(store);
    let store = open(&sim, LONG).expect("closed well");
    assert_eq!(store.watch(&"things".into(), Revision(6)).expect_err("compacted").oldest, Revision(7));
    assert!(store.watch(&"things".into(), Revision(7)).is_ok());
    check(&store, &story);
}

#[test]
fn a_disk_that_fails_ends_the_writes_and_not_the_reads() {
    let story = story(10);
    let sim = Sim::default();
    let store = open(&sim, LONG).expect("new");
    for step in &story[..5] {
        wait(take(&store, step)).expect("no conflict");
    }
    sim.fail();
    for step in &story[5..7] {
        let refused = wait(take(&store, step)).expect_err("the disk is broken");
        assert!(matches!(&refused, CommitError::Unavailable(_)), "{refused}");
        assert!(refused.to_string().starts_with("the store is not available: "), "{refused}");
    }
    assert_eq!(store.revision(), Revision(5));
    check(&store, &story);
    drop(store);
    let store = open(&sim.after(Left::Everything), LONG).expect("its tail is repaired");
    assert_eq!(store.revision(), Revision(5));
    check(&store, &story);
}
