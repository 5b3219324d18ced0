//! Files that were taken away or cut from outside, in places where the logs alone look whole.

use super::*;

/// A store that has acknowledged the whole story and was closed, or killed, which is the same to its files.
fn stored() -> (Sim, Vec<Step>) {
    let story = story(40);
    let sim = Sim::default();
    let store = open(&sim, LONG).expect("new");
    for step in &story {
        wait(take(&store, step)).expect("no conflict");
    }
    drop(store);
    (sim.after(Left::Everything), story)
}

const LOG: &str = "log-00000000000000000000";

#[test]
fn a_log_that_was_cut_anywhere_is_refused_with_what_is_lost() {
    let (sim, _) = stored();
    let whole = sim.get(LOG);
    for length in 0..whole.len() {
        let cut = sim.after(Left::Everything);
        cut.put(LOG, whole[..length].to_vec());
        let refused = open(&cut, LONG).expect_err("commits are missing");
        let OpenError::Lost { found, acknowledged, .. } = &refused else { panic!("{length}: {refused}") };
        assert!(found.0 < 40 && acknowledged.0 == 40, "{length}: {refused}");
        assert_eq!(cut.get(LOG).len(), length, "nothing was changed");
    }
}

#[test]
fn the_refusal_says_how_to_go_on_without_what_is_lost() {
    let (sim, story) = stored();
    let cut = sim.get(LOG);
    sim.put(LOG, cut[..cut.len() - 1].to_vec());
    let refused = open(&sim, LONG).expect_err("a commit is missing").to_string();
    assert_eq!(
        refused,
        "/sim/log-00000000000000000000 ends at revision 39, and commits up to revision 40 were acknowledged: 1 are lost; \
         removing /sim/acknowledged goes on without them"
    );
    sim.remove(MARK).expect("removed");
    let store = open(&sim, LONG).expect("on purpose");
    assert_eq!(store.revision(), Revision(39));
    check(&store, &story);
    wait(take(&store, &story[39])).expect("it goes on");
    drop(store);
    check(&open(&sim, LONG).expect("closed well"), &story);
}

#[test]
fn files_that_are_all_gone_or_older_than_the_mark_are_refused() {
    let (sim, story) = stored();
    let gone = sim.after(Left::Everything);
    gone.remove(LOG).expect("removed");
    assert!(matches!(open(&gone, LONG), Err(OpenError::Missing { .. })));

    let older = Sim::default();
    let store = open(&older, LONG).expect("new");
    wait(take(&store, &story[0])).expect("no conflict");
    drop(store);
    sim.put(LOG, older.get(LOG));
    assert!(matches!(open(&sim, LONG), Err(OpenError::Lost { found: Revision(1), .. })));
}

#[test]
fn a_mark_that_never_got_to_the_disk_says_nothing() {
    let (sim, story) = stored();
    for mark in [Vec::new(), vec![0; 36], sim.get(MARK)[..20].to_vec()] {
        let found = sim.after(Left::Everything);
        found.put(MARK, mark);
        check(&open(&found, LONG).expect("nothing is known to be lost"), &story);
    }
}

#[test]
fn a_mark_that_is_older_than_the_log_does_not_hold_it_back() {
    let (sim, story) = stored();
    let newest = sim.get(MARK);
    let older = Sim::default();
    drop(open(&older, LONG).expect("new"));
    sim.put(MARK, older.get(MARK));
    let store = open(&sim, LONG).expect("a machine that stops leaves this");
    assert_eq!(store.revision(), Revision(40));
    check(&store, &story);
    assert_eq!(sim.get(MARK), newest, "it is brought up to date");
}

#[test]
fn a_commit_is_marked_before_anybody_is_told_of_it() {
    let (sim, story) = (Sim::default(), story(40));
    let store = open(&sim, LONG).expect("new");
    for (revision, step) in (1_u64..).zip(&story) {
        wait(take(&store, step)).expect("no conflict");
        let digits = sim.get(MARK)[28..].to_vec();
        assert_eq!(u64::from_le_bytes(digits.try_into().expect("eight bytes")), revision);
    }
}
