//! Nothing that has a living owner is collected, and all else is, when writes fail and the collector is restarted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams, PropagationPolicy};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::faults::{Apart, Faults, Witness};
use crate::support::World;

const SEEDS: std::ops::Range<u64> = 0..8;
const STEPS: usize = 80;
/// There are so few names that objects come back under the names of those that are gone.
const NAMES: usize = 12;
const HOLD: &str = "example.com/hold";

type Maps = BTreeMap<String, ConfigMap>;

fn uid(map: &ConfigMap) -> String {
    map.uid().expect("a uid")
}

fn has_finalizer(map: &ConfigMap, finalizer: &str) -> bool {
    map.finalizers().iter().any(|has| has == finalizer)
}

/// An owner keeps its dependents, unless it waits for them to go first.
fn keeps(owner: &ConfigMap) -> bool {
    owner.metadata.deletion_timestamp.is_none() || !has_finalizer(owner, "foregroundDeletion")
}

fn living_owner<'a>(map: &ConfigMap, maps: &'a Maps) -> Option<&'a ConfigMap> {
    let owner_of = |uid: &str| maps.values().find(|other| other.uid().as_deref() == Some(uid));
    map.owner_references().iter().filter_map(|owner| owner_of(&owner.uid)).find(|owner| keeps(owner))
}

/// What is gone or going now and was neither before, was asked for, or had no living owner.
fn judge(before: &Maps, now: &Maps, asked_for: &BTreeSet<String>) -> Result<(), String> {
    let goes = |map: &&ConfigMap| map.metadata.deletion_timestamp.is_some();
    let stays: BTreeSet<_> = now.values().filter(|map| !goes(map)).map(uid).collect();
    for map in before.values().filter(|map| !goes(map)) {
        if stays.contains(&uid(map)) || asked_for.contains(&uid(map)) {
            continue;
        }
        if let Some(owner) = living_owner(map, before) {
            return Err(format!("{} went, whose owner {} lives", map.name_any(), owner.name_any()));
        }
    }
    Ok(())
}

fn reference(owner: &ConfigMap, faults: &Faults) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": uid(owner),
        "blockOwnerDeletion": faults.below(2) == 0})
}

/// Some of the objects that are there, or were.
fn some_owners(seen: &[ConfigMap], faults: &Faults) -> Vec<Value> {
    let mut chosen: BTreeMap<String, Value> = BTreeMap::new();
    for _ in 0..faults.below(3) {
        if let Some(owner) = seen.get(faults.below(seen.len().max(1))) {
            chosen.insert(uid(owner), reference(owner, faults));
        }
    }
    chosen.into_values().collect()
}

/// Creates, deletes, adopts or lets go of something.
async fn do_something(
    world: &World,
    faults: &Faults,
    seen: &mut Vec<ConfigMap>,
    asked: &Mutex<BTreeSet<String>>,
) {
    let name = format!("m{}", faults.below(NAMES));
    let api = world.api::<ConfigMap>();
    let owners = some_owners(seen, faults);
    let there = api.get_opt(&name).await.expect("an answer");
    match (there, faults.below(4)) {
        (None, _) => {
            let finalizers: &[&str] = if faults.below(5) == 0 { &[HOLD] } else { &[] };
            let map =
                json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers}});
            let map = kubewright_objects::from_value(map).expect("a ConfigMap");
            seen.push(api.create(&PostParams::default(), &map).await.expect("created"));
        }
        (Some(map), 0) => {
            asked.lock().insert(uid(&map));
            let policies =
                [PropagationPolicy::Background, PropagationPolicy::Foreground, PropagationPolicy::Orphan];
            let policy = policies[faults.below(policies.len())].clone();
            let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
            // The collector may have been faster.
            let _ = api.delete(&name, &params).await;
        }
        (Some(map), 1) if has_finalizer(&map, HOLD) => let_go(world, &map).await,
        (Some(map), _) => {
            let patch = json!({"metadata": {"uid": uid(&map), "ownerReferences": owners}});
            let patch = kube::api::Patch::Merge(patch);
            let _ = api.patch(&name, &kube::api::PatchParams::default(), &patch).await;
        }
    }
}

/// Takes the finalizer of ours away, and leaves the collector's.
async fn let_go(world: &World, map: &ConfigMap) {
    let mut map = map.clone();
    map.finalizers_mut().retain(|finalizer| finalizer != HOLD);
    // It may have changed or gone by now.
    let _ = world.api::<ConfigMap>().replace(&map.name_any(), &PostParams::default(), &map).await;
}

/// What is left is what nobody owns, or whose owner lives.
async fn assert_only_garbage_is_gone(world: &World, seed: u64) {
    let is_held = |map: &ConfigMap| has_finalizer(map, HOLD);
    while let Some(held) = world.all::<ConfigMap>().await.iter().find(|map| is_held(map)) {
        let_go(world, held).await;
        world.settle().await;
    }
    let maps: Maps = world.all::<ConfigMap>().await.into_iter().map(|map| (map.name_any(), map)).collect();
    for map in maps.values() {
        assert_eq!(map.metadata.deletion_timestamp, None, "seed {seed}: {map:?}");
        let kept = map.owner_references().is_empty() || living_owner(map, &maps).is_some();
        assert!(kept, "seed {seed}: garbage is left: {map:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_with_a_living_owner_is_collected_and_all_garbage_is() {
    let mut collected = 0;
    for seed in SEEDS {
        let faults = Faults::new(seed).deadly_after(15);
        let world = World::with("-*").await;
        let asked = Arc::new(Mutex::new(BTreeSet::new()));
        let (asked_for, mut before) = (Arc::clone(&asked), Maps::new());
        let witness = Witness::of::<ConfigMap>(&world, move |now| {
            let said = judge(&before, now, &asked_for.lock());
            before.clone_from(now);
            said
        });
        let collector = Apart::start(&world, "garbage-collector-controller", &faults);
        let mut seen = Vec::new();
        for _ in 0..STEPS {
            tokio::time::sleep(Duration::from_millis(faults.below(300) as u64)).await;
            match faults.below(20) {
                0 => collector.restart(),
                _ => do_something(&world, &faults, &mut seen, &asked).await,
            }
        }
        faults.end();
        tokio::time::sleep(Duration::from_secs(300)).await;
        world.settle().await;
        assert_only_garbage_is_gone(&world, seed).await;
        assert_eq!(witness.complaints(), Vec::<String>::new(), "seed {seed}");
        let left: BTreeSet<_> = world.all::<ConfigMap>().await.iter().map(uid).collect();
        let gone = |map: &&ConfigMap| !left.contains(&uid(map)) && !asked.lock().contains(&uid(map));
        collected += seen.iter().filter(gone).count();
    }
    assert!(collected > 30, "the collector had little to do: {collected}");
}
