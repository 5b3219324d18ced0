//! StatefulSets.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};

use crate::support::{World, template};

fn stateful_set(replicas: i32, spec: Value) -> Value {
    let mut object = json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas, "serviceName": "peers",
        "selector": {"matchLabels": {"app": "web"}}, "template": template("web:1")}});
    let (Some(has), Value::Object(more)) = (object["spec"].as_object_mut(), spec) else { panic!("no spec") };
    has.extend(more);
    object
}

fn with_claims(policy: &str) -> Value {
    json!({
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "storageClassName": "simulated", "resources": {"requests": {"storage": "1Gi"}}}}],
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy, "whenScaled": policy},
    })
}

async fn status(world: &World) -> Value {
    let set = world.api::<StatefulSet>().get("web").await.expect("the set");
    kubewright_objects::to_value(&set.status).expect("JSON")
}

/// The image of each pod.
async fn images(world: &World) -> Vec<(String, String)> {
    let image =
        |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone()).unwrap_or_default();
    world
        .all::<Pod>()
        .await
        .iter()
        .map(|pod| (pod.metadata.name.clone().unwrap_or_default(), image(pod)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_set_becomes_ready_and_tells_its_revision() {
    let world = World::start().await;
    world.create::<StatefulSet>(stateful_set(3, json!({}))).await;
    world.settle().await;
    assert_eq!(world.names::<Pod>().await, ["web-0", "web-1", "web-2"]);
    let revision = world.names::<ControllerRevision>().await.remove(0);
    assert_eq!(
        status(&world).await,
        json!({"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "currentReplicas": 3,
            "updatedReplicas": 3, "currentRevision": revision, "updateRevision": revision, "collisionCount": 0})
    );
    let events = world.events("StatefulSet").await;
    assert!(
        events
            .contains(&("SuccessfulCreate".into(), "Create Pod web-2 in StatefulSet web successful".into()))
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_can_be_rolled_back_and_gives_the_old_revision_a_new_number() {
    let world = World::start().await;
    world.create::<StatefulSet>(stateful_set(2, json!({}))).await;
    world.settle().await;
    for image in ["web:2", "web:1"] {
        world.merge::<StatefulSet>("web", json!({"spec": {"template": template(image)}})).await;
        world.settle().await;
        assert!(images(&world).await.iter().all(|(_, has)| has == image));
    }
    let mut numbers: Vec<_> =
        world.all::<ControllerRevision>().await.iter().map(|revision| revision.revision).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn more_revisions_than_the_limit_are_forgotten() {
    let world = World::start().await;
    world.create::<StatefulSet>(stateful_set(1, json!({"revisionHistoryLimit": 1}))).await;
    for version in 1..6 {
        world
            .merge::<StatefulSet>("web", json!({"spec": {"template": template(&format!("web:{version}"))}}))
            .await;
        world.settle().await;
    }
    let mut numbers: Vec<_> =
        world.all::<ControllerRevision>().await.iter().map(|revision| revision.revision).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [4, 5]);
}

#[tokio::test(start_paused = true)]
async fn only_pods_from_the_partition_on_are_updated() {
    let world = World::start().await;
    let strategy = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}});
    world.create::<StatefulSet>(stateful_set(2, strategy)).await;
    world.settle().await;
    world.merge::<StatefulSet>("web", json!({"spec": {"template": template("web:2")}})).await;
    world.settle().await;
    let expected = [("web-0".into(), "web:1".into()), ("web-1".into(), "web:2".into())];
    assert_eq!(images(&world).await, expected);
    world.api::<Pod>().delete("web-0", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert_eq!(images(&world).await, expected, "it comes back as it was");
    let status = status(&world).await;
    assert_eq!((&status["currentReplicas"], &status["updatedReplicas"]), (&json!(1), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn pods_are_updated_one_after_the_other_when_they_have_been_ready_for_long_enough() {
    let world = World::start().await;
    world.create::<StatefulSet>(stateful_set(2, json!({"minReadySeconds": 30}))).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(world.names::<Pod>().await, ["web-0"]);
    assert_eq!(status(&world).await["availableReplicas"], 0);
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(world.names::<Pod>().await.len(), 2);
    tokio::time::sleep(Duration::from_secs(35)).await;
    assert_eq!(status(&world).await["availableReplicas"], 2);
    world.merge::<StatefulSet>("web", json!({"spec": {"template": template("web:2")}})).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(images(&world).await[0].1, "web:1");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(images(&world).await[0].1, "web:2");
}

#[tokio::test(start_paused = true)]
async fn pods_that_ended_come_back() {
    let world = World::start().await;
    world.create::<StatefulSet>(stateful_set(2, json!({}))).await;
    world.settle().await;
    let before = world.api::<Pod>().get("web-0").await.expect("the pod").metadata.uid;
    world.merge_status::<Pod>("web-0", json!({"phase": "Succeeded"})).await;
    world.settle().await;
    let after = world.api::<Pod>().get("web-0").await.expect("the pod");
    assert_ne!(after.metadata.uid, before);
    assert_eq!(status(&world).await["readyReplicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_lost_its_label_gets_it_back_and_one_of_another_name_is_let_go() {
    let world = World::start().await;
    world.create::<StatefulSet>(stateful_set(1, json!({}))).await;
    world.settle().await;
    let label = "statefulset.kubernetes.io/pod-name";
    world.merge::<Pod>("web-0", json!({"metadata": {"labels": {label: null}}})).await;
    world.settle().await;
    let labels = world.api::<Pod>().get("web-0").await.expect("the pod").metadata.labels.expect("labels");
    assert_eq!(labels[label], "web-0");
    let events = world.events("StatefulSet").await;
    assert!(
        events
            .contains(&("SuccessfulUpdate".into(), "Update Pod web-0 in StatefulSet web successful".into()))
    );

    let owners = world.api::<Pod>().get("web-0").await.expect("the pod").metadata.owner_references;
    let stranger = json!({"metadata": {"name": "stranger", "labels": {"app": "web"}, "ownerReferences": owners},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]}});
    world.create::<Pod>(stranger).await;
    world.settle().await;
    assert_eq!(world.api::<Pod>().get("stranger").await.expect("the pod").metadata.owner_references, None);
}

#[tokio::test(start_paused = true)]
async fn claims_stay_unless_the_policy_says_otherwise() {
    for (policy, left) in [("Retain", 3), ("Delete", 1)] {
        let world = World::start().await;
        world.storage_class().await;
        world.create::<StatefulSet>(stateful_set(3, with_claims(policy))).await;
        world.settle().await;
        assert_eq!(world.names::<PersistentVolumeClaim>().await, ["data-web-0", "data-web-1", "data-web-2"]);
        world.merge::<StatefulSet>("web", json!({"spec": {"replicas": 1}})).await;
        world.settle().await;
        assert_eq!(world.names::<PersistentVolumeClaim>().await.len(), left, "{policy}");
        world.merge::<StatefulSet>("web", json!({"spec": {"replicas": 2}})).await;
        world.settle().await;
        assert_eq!(world.names::<Pod>().await, ["web-0", "web-1"], "{policy}");
        world.api::<StatefulSet>().delete("web", &DeleteParams::background()).await.expect("deleted");
        world.settle().await;
        let remaining = world.names::<PersistentVolumeClaim>().await;
        assert_eq!(remaining.len(), if policy == "Retain" { 3 } else { 0 }, "{policy}");
        assert!(world.names::<ControllerRevision>().await.is_empty(), "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_policy_reaches_the_claims_of_running_pods() {
    let world = World::start().await;
    world.storage_class().await;
    world.create::<StatefulSet>(stateful_set(1, with_claims("Retain"))).await;
    world.settle().await;
    let owners = async || {
        let claim = world.api::<PersistentVolumeClaim>().get("data-web-0").await.expect("the claim");
        claim
            .metadata
            .owner_references
            .unwrap_or_default()
            .into_iter()
            .map(|owner| owner.kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(owners().await, Vec::<String>::new());
    let policy = json!({"whenDeleted": "Delete", "whenScaled": "Retain"});
    world
        .merge::<StatefulSet>("web", json!({"spec": {"persistentVolumeClaimRetentionPolicy": policy}}))
        .await;
    world.settle().await;
    assert_eq!(owners().await, ["StatefulSet"]);
}

/// Deletes a set of two pods that a finalizer holds. Returns its status before.
async fn held_and_deleted(world: &World, policy: PropagationPolicy) -> Value {
    let mut set = stateful_set(2, json!({}));
    set["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create::<StatefulSet>(set).await;
    world.settle().await;
    let before = status(world).await;
    let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
    world.api::<StatefulSet>().delete("web", &params).await.expect("deleted");
    world.settle().await;
    before
}

#[tokio::test(start_paused = true)]
async fn a_set_that_is_orphaned_and_held_keeps_its_status() {
    let world = World::start().await;
    let before = held_and_deleted(&world, PropagationPolicy::Orphan).await;
    assert!(world.all::<Pod>().await.iter().all(|pod| pod.metadata.owner_references.is_none()));
    assert_eq!((&status(&world).await["replicas"], &before["replicas"]), (&json!(2), &json!(2)));
}

/// kube-controller-manager v1.36 creates the revision again that the garbage collector has deleted, and counts what is left.
#[tokio::test(start_paused = true)]
async fn a_set_that_is_deleted_in_the_foreground_and_held_counts_no_pods_and_has_its_revision() {
    let world = World::start().await;
    let before = held_and_deleted(&world, PropagationPolicy::Foreground).await;
    assert!(world.all::<Pod>().await.is_empty());
    let after = status(&world).await;
    assert_eq!((&after["replicas"], &after["updateRevision"]), (&json!(0), &before["updateRevision"]));
    assert_eq!(after["updateRevision"], *world.names::<ControllerRevision>().await[0]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_set_say_the_prefix_of_their_name() {
    let world = World::start().await;
    world.create::<StatefulSet>(stateful_set(1, json!({}))).await;
    world.settle().await;
    assert_eq!(world.all::<Pod>().await[0].metadata.generate_name.as_deref(), Some("web-"));
}
