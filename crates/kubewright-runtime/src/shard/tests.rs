//! The rules one by one.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kubewright_world::SIMULATION_START;
use proptest::prelude::*;
use tokio::time::Instant;

use super::{
    keys::Assignment,
    view::{Decision, EPOCH, Epoch, MEMBERS, Snapshot, View},
    *,
};
use crate::leader::record::Record;

fn key(number: usize) -> Key {
    Key::namespaced("default", format!("web-{number}"))
}

fn ring(members: &[&str], number: i32) -> Lease {
    let mut lease = Lease::default();
    lease.metadata.name = Some("ring".into());
    lease.metadata.uid = Some("u".into());
    lease.metadata.annotations = Some([(MEMBERS.to_owned(), members.join(","))].into());
    lease.spec.get_or_insert_default().lease_transitions = Some(number);
    lease
}

fn epoch(members: &[&str], number: i32) -> Epoch {
    Snapshot::new("ring", [ring(members, number)]).ring.expect("a ring").epoch
}

fn member(name: &str, acknowledged: Option<&str>, renewed: u64) -> Lease {
    let mut lease = Lease::default();
    lease.metadata.name = Some(name.into());
    lease.metadata.annotations = acknowledged.map(|epoch| [(EPOCH.to_owned(), epoch.to_owned())].into());
    let record = Record {
        holder: name.into(),
        duration: Duration::from_secs(15),
        acquired: Some(SIMULATION_START),
        renewed: Some(SIMULATION_START + Duration::from_secs(renewed)),
        transitions: 0,
    };
    record.write(lease.spec.get_or_insert_default());
    lease
}

fn assignment(number: i32, members: &[&str]) -> Assignment {
    let names: Vec<String> = members.iter().map(|name| (*name).to_owned()).collect();
    Assignment::new(epoch(members, number), &names, "a")
}

/// What `a` does about these leases, whose members it sees for the first time.
fn decide(leases: impl IntoIterator<Item = Lease>) -> Option<Decision> {
    View::new("a", Duration::from_secs(15)).decide(&Snapshot::new("ring", leases), Instant::now())
}

proptest! {
    #[test]
    fn every_key_has_one_owner_and_moves_only_to_or_from_who_comes_or_goes(
        members in prop::collection::btree_set("[a-z0-9]{3,12}", 1..8), newcomer in "[a-z0-9]{13}",
    ) {
        let before: Vec<String> = members.into_iter().collect();
        let after: Vec<String> = before.iter().cloned().chain([newcomer.clone()]).collect();
        let owners = |members: &[String], key: &Key| -> Vec<String> {
            let gives = |me: &&String| Assignment::new(epoch(&[], 1), members, me).gives_me(key);
            members.iter().filter(gives).cloned().collect()
        };
        for number in 0..50 {
            let (old, new) = (owners(&before, &key(number)), owners(&after, &key(number)));
            prop_assert_eq!((old.len(), new.len()), (1, 1));
            prop_assert!(old == new || new[0] == newcomer);
        }
    }
}

#[test]
fn shares_are_about_the_same_and_never_change_between_versions() {
    let members = ["ring-bcdfghjklm", "ring-bcdfghjkln", "ring-xz24567890", "ring-0"].map(str::to_owned);
    let mut shares: BTreeMap<&str, usize> = BTreeMap::new();
    for me in &members {
        let assignment = Assignment::new(epoch(&[], 1), &members, me);
        let share = (0..10_000).filter(|number| assignment.gives_me(&key(*number))).count();
        shares.insert(me, share);
    }
    assert!(shares.values().all(|share| (2_300..2_700).contains(share)), "{shares:?}");
    let first = &Assignment::new(epoch(&[], 1), &members, &members[0]);
    let own: Vec<usize> = (0..30).filter(|number| first.gives_me(&key(*number))).collect();
    assert_eq!(own, [1, 3, 15, 16, 17, 18, 20, 22]);
}

#[test]
fn an_epoch_is_in_force_when_all_its_members_have_acknowledged_it_and_nobody_is_left_outside() {
    let now = epoch(&["a", "b"], 2).to_string();
    let old = epoch(&["a"], 1).to_string();
    let in_force = |leases: Vec<Lease>| decide(leases).map(|decision| decision.in_force);
    let both = || vec![ring(&["a", "b"], 2), member("a", Some(&now), 0), member("b", Some(&now), 0)];
    assert_eq!(in_force(both()), Some(true));
    for acknowledged in [None, Some(old.as_str())] {
        let leases = vec![ring(&["a", "b"], 2), member("a", Some(&now), 0), member("b", acknowledged, 0)];
        assert_eq!(in_force(leases), Some(false));
        let leases = vec![ring(&["a", "b"], 2), member("a", acknowledged, 0), member("b", Some(&now), 0)];
        assert_eq!(in_force(leases), Some(false), "not without our own");
    }
    // c has worked by something that is over; d has not worked yet.
    assert_eq!(in_force([both(), vec![member("c", Some(&old), 0)]].concat()), Some(false));
    assert_eq!(in_force([both(), vec![member("d", None, 0)]].concat()), Some(true));
    let other_ring = || {
        let mut lease = ring(&["a", "b"], 2);
        lease.metadata.uid = Some("another".into());
        lease
    };
    let leases = vec![other_ring(), member("a", Some(&now), 0), member("b", Some(&now), 0)];
    assert_eq!(in_force(leases), Some(false), "a ring that was made anew counts anew");
    assert_eq!(in_force(vec![ring(&["a", "b"], 2), member("b", Some(&now), 0)]), None, "we are out");
}

#[test]
fn the_next_epoch_has_those_who_are_there() {
    let proposed = |leases: Vec<Lease>| decide(leases).and_then(|decision| decision.propose);
    assert_eq!(proposed(vec![member("a", None, 0)]), Some(vec!["a".to_owned()]));
    let leases = vec![ring(&["a"], 1), member("a", None, 0), member("b", None, 0)];
    assert_eq!(proposed(leases), Some(vec!["a".to_owned(), "b".to_owned()]));
    let leases = vec![ring(&["b", "a"], 1), member("a", None, 0), member("b", None, 0)];
    assert_eq!(proposed(leases), None);
}

#[test]
fn who_is_silent_for_the_duration_of_its_lease_or_has_left_is_removed() {
    let (start, mut view) = (Instant::now(), View::new("a", Duration::from_secs(15)));
    let mut evicted = |leases: Vec<Lease>, at: u64| {
        let decision = view.decide(&Snapshot::new("ring", leases), start + Duration::from_secs(at));
        decision.map(|decision| decision.evict).unwrap_or_default()
    };
    let leases = |renewed| vec![member("a", None, 0), member("b", None, renewed)];
    assert!(evicted(leases(0), 0).is_empty());
    assert!(evicted(leases(10), 14).is_empty());
    assert!(evicted(leases(10), 28).is_empty());
    assert_eq!(evicted(leases(10), 29), ["b"]);
    let mut left = member("b", None, 11);
    left.spec.get_or_insert_default().holder_identity = Some(String::new());
    assert_eq!(evicted(vec![member("a", None, 0), left], 30), ["b"]);
}

#[test]
fn a_member_whose_lease_somebody_deleted_stays_for_its_duration_unless_we_removed_it() {
    let start = Instant::now();
    let leases = || vec![ring(&["a", "b"], 1), member("a", None, 0)];
    let proposed = |view: &mut View, at: u64| {
        let decision = view.decide(&Snapshot::new("ring", leases()), start + Duration::from_secs(at));
        decision.and_then(|decision| decision.propose)
    };
    let mut view = View::new("a", Duration::from_secs(15));
    assert_eq!(proposed(&mut view, 0), None);
    assert_eq!(proposed(&mut view, 14), None);
    assert_eq!(proposed(&mut view, 15), Some(vec!["a".to_owned()]));
    let mut view = View::new("a", Duration::from_secs(15));
    view.evicted("b");
    assert_eq!(proposed(&mut view, 0), Some(vec!["a".to_owned()]));
}

#[test]
fn a_key_that_was_away_in_between_comes_back_only_when_the_epoch_is_in_force() {
    let keys = Keys::default();
    let (alone, shared) = (assignment(1, &["a"]), assignment(2, &["a", "b"]));
    let moving = (0..).map(key).find(|key| !shared.gives_me(key)).expect("half of them");
    keys.announce(alone.clone());
    assert!(!keys.is_mine(&moving) && matches!(keys.turn(&moving), Turn::Soon));
    keys.settle(&alone.epoch);
    assert!(keys.is_mine(&moving));
    keys.announce(shared);
    assert!(!keys.is_mine(&moving) && matches!(keys.turn(&moving), Turn::Others));
    let again = assignment(3, &["a"]);
    keys.announce(again.clone());
    assert!(!keys.is_mine(&moving) && matches!(keys.turn(&moving), Turn::Soon));
    keys.settle(&again.epoch);
    assert!(keys.is_mine(&moving));
}

#[test]
fn what_is_worked_on_is_drained_when_it_is_let_go_of() {
    let keys = Keys::default();
    let (alone, shared) = (assignment(1, &["a"]), assignment(2, &["a", "b"]));
    let moving = (0..).map(key).find(|key| !shared.gives_me(key)).expect("half of them");
    let staying = (0..).map(key).find(|key| shared.gives_me(key)).expect("half of them");
    keys.announce(alone.clone());
    keys.settle(&alone.epoch);
    let (first, second, other) = (keys.turn(&moving), keys.turn(&moving), keys.turn(&staying));
    keys.announce(shared);
    assert!(!keys.is_drained());
    drop(first);
    assert!(!keys.is_drained(), "another controller works on it");
    drop(second);
    assert!(keys.is_drained());
    drop(other);
}

#[test]
fn a_ring_that_cannot_be_is_told() {
    let mistakes = |sharding: Sharding| sharding.mistakes();
    assert!(mistakes(Sharding::ring("default", "ring")).is_empty());
    assert_eq!(mistakes(Sharding::ring("", "ring")), ["sharding: the ring needs a namespace and a name"]);
    assert_eq!(
        mistakes(Sharding::ring("default", "r".repeat(64))),
        ["sharding: the name of the ring has more than 63 characters"]
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_goes_on_without_the_membership_is_told_after_the_tolerance() {
    let world = kubewright_world::World::simulated(1);
    let shard = Shard::new(Gate::new(world.clock), Arc::default());
    let tolerance = Duration::from_secs(20);
    assert_eq!(shard.check(tolerance), Ok(()), "it has not begun");
    shard.set_overdue(true);
    tokio::time::advance(Duration::from_secs(19)).await;
    assert_eq!(shard.check(tolerance), Ok(()), "there is some time to end");
    tokio::time::advance(Duration::from_secs(3)).await;
    let why = shard.check(tolerance).expect_err("it goes on");
    assert!(why.starts_with("the membership of the ring was lost 22 s ago"), "{why}");
    shard.set_overdue(false);
    assert_eq!(shard.check(tolerance), Ok(()), "it has ended");
}
