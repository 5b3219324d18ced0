//! DaemonSets.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{World, template};

/// A world with three nodes.
async fn three_nodes() -> World {
    let world = World::start().await;
    let nodes = Api::<Node>::all(world.client.clone());
    for name in ["two", "three"] {
        let allocatable = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        let node = json!({"metadata": {"name": name, "labels": {"disk": "ssd"}},
            "status": {"capacity": allocatable, "allocatable": allocatable}});
        let node = kubewright_objects::from_value(node).expect("a node");
        nodes.create(&PostParams::default(), &node).await.expect("created");
    }
    world.settle().await;
    world
}

fn daemon_set(spec: Value) -> Value {
    let mut object = json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}},
        "template": template("web:1")}});
    let (Some(has), Value::Object(more)) = (object["spec"].as_object_mut(), spec) else { panic!("no spec") };
    has.extend(more);
    object
}

async fn status(world: &World) -> Value {
    let set = world.api::<DaemonSet>().get("web").await.expect("the set");
    kubewright_objects::to_value(&set.status).expect("JSON")
}

async fn patch_node(world: &World, name: &str, patch: Value) {
    let nodes = Api::<Node>::all(world.client.clone());
    nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
}

#[tokio::test(start_paused = true)]
async fn every_node_gets_one_pod_and_the_status_counts_them() {
    let world = three_nodes().await;
    world.create::<DaemonSet>(daemon_set(json!({}))).await;
    world.settle().await;
    let mut nodes: Vec<_> =
        world.all::<Pod>().await.into_iter().filter_map(|pod| pod.spec?.node_name).collect();
    nodes.sort();
    nodes.dedup();
    assert_eq!(nodes.len(), 3, "{nodes:?}");
    assert_eq!(
        status(&world).await,
        json!({"observedGeneration": 1, "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberMisscheduled": 0,
            "numberReady": 3, "updatedNumberScheduled": 3, "numberAvailable": 3})
    );
}

#[tokio::test(start_paused = true)]
async fn pods_follow_the_labels_and_taints_of_nodes() {
    let world = three_nodes().await;
    let mut template = template("web:1");
    template["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    world.create::<DaemonSet>(daemon_set(json!({"template": template}))).await;
    world.settle().await;
    assert_eq!(world.all::<Pod>().await.len(), 2);
    patch_node(&world, "two", json!({"metadata": {"labels": {"disk": null}}})).await;
    world.settle().await;
    assert_eq!(world.all::<Pod>().await.len(), 1);
    patch_node(&world, "two", json!({"metadata": {"labels": {"disk": "ssd"}}})).await;
    let taint = json!([{"key": "broken", "effect": "NoExecute"}]);
    patch_node(&world, "three", json!({"spec": {"taints": taint}})).await;
    world.settle().await;
    let pods = world.all::<Pod>().await;
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0].spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Some("two"));
}

#[tokio::test(start_paused = true)]
async fn an_update_replaces_all_pods_and_can_be_rolled_back() {
    let world = three_nodes().await;
    for surge in [json!({"maxSurge": 1, "maxUnavailable": 0}), json!({"maxSurge": 0, "maxUnavailable": 1})] {
        world.create::<DaemonSet>(daemon_set(json!({"updateStrategy": {"rollingUpdate": surge}}))).await;
        world.settle().await;
        for image in ["web:2", "web:1"] {
            world.merge::<DaemonSet>("web", json!({"spec": {"template": template(image)}})).await;
            world.settle().await;
            let pods = world.all::<Pod>().await;
            assert_eq!(pods.len(), 3);
            let is_new = |pod: &Pod| {
                pod.spec.as_ref().is_some_and(|spec| spec.containers[0].image.as_deref() == Some(image))
            };
            assert!(pods.iter().all(is_new), "{image}");
        }
        let mut numbers: Vec<_> =
            world.all::<ControllerRevision>().await.iter().map(|revision| revision.revision).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [2, 3]);
        world.api::<DaemonSet>().delete("web", &DeleteParams::background()).await.expect("deleted");
        world.settle().await;
        assert!(world.names::<ControllerRevision>().await.is_empty());
    }
}

/// Only the newer pod of a node is waited for: the older one counts in the status.
#[tokio::test(start_paused = true)]
async fn a_surge_ends_when_the_new_pods_have_been_ready_for_long_enough() {
    let world = three_nodes().await;
    let surge = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    world.create::<DaemonSet>(daemon_set(json!({"minReadySeconds": 10, "updateStrategy": surge}))).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.merge::<DaemonSet>("web", json!({"spec": {"template": template("web:2")}})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let status = status(&world).await;
    assert_eq!((&status["updatedNumberScheduled"], &status["numberAvailable"]), (&json!(3), &json!(3)));
    assert_eq!(world.all::<Pod>().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_failed_pod_is_replaced_and_people_are_told() {
    let world = World::start().await;
    world.create::<DaemonSet>(daemon_set(json!({}))).await;
    world.settle().await;
    for _ in 0..2 {
        let name = world.names::<Pod>().await.remove(0);
        world.merge_status::<Pod>(&name, json!({"phase": "Failed"})).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_ne!(world.names::<Pod>().await, [name]);
    }
    let events = world.events("DaemonSet").await;
    let failed: Vec<_> = events.iter().filter(|(reason, _)| reason == "FailedDaemonPod").collect();
    assert_eq!(failed.len(), 2);
    assert!(failed[0].1.starts_with("Found failed daemon pod default/web-"), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn available_pods_are_counted_after_min_ready_seconds() {
    let world = World::start().await;
    world.create::<DaemonSet>(daemon_set(json!({"minReadySeconds": 30}))).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let before = status(&world).await;
    assert_eq!((&before["numberReady"], &before["numberUnavailable"]), (&json!(1), &json!(1)));
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(status(&world).await["numberAvailable"], 1);
}
