//! No pod is orphaned or doubled when writes fail and controllers are restarted between two of them.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ReplicationController};
use kube::api::{DeleteParams, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::faults::{Apart, Faults, Witness};
use crate::support::{World, deployment, phase, template};

const SEEDS: std::ops::Range<u64> = 0..4;
const REPLICAS: usize = 5;

fn is_active(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase(pod), "Succeeded" | "Failed")
}

fn active(pods: &BTreeMap<String, Pod>) -> usize {
    pods.values().filter(|pod| is_active(pod)).count()
}

fn owner_of(pod: &Pod) -> Option<&str> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
}

fn workload(spec: Value) -> Value {
    let mut object = json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}},
        "template": template("web:1")}});
    let (Some(has), Value::Object(more)) = (object["spec"].as_object_mut(), spec) else { panic!("no spec") };
    has.extend(more);
    object
}

/// Lives through troubles: writes fail, controllers are restarted, pods are deleted and fail. In the end all is well,
/// and the owner is returned.
async fn live_through<K>(
    world: &World,
    names: &'static str,
    object: Value,
    seed: u64,
    mut trouble: impl AsyncFnMut(&Faults),
) -> K
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize,
{
    let faults = Faults::new(seed);
    let controllers = Apart::start(world, names, &faults);
    world.create::<K>(object).await;
    for _ in 0..12 {
        tokio::time::sleep(Duration::from_millis(faults.below(400) as u64)).await;
        match faults.below(4) {
            0 => controllers.restart(),
            1 => lose_a_pod(world, &faults).await,
            2 => fail_a_pod(world, &faults).await,
            _ => trouble(&faults).await,
        }
    }
    faults.end();
    // After such a short trouble no key waits longer for its next try.
    tokio::time::sleep(Duration::from_secs(300)).await;
    world.settle().await;
    world.api::<K>().get("web").await.expect("the owner")
}

async fn lose_a_pod(world: &World, faults: &Faults) {
    let pods = world.names::<Pod>().await;
    if !pods.is_empty() {
        // It may be gone by now.
        let _ = world.api::<Pod>().delete(&pods[faults.below(pods.len())], &DeleteParams::default()).await;
    }
}

async fn fail_a_pod(world: &World, faults: &Faults) {
    let pods = world.names::<Pod>().await;
    if !pods.is_empty() {
        let name = &pods[faults.below(pods.len())];
        let patch = kube::api::Patch::Merge(json!({"status": {"phase": "Failed"}}));
        let _ = world.api::<Pod>().patch_status(name, &kube::api::PatchParams::default(), &patch).await;
    }
}

/// As many pods as there should be, all of them of the living owner.
async fn assert_all_is_well(world: &World, uid: Option<&String>, wanted: usize, seed: u64) {
    let pods = world.all::<Pod>().await;
    let alive: Vec<_> = pods.iter().filter(|pod| is_active(pod)).collect();
    assert_eq!(alive.len(), wanted, "seed {seed}");
    for pod in alive {
        assert_eq!((owner_of(pod), phase(pod)), (uid.map(String::as_str), "Running"), "seed {seed}");
    }
}

/// A cluster whose own controllers leave pods alone, but for their lives on nodes and the end of orphans.
async fn cluster() -> World {
    let world = World::with(
        "serviceaccount,scheduler,simulated-nodes,nodelifecycle,garbagecollector,pvc-protection,persistentvolume-binder",
    )
    .await;
    world.storage_class().await;
    world
}

#[tokio::test(start_paused = true)]
async fn replica_sets_never_double_or_orphan_a_pod() {
    for seed in SEEDS {
        let world = cluster().await;
        let witness = Witness::of::<Pod>(&world, |pods| match active(pods) {
            count if count > REPLICAS => Err(format!("{count} pods")),
            _ => Ok(()),
        });
        let object = workload(json!({"replicas": REPLICAS}));
        let set: ReplicaSet = live_through(&world, "replicaset", object, seed, async |_| {}).await;
        assert_eq!(witness.complaints(), Vec::<String>::new(), "seed {seed}");
        assert_all_is_well(&world, set.metadata.uid.as_ref(), REPLICAS, seed).await;
        let status = set.status.expect("a status");
        assert_eq!((status.replicas, status.available_replicas), (5, Some(5)), "seed {seed}");
        assert_eq!(status.conditions, None, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn replication_controllers_never_double_or_orphan_a_pod() {
    for seed in SEEDS {
        let world = cluster().await;
        let witness = Witness::of::<Pod>(&world, |pods| match active(pods) {
            count if count > REPLICAS => Err(format!("{count} pods")),
            _ => Ok(()),
        });
        let mut object = workload(json!({"replicas": REPLICAS}));
        object["spec"]["selector"] = json!({"app": "web"});
        let names = "replicationcontroller";
        let owner: ReplicationController = live_through(&world, names, object, seed, async |_| {}).await;
        assert_eq!(witness.complaints(), Vec::<String>::new(), "seed {seed}");
        assert_all_is_well(&world, owner.metadata.uid.as_ref(), REPLICAS, seed).await;
        let events = world.events("ReplicationController").await;
        assert!(
            events
                .iter()
                .any(|(reason, note)| reason == "SuccessfulCreate" && note.starts_with("Created pod: web-"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn deployments_never_double_or_orphan_a_set() {
    for seed in SEEDS {
        let world = cluster().await;
        let mut version = 1;
        let update = async |_: &Faults| {
            version += 1;
            world
                .merge::<Deployment>(
                    "web",
                    json!({"spec": {"template": template(&format!("web:{version}"))}}),
                )
                .await;
        };
        let web: Deployment =
            live_through(&world, "deployment,replicaset", deployment(5), seed, update).await;
        let sets = world.all::<ReplicaSet>().await;
        let sized: Vec<_> =
            sets.iter().filter(|set| set.spec.as_ref().and_then(|spec| spec.replicas) != Some(0)).collect();
        assert_eq!(sized.len(), 1, "seed {seed}");
        for set in &sets {
            let owners = set.metadata.owner_references.as_deref().unwrap_or_default();
            assert_eq!(
                owners.iter().map(|owner| Some(&owner.uid)).collect::<Vec<_>>(),
                [web.metadata.uid.as_ref()]
            );
        }
        assert_all_is_well(&world, sized[0].metadata.uid.as_ref(), 5, seed).await;
        let status = web.status.expect("a status");
        assert_eq!((status.updated_replicas, status.available_replicas), (Some(5), Some(5)), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn stateful_sets_never_double_or_orphan_a_pod_or_a_claim() {
    for seed in SEEDS {
        let world = cluster().await;
        let policy = ["OrderedReady", "Parallel"][usize::from(seed % 2 == 1)];
        let names: Vec<_> = (0..REPLICAS).map(|ordinal| format!("web-{ordinal}")).collect();
        let known = names.clone();
        let witness = Witness::of::<Pod>(&world, move |pods| {
            let strangers: Vec<_> = pods.keys().filter(|name| !known.contains(name)).collect();
            if strangers.is_empty() { Ok(()) } else { Err(format!("{strangers:?}")) }
        });
        let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "storageClassName": "simulated", "resources": {"requests": {"storage": "1Gi"}}}});
        let object =
            workload(json!({"replicas": REPLICAS, "serviceName": "peers", "podManagementPolicy": policy,
            "volumeClaimTemplates": [claim],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"}}));
        let mut version = 1;
        let update = async |_: &Faults| {
            version += 1;
            let mut template = template("web:1");
            template["metadata"]["annotations"] = json!({"version": version.to_string()});
            world.merge::<StatefulSet>("web", json!({"spec": {"template": template}})).await;
        };
        let set: StatefulSet = live_through(&world, "statefulset", object, seed, update).await;
        assert_eq!(witness.complaints(), Vec::<String>::new(), "seed {seed}");
        let pods = world.all::<Pod>().await;
        assert_eq!(
            pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect::<Vec<_>>(),
            names,
            "seed {seed}"
        );
        assert!(pods.iter().all(|pod| owner_of(pod) == set.metadata.uid.as_deref()), "seed {seed}");
        let status = set.status.expect("a status");
        assert_eq!((status.replicas, status.updated_replicas), (5, Some(5)), "seed {seed}");
        assert_eq!(world.names::<PersistentVolumeClaim>().await.len(), REPLICAS, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn daemon_sets_never_double_or_orphan_a_pod() {
    for seed in SEEDS {
        let world = cluster().await;
        let witness = Witness::of::<Pod>(&world, |pods| {
            let mut on_node: BTreeMap<String, usize> = BTreeMap::new();
            for pod in pods.values().filter(|pod| is_active(pod)) {
                *on_node.entry(node(pod)).or_default() += 1;
            }
            if on_node.values().all(|count| *count == 1) { Ok(()) } else { Err(format!("{on_node:?}")) }
        });
        let mut version = 1;
        let update = async |_: &Faults| {
            version += 1;
            world
                .merge::<DaemonSet>("web", json!({"spec": {"template": template(&format!("web:{version}"))}}))
                .await;
        };
        let set: DaemonSet = live_through(&world, "daemonset", workload(json!({})), seed, update).await;
        assert_eq!(witness.complaints(), Vec::<String>::new(), "seed {seed}");
        assert_all_is_well(&world, set.metadata.uid.as_ref(), 1, seed).await;
        let status = set.status.expect("a status");
        assert_eq!((status.number_ready, status.updated_number_scheduled), (1, Some(1)), "seed {seed}");
    }
}

/// The node that the pod is on or was made for.
fn node(pod: &Pod) -> String {
    let pod = kubewright_objects::to_value(&pod).expect("JSON");
    let terms = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0].as_str().unwrap_or_default().to_owned()
}
