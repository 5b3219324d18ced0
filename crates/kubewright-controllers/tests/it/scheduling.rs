//! The scheduler and the simulated nodes.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kubewright_cluster::Cluster;
use serde_json::{Value, json};

use crate::support::{World, phase};

fn pod(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["containers"] = json!([{"name": "c", "image": "web:1", "resources": spec["resources"].take()}]);
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("resources");
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn get(world: &World, name: &str) -> Pod {
    world.api::<Pod>().get(name).await.expect("the pod")
}

fn reason(pod: &Pod) -> String {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let scheduled = conditions.into_iter().find(|condition| condition.type_ == "PodScheduled");
    scheduled.and_then(|condition| condition.reason).unwrap_or_default()
}

async fn node(world: &World, name: &str, taints: Value) {
    let node = json!({"metadata": {"name": name, "labels": {"mine": "yes"}}, "spec": {"taints": taints},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}});
    let node = kubewright_objects::from_value::<Node>(node).expect("a node");
    Api::<Node>::all(world.client.clone()).create(&PostParams::default(), &node).await.expect("created");
    world.settle().await;
}

async fn patch_node(world: &World, name: &str, patch: Value) {
    let patch = Patch::Merge(patch);
    Api::<Node>::all(world.client.clone())
        .patch(name, &PatchParams::default(), &patch)
        .await
        .expect("patched");
    world.settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs_on_the_node_that_is_there_and_is_deleted_at_once() {
    let world = World::start().await;
    world.create::<Pod>(pod("p", json!({}))).await;
    world.settle().await;
    let running = get(&world, "p").await;
    assert_eq!(phase(&running), "Running");
    assert_eq!(running.spec.expect("a spec").node_name.as_deref(), Some("node-0"));
    assert!(
        world
            .events("Pod")
            .await
            .contains(&("Scheduled".into(), "Successfully assigned default/p to node-0".into()))
    );
    world.api::<Pod>().delete("p", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!world.is_there::<Pod>("p").await);
}

#[tokio::test(start_paused = true)]
async fn a_node_of_the_user_becomes_ready_and_takes_what_fits() {
    let world = World::start().await;
    node(&world, "mine", json!([])).await;
    let ready = Api::<Node>::all(world.client.clone()).get("mine").await.expect("the node");
    let conditions = ready.status.expect("a status").conditions.expect("conditions");
    assert!(conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"));

    let large = json!({"nodeSelector": {"mine": "yes"}, "resources": {"requests": {"cpu": "3"}}});
    world.create::<Pod>(pod("first", large.clone())).await;
    world.settle().await;
    world.create::<Pod>(pod("second", large)).await;
    world.settle().await;
    assert_eq!(phase(&get(&world, "first").await), "Running");
    assert_eq!(reason(&get(&world, "second").await), "Unschedulable");
    let message = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector. \
                preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, \
                1 Preemption is not helpful for scheduling.";
    assert!(world.events("Pod").await.contains(&("FailedScheduling".into(), message.into())));
    world.api::<Pod>().delete("first", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert_eq!(phase(&get(&world, "second").await), "Running");
}

#[tokio::test(start_paused = true)]
async fn taints_and_cordons_keep_pods_off_until_they_are_lifted() {
    let world = World::start().await;
    node(&world, "mine", json!([{"key": "mine", "effect": "NoSchedule"}])).await;
    world.create::<Pod>(pod("p", json!({"nodeSelector": {"mine": "yes"}}))).await;
    world.settle().await;
    assert_eq!(reason(&get(&world, "p").await), "Unschedulable");
    patch_node(&world, "mine", json!({"spec": {"unschedulable": true, "taints": null}})).await;
    assert_eq!(reason(&get(&world, "p").await), "Unschedulable");
    let cordoned = Api::<Node>::all(world.client.clone()).get("mine").await.expect("the node");
    let taints = cordoned.spec.expect("a spec").taints.expect("taints");
    assert_eq!(taints[0].key, "node.kubernetes.io/unschedulable");
    patch_node(&world, "mine", json!({"spec": {"unschedulable": null}})).await;
    assert_eq!(phase(&get(&world, "p").await), "Running");
}

#[tokio::test(start_paused = true)]
async fn the_pod_of_a_job_ends_well_and_a_status_set_by_hand_stays() {
    let world = World::start().await;
    let job = json!({"metadata": {"name": "j"}, "spec": {"template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "c", "image": "web:1"}]}}}});
    let job = world.create::<Job>(job).await;
    let mut work = pod("work", json!({"restartPolicy": "Never"}));
    work["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": job.metadata.uid, "controller": true}]);
    world.create::<Pod>(work).await;
    world.create::<Pod>(pod("mine", json!({}))).await;
    world.settle().await;
    assert_eq!(phase(&get(&world, "work").await), "Succeeded");
    world.merge_status::<Pod>("mine", json!({"phase": "Failed"})).await;
    world.settle().await;
    assert_eq!(phase(&get(&world, "mine").await), "Failed");
}

#[tokio::test(start_paused = true)]
async fn a_month_of_heartbeats_is_a_write_a_day() {
    let world = World::with("simulated-nodes").await;
    let before = world.cluster.revision().0;
    tokio::time::sleep(Duration::from_secs(30 * 24 * 60 * 60)).await;
    assert!((29..=31).contains(&(world.cluster.revision().0 - before)));
    let leases = Api::<Lease>::namespaced(world.client.clone(), "kube-node-lease");
    let renewed =
        leases.get("node-0").await.expect("the lease").spec.expect("a spec").renew_time.expect("a time");
    let age = world.cluster.world().clock.now().duration_since(renewed.0);
    assert!(age.as_hours() <= 24, "{age}");
}

#[tokio::test(start_paused = true)]
async fn a_more_important_pod_takes_the_place_of_a_lesser_one() {
    let world = World::start().await;
    node(&world, "mine", json!([])).await;
    let classes = Api::<PriorityClass>::all(world.client.clone());
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    let class = kubewright_objects::from_value(class).expect("a class");
    classes.create(&PostParams::default(), &class).await.expect("created");
    let large = json!({"nodeSelector": {"mine": "yes"}, "resources": {"requests": {"cpu": "3"}}});
    world.create::<Pod>(pod("lesser", large.clone())).await;
    world.settle().await;
    let mut important = large;
    important["priorityClassName"] = json!("high");
    world.create::<Pod>(pod("important", important)).await;
    world.settle().await;
    assert!(!world.is_there::<Pod>("lesser").await);
    let placed = get(&world, "important").await;
    assert_eq!(phase(&placed), "Running");
    let note = format!("Preempted by pod {} on node mine", placed.metadata.uid.expect("a uid"));
    assert!(world.events("Pod").await.contains(&("Preempted".into(), note)));
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_goes_on_in_cluster_time() {
    let world = World::start().await;
    let mut crashing = pod("p", json!({}));
    crashing["metadata"]["annotations"] =
        json!({"kubewright.dev/run-for": "5s", "kubewright.dev/exit-code": "1"});
    world.create::<Pod>(crashing).await;
    tokio::time::sleep(Duration::from_secs(60 * 60)).await;
    let status = get(&world, "p").await.status.expect("a status").container_statuses.expect("containers");
    assert!((14..=17).contains(&status[0].restart_count), "{}", status[0].restart_count);
    assert_eq!(phase(&get(&world, "p").await), "Running");
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_silent_node_go_when_they_have_waited_long_enough() {
    let world = World::start().await;
    node(&world, "mine", json!([])).await;
    world.create::<Pod>(pod("p", json!({"nodeSelector": {"mine": "yes"}}))).await;
    world.settle().await;
    patch_node(&world, "mine", json!({"metadata": {"annotations": {"kubewright.dev/kubelet": "stopped"}}}))
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let silent = Api::<Node>::all(world.client.clone()).get("mine").await.expect("the node");
    let taints = silent.spec.and_then(|spec| spec.taints).expect("taints");
    assert!(
        taints
            .iter()
            .any(|taint| taint.key == "node.kubernetes.io/unreachable" && taint.effect == "NoExecute")
    );
    let unready = get(&world, "p").await;
    let conditions = unready.status.and_then(|status| status.conditions).expect("conditions");
    assert!(conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "False"));
    tokio::time::sleep(Duration::from_secs(310)).await;
    let going = get(&world, "p").await;
    assert!(going.metadata.deletion_timestamp.is_some(), "nobody ends it: its kubelet is silent");

    patch_node(&world, "mine", json!({"metadata": {"annotations": {"kubewright.dev/kubelet": null}}})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!world.is_there::<Pod>("p").await);
    let back = Api::<Node>::all(world.client.clone()).get("mine").await.expect("the node");
    assert_eq!(back.spec.and_then(|spec| spec.taints), None);
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_node_that_is_gone_are_collected() {
    let world = World::start().await;
    node(&world, "mine", json!([])).await;
    let mut held = pod("p", json!({"nodeSelector": {"mine": "yes"}}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create::<Pod>(held).await;
    world.settle().await;
    let nodes = Api::<Node>::all(world.client.clone());
    nodes.delete("mine", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(41)).await;
    let orphan = get(&world, "p").await;
    assert_eq!(phase(&orphan), "Failed");
    let conditions = orphan.status.and_then(|status| status.conditions).expect("conditions");
    let target =
        conditions.iter().find(|condition| condition.type_ == "DisruptionTarget").expect("the condition");
    assert_eq!(target.reason.as_deref(), Some("DeletionByPodGC"));
    assert!(orphan.metadata.deletion_timestamp.is_some());
}

#[tokio::test(start_paused = true)]
async fn without_nodes_pods_are_left_alone_until_a_fake_one_comes() {
    let cluster = Cluster::builder().nodes(0).start().await.expect("a cluster");
    let client = cluster.client();
    let world = World { cluster, client };
    world.settle().await;
    node(&world, "plain", json!([])).await;
    world.create::<Pod>(pod("p", json!({}))).await;
    world.settle().await;
    assert_eq!(get(&world, "p").await.status.and_then(|status| status.conditions), None);
    let fake = json!({"metadata": {"name": "fake", "annotations": {"kwok.x-k8s.io/node": "fake"}}});
    let fake = kubewright_objects::from_value::<Node>(fake).expect("a node");
    let nodes = Api::<Node>::all(world.client.clone());
    nodes.create(&PostParams::default(), &fake).await.expect("created");
    world.settle().await;
    assert_eq!(phase(&get(&world, "p").await), "Running");
    let plain = nodes.get("plain").await.expect("the node");
    assert_eq!(plain.status.and_then(|status| status.conditions), None);
}

/// Of these nodes those whose pods are sent away.
async fn evicting(world: &World, names: &[&str]) -> Vec<String> {
    let nodes = Api::<Node>::all(world.client.clone()).list(&Default::default()).await.expect("a list").items;
    let is_tainted = |node: &Node| {
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
        taints
            .iter()
            .any(|taint| taint.key == "node.kubernetes.io/unreachable" && taint.effect == "NoExecute")
    };
    let tainted = nodes.iter().filter(|node| is_tainted(node)).filter_map(|node| node.metadata.name.clone());
    tainted.filter(|name| names.contains(&name.as_str())).collect()
}

#[tokio::test(start_paused = true)]
async fn nodes_are_emptied_one_after_the_other_and_not_while_most_of_a_zone_is_silent() {
    let world = World::start().await;
    let silent = ["a", "b", "c"];
    for name in ["a", "b", "c", "d"] {
        node(&world, name, json!([])).await;
    }
    world.settle().await;
    let kubelet = |state: Value| json!({"metadata": {"annotations": {"kubewright.dev/kubelet": state}}});
    for name in silent {
        patch_node(&world, name, kubelet(json!("stopped"))).await;
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(evicting(&world, &silent).await, Vec::<String>::new(), "three of five");
    patch_node(&world, "c", kubelet(Value::Null)).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(evicting(&world, &silent).await.len(), 1, "the first");
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(evicting(&world, &silent).await, ["a", "b"]);
}
