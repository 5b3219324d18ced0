//! Commits that wait for the disk.

use std::pin::pin;

use futures::FutureExt;
use futures::future::join_all;

use super::*;

fn put(expect: Expect) -> Step {
    Step { key: "a".to_owned(), expect, deletes: false }
}

fn other(key: &str) -> Step {
    Step { key: key.to_owned(), expect: Expect::Absent, deletes: false }
}

/// A store whose next sync does not return, and the folder that holds it.
fn held() -> (Disk<Tag>, Sim) {
    let sim = Sim::default();
    let store = open(&sim, LONG).expect("new");
    sim.hold();
    (store, sim)
}

#[test]
fn nobody_sees_a_commit_that_waits_for_the_disk() {
    let (store, sim) = held();
    let mut cursor = store.watch(&"things".into(), Revision(0)).expect("nothing is gone");
    let step = put(Expect::Absent);
    let mut commit = pin!(take(&store, &step));
    assert!(commit.as_mut().now_or_never().is_none());
    sim.wait_until_held();
    assert_eq!(store.revision(), Revision(0));
    assert!(store.snapshot().get("things", "a").is_none());
    assert!(cursor.try_next().expect("nothing is gone").is_none());
    assert!(commit.as_mut().now_or_never().is_none());
    sim.release();
    assert_eq!(wait(commit).expect("no conflict"), Revision(1));
    assert!(store.snapshot().get("things", "a").is_some());
    assert_eq!(cursor.try_next().expect("nothing is gone").expect("told").revision(), Revision(1));
}

#[test]
fn commits_are_decided_against_those_that_wait() {
    let (store, sim) = held();
    let steps = [
        put(Expect::Absent),
        put(Expect::Absent),
        put(Expect::At(Revision(1))),
        put(Expect::At(Revision(1))),
    ];
    let mut commits: Vec<_> = steps.iter().map(|step| Box::pin(take(&store, step))).collect();
    for commit in &mut commits {
        assert!(
            commit.now_or_never().is_none(),
            "a conflict with what waits is not told before that is certain"
        );
    }
    sim.release();
    let outcomes = wait(join_all(commits));
    let told: Vec<_> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Ok(revision) => Ok(*revision),
            Err(CommitError::Conflict(conflict)) => Err(conflict.0.as_ref().map(|there| there.revision)),
            Err(other) => panic!("{other}"),
        })
        .collect();
    let (one, two) = (Revision(1), Revision(2));
    assert_eq!(told, [Ok(one), Err(Some(one)), Ok(two), Err(Some(two))]);
}

#[test]
fn a_conflict_with_what_is_there_needs_no_disk() {
    let sim = Sim::default();
    let store = open(&sim, LONG).expect("new");
    wait(take(&store, &put(Expect::Absent))).expect("no conflict");
    sim.hold();
    let step = other("b");
    let mut commit = pin!(take(&store, &step));
    assert!(commit.as_mut().now_or_never().is_none());
    sim.wait_until_held();
    let conflict = take(&store, &put(Expect::Absent)).now_or_never();
    assert!(matches!(conflict, Some(Err(CommitError::Conflict(_)))));
    sim.release();
    wait(commit).expect("no conflict");
}

#[test]
fn a_conflict_with_what_is_lost_is_not_told() {
    let (store, sim) = held();
    let (first, second) = (put(Expect::Absent), put(Expect::Absent));
    let mut commit = pin!(take(&store, &first));
    assert!(commit.as_mut().now_or_never().is_none());
    sim.wait_until_held();
    let mut conflict = pin!(take(&store, &second));
    assert!(conflict.as_mut().now_or_never().is_none());
    sim.fail();
    sim.release();
    assert!(matches!(wait(commit), Err(CommitError::Unavailable(_))));
    assert!(matches!(wait(conflict), Err(CommitError::Unavailable(_))));
    assert!(matches!(wait(take(&store, &first)), Err(CommitError::Unavailable(_))));
}

#[test]
fn all_that_wait_share_one_sync() {
    let (store, sim) = held();
    let before = sim.syncs_of_logs();
    let steps: Vec<Step> = (0..33).map(|number| other(&number.to_string())).collect();
    let mut first = Box::pin(take(&store, &steps[0]));
    assert!((&mut first).now_or_never().is_none());
    sim.wait_until_held();
    let mut rest: Vec<_> = steps[1..].iter().map(|step| Box::pin(take(&store, step))).collect();
    assert!(rest.iter_mut().all(|commit| commit.now_or_never().is_none()));
    sim.release();
    wait(first).expect("no conflict");
    assert!(wait(join_all(rest)).iter().all(Result::is_ok));
    assert_eq!(sim.syncs_of_logs() - before, 2);
    assert_eq!(store.revision(), Revision(33));
}

#[test]
fn a_group_that_is_full_is_followed_by_another() {
    let (store, sim) = held();
    let before = sim.syncs_of_logs();
    let megabyte = |key: &str| {
        let draft = Draft { bytes: vec![b'x'; 1 << 20], revision_at: None, tag: Arc::new(String::new()) };
        store.commit(&"things".into(), &key.into(), Expect::Absent, Change::Put(draft))
    };
    let mut commits: Vec<_> = (0..21).map(|number| megabyte(&number.to_string())).collect();
    assert!((&mut commits[0]).now_or_never().is_none());
    sim.wait_until_held();
    assert!(commits.iter_mut().all(|commit| commit.now_or_never().is_none()));
    sim.release();
    assert!(wait(join_all(commits)).iter().all(Result::is_ok));
    assert_eq!(sim.syncs_of_logs() - before, 4, "1, 8, 8 and 4 megabytes");
    drop(store);
    assert_eq!(open(&sim, LONG).expect("closed well").snapshot().len("things"), 21);
}

#[test]
fn what_waits_when_the_store_is_dropped_is_written() {
    let sim = Sim::default();
    let store = open(&sim, LONG).expect("new");
    // Nobody waits for it any more. (On a busy machine the writer may have been faster than this thread.)
    drop(take(&store, &put(Expect::Absent)).now_or_never());
    drop(store);
    assert_eq!(open(&sim, LONG).expect("closed well").revision(), Revision(1));
}
