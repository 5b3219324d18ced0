//! Jobs under controllers that fail: every pod is counted, and counted once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kubewright_world::Dice;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::faults::{Apart, Faults, Witness};
use crate::support::{World, phase};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    indexed: bool,
    completions: i32,
    parallelism: i32,
    /// One pod in so many fails.
    failing: usize,
    one_in: usize,
    life: usize,
}

fn case() -> impl Strategy<Value = Case> {
    (any::<u64>(), any::<bool>(), 1..6, 1..4, 2..5_usize, 2..8_usize, 3..40_usize).prop_map(
        |(seed, indexed, completions, parallelism, failing, one_in, life)| Case {
            seed,
            indexed,
            completions,
            parallelism,
            failing,
            one_in,
            life,
        },
    )
}

fn job(case: &Case) -> Value {
    let mode = if case.indexed { "Indexed" } else { "NonIndexed" };
    json!({"metadata": {"name": "work"}, "spec": {
        "completionMode": mode, "completions": case.completions, "parallelism": case.parallelism, "backoffLimit": 1000,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "work:1"}]}}}})
}

fn is_active(pod: &Pod) -> bool {
    !matches!(phase(pod), "Succeeded" | "Failed") && pod.metadata.deletion_timestamp.is_none()
}

fn index(pod: &Pod) -> Option<&String> {
    pod.metadata.annotations.as_ref()?.get(INDEX)
}

/// There are never more pods than the Job wants, nor two of an index, nor one of nobody.
fn judge(case: &Case, pods: &BTreeMap<String, Pod>) -> Result<(), String> {
    let active: Vec<_> = pods.values().filter(|pod| is_active(pod)).collect();
    let indexes: BTreeSet<_> = active.iter().filter_map(|pod| index(pod)).collect();
    if active.len() > usize::try_from(case.parallelism).unwrap_or_default() {
        Err(format!("{} pods", active.len()))
    } else if case.indexed && indexes.len() != active.len() {
        Err("two pods of an index".to_owned())
    } else if pods.values().any(|pod| pod.metadata.owner_references.is_none()) {
        Err("an orphan".to_owned())
    } else {
        Ok(())
    }
}

/// Ends pods, some of them badly, until the Job has.
async fn kubelet(world: &World, case: &Case) -> Job {
    let dice = Dice::from_seed(case.seed);
    for _ in 0..5_000 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let job = world.api::<Job>().get("work").await.expect("the Job");
        let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
        if conditions.clone().any(|condition| condition.type_ == "Complete") {
            return job;
        }
        let pods = world.all::<Pod>().await;
        for pod in pods.iter().filter(|pod| is_active(pod) && dice.below(2) == 0) {
            let phase = if dice.below(case.failing) == 0 { "Failed" } else { "Succeeded" };
            let name = pod.metadata.name.clone().unwrap_or_default();
            world.merge_status::<Pod>(&name, json!({"phase": phase})).await;
        }
        if !pods.iter().any(is_active) {
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
    }
    panic!("the Job never ended: {case:?}, {:?}", world.api::<Job>().get("work").await);
}

async fn play(case: &Case) {
    let world = World::with_nodes("serviceaccount", 0).await;
    let faults = Faults::new(case.seed).one_in(case.one_in).deadly_after(case.life);
    let judged = case.clone();
    let witness = Witness::of::<Pod>(&world, move |pods| judge(&judged, pods));
    world.create::<Job>(job(case)).await;
    let controllers = Apart::start(&world, "job-controller", &faults);
    let job = kubelet(&world, case).await;
    drop(controllers);
    assert_eq!(witness.complaints(), Vec::<String>::new(), "{case:?}");
    let mut ended: BTreeMap<String, i32> = BTreeMap::new();
    for pod in world.all::<Pod>().await {
        assert_eq!(pod.metadata.finalizers, None, "a pod that is still held: {case:?}");
        *ended.entry(phase(&pod).to_owned()).or_default() += 1;
    }
    let status = job.status.expect("a status");
    let counted = [("Succeeded", status.succeeded), ("Failed", status.failed)];
    let counted: BTreeMap<_, _> =
        counted.into_iter().filter_map(|(phase, count)| Some((phase.to_owned(), count?))).collect();
    assert_eq!(counted, ended, "{case:?}");
    assert_eq!(status.succeeded, Some(case.completions), "{case:?}");
    assert_eq!((status.active, status.ready, status.terminating), (None, Some(0), Some(0)), "{case:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn every_pod_is_counted_once_whatever_write_fails(case in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(play(&case));
    }
}
