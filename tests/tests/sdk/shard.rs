//! Sharding: who works on what while replicas come, go, die and are cut off.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::{CancellationToken, Controller, Error, Key, Outcome, Shard, Sharding, World};
use serde_json::json;
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    harness::does,
    lab::{Lab, Only},
    ledger::Ledger,
    link::Link,
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// One replica of an operator that reconciles each ConfigMap every second, for a while that it is told.
struct Replica {
    shard: Shard,
    link: Link,
    shutdown: CancellationToken,
    end: JoinHandle<Result<(), Error>>,
}

fn start(lab: &Lab, ledger: &Ledger, name: &str, seed: u64, longest: Duration) -> Replica {
    let link = lab.another_link(seed);
    let world = lab.world(seed);
    let mut manager = lab.manager_by(&link, seed);
    manager.share(Sharding::ring(lab.namespace(), "ring").identity(name));
    let (name, ledger) = (name.to_owned(), ledger.clone());
    let reconciler = does(move |_, key: &Key| {
        let work = ledger.begin(&name, &key.name);
        let time = longest.mul_f64(world.dice.fraction());
        Box::pin(async move {
            tokio::time::sleep(time).await;
            work.done();
            Ok(Outcome::RequeueAfter(seconds(1)))
        })
    });
    manager.add(Controller::new("test", reconciler).for_kind::<ConfigMap>().concurrency(50));
    let shard = manager.shard().expect("it shares");
    let shutdown = CancellationToken::new();
    let end = tokio::spawn(manager.run(shutdown.clone()));
    Replica { shard, link, shutdown, end }
}

async fn with_objects(lab: Lab, count: usize) -> (Lab, Ledger) {
    for number in 0..count {
        lab.put("configmaps", &format!("c{number}"), json!({})).await;
    }
    (lab, Ledger::default())
}

/// Who works on each key now. Every key has exactly one who does.
async fn owners(ledger: &Ledger, keys: usize) -> BTreeMap<String, String> {
    ledger.take();
    tokio::time::sleep(seconds(5)).await;
    let done = ledger.take();
    assert_eq!(done.len(), keys, "every key is worked on");
    ledger.assert_no_overlap();
    let one = |(key, mut who): (String, Vec<String>)| {
        who.dedup();
        assert_eq!(who.len(), 1, "{key}: {who:?}");
        (key, who.remove(0))
    };
    done.into_iter().map(one).collect()
}

fn shares(owners: &BTreeMap<String, String>) -> BTreeMap<&str, usize> {
    let mut shares = BTreeMap::new();
    for owner in owners.values() {
        *shares.entry(owner.as_str()).or_default() += 1;
    }
    shares
}

#[tokio::test(start_paused = true)]
async fn replicas_share_the_keys_and_a_new_one_takes_only_its_own() {
    let (lab, ledger) = with_objects(Lab::new().await, 60).await;
    let a = start(&lab, &ledger, "a", 1, seconds(1));
    let b = start(&lab, &ledger, "b", 2, seconds(1));
    tokio::time::sleep(seconds(10)).await;
    let before = owners(&ledger, 60).await;
    let shared = shares(&before);
    assert!(shared.len() == 2 && shared.values().all(|share| *share > 15), "{shared:?}");
    let _c = start(&lab, &ledger, "c", 3, seconds(1));
    tokio::time::sleep(seconds(10)).await;
    let after = owners(&ledger, 60).await;
    let moved: Vec<_> = after.iter().filter(|(key, owner)| before[*key] != **owner).collect();
    assert!(moved.len() > 8 && moved.iter().all(|(_, owner)| *owner == "c"), "{moved:?}");
    let key = |name: &String| lab.key(name);
    assert!(after.iter().all(|(name, owner)| a.shard.owns(&key(name)) == (owner == "a")));
    assert_eq!(b.shard.members().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_keys_of_a_replica_that_stops_are_taken_over_at_once() {
    let (lab, ledger) = with_objects(Lab::new().await, 20).await;
    let a = start(&lab, &ledger, "a", 1, seconds(1));
    let b = start(&lab, &ledger, "b", 2, seconds(1));
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(shares(&owners(&ledger, 20).await).len(), 2);
    a.shutdown.cancel();
    assert!(matches!(a.end.await, Ok(Ok(()))));
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(shares(&owners(&ledger, 20).await), BTreeMap::from([("b", 20)]));
    assert_eq!(b.shard.members().len(), 1);
    assert_eq!(lab.names("leases").await.len(), 2, "the ring's and one member's");
}

#[tokio::test(start_paused = true)]
async fn the_keys_of_a_replica_that_dies_are_taken_over_within_the_lease_duration() {
    let (lab, ledger) = with_objects(Lab::new().await, 20).await;
    let a = start(&lab, &ledger, "a", 1, seconds(1));
    let _b = start(&lab, &ledger, "b", 2, seconds(1));
    tokio::time::sleep(seconds(10)).await;
    let before = owners(&ledger, 20).await;
    let orphan = before.iter().find(|(_, owner)| *owner == "a").map(|(key, _)| key.clone());
    let orphan = orphan.expect("a has some");
    a.end.abort();
    let died = Instant::now();
    ledger.take();
    while ledger.take().get(&orphan).is_none_or(|who| !who.contains(&"b".to_owned())) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let took = died.elapsed();
    assert!(took > seconds(10) && took < seconds(15 + 5 + 1) + lab.tolerance(), "{took:?}");
    owners(&ledger, 20).await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_cut_off_stops_and_comes_back_as_a_new_member() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let (lab, ledger) = with_objects(lab, 20).await;
    let a = start(&lab, &ledger, "a", 1, seconds(1));
    let _b = start(&lab, &ledger, "b", 2, seconds(1));
    tokio::time::sleep(seconds(10)).await;
    let members = a.shard.members();
    a.link.hold();
    tokio::time::sleep(seconds(40)).await;
    assert_eq!(shares(&owners(&ledger, 20).await), BTreeMap::from([("b", 20)]));
    a.link.release();
    tokio::time::sleep(seconds(15)).await;
    assert_eq!(shares(&owners(&ledger, 20).await).len(), 2);
    let kept = a.shard.members().into_iter().filter(|member| members.contains(member)).count();
    assert_eq!((a.shard.members().len(), kept), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_key_moves_only_when_its_reconcile_has_ended_and_one_that_hangs_is_dropped() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let (lab, ledger) = with_objects(lab, 20).await;
    let _a = start(&lab, &ledger, "a", 1, seconds(100_000));
    tokio::time::sleep(seconds(10)).await;
    let _b = start(&lab, &ledger, "b", 2, seconds(1));
    tokio::time::sleep(seconds(9)).await;
    assert!(ledger.take().is_empty(), "all hang, and none is let go of");
    tokio::time::sleep(seconds(11)).await;
    let done = ledger.take();
    assert!(done.len() > 4 && done.values().flatten().all(|who| who == "b"), "{done:?}");
    ledger.assert_no_overlap();
}

#[tokio::test(start_paused = true)]
async fn a_membership_and_a_ring_that_somebody_deletes_make_no_key_worked_on_twice() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let (lab, ledger) = with_objects(lab, 30).await;
    let replicas = ["a", "b", "c"].map(|name| start(&lab, &ledger, name, name.len() as u64, seconds(3)));
    tokio::time::sleep(seconds(20)).await;
    for _ in 0..3 {
        let members = replicas[0].shard.members();
        lab.remove("leases", &members[1]).await;
        tokio::time::sleep(seconds(60)).await;
        assert_eq!(shares(&owners(&ledger, 30).await).len(), 3);
        lab.remove("leases", "ring").await;
        tokio::time::sleep(seconds(60)).await;
        assert_eq!(shares(&owners(&ledger, 30).await).len(), 3);
    }
}

/// Replicas join, stop, die, and are cut off, and requests are late and lost, over and over.
#[test]
fn no_key_is_ever_worked_on_twice_whatever_happens_and_in_the_end_every_one_is() {
    for seed in 0..4 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(troubled(seed));
    }
}

async fn troubled(seed: u64) {
    let Some(lab) = Lab::only_embedded(Only::Load).await else { return };
    let (lab, ledger) = with_objects(lab, 12).await;
    let world = World::simulated(seed);
    let mut replicas: Vec<Replica> = Vec::new();
    let mut names = 0;
    for _ in 0..120 {
        let at = world.dice.below(replicas.len().max(1));
        match world.dice.below(12) {
            0 | 1 if replicas.len() < 4 => {
                names += 1;
                let name = format!("r{names}");
                replicas.push(start(&lab, &ledger, &name, seed * 1000 + names, seconds(3)));
            }
            _ if replicas.is_empty() => {}
            2 => replicas[at].link.hold(),
            3 | 4 => replicas[at].link.release(),
            5 => replicas[at].link.trouble(10),
            6 => replicas[at].link.trouble(0),
            7 if world.dice.below(2) == 0 => replicas.swap_remove(at).end.abort(),
            8 if world.dice.below(2) == 0 => replicas.swap_remove(at).shutdown.cancel(),
            _ => {}
        }
        tokio::time::sleep(Duration::from_millis(500 + world.dice.below(5_000) as u64)).await;
        ledger.assert_no_overlap();
    }
    if replicas.is_empty() {
        replicas.push(start(&lab, &ledger, "last", seed, seconds(3)));
    }
    for replica in &replicas {
        replica.link.trouble(0);
        replica.link.release();
    }
    tokio::time::sleep(seconds(90)).await;
    let owners = owners(&ledger, 12).await;
    assert!(!owners.is_empty(), "seed {seed}");
}
