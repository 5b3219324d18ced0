//! Services: their Endpoints and EndpointSlices.

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, PropagationPolicy};
use serde_json::{Value, json};

use crate::support::{World, deployment};

fn service(spec: &Value) -> Value {
    json!({"metadata": {"name": "web", "labels": {"team": "a"}}, "spec": spec})
}

fn selecting() -> Value {
    service(&json!({"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]}))
}

/// Of each endpoint in the slices of the Service `web` the pod and whether it is ready.
async fn endpoints(world: &World) -> Vec<(String, bool)> {
    let slices = world.all::<EndpointSlice>().await;
    let of_web = slices.into_iter().filter(|slice| {
        slice.metadata.labels.as_ref().is_some_and(|labels| labels["kubernetes.io/service-name"] == "web")
    });
    let endpoints = of_web.flat_map(|slice| slice.endpoints.unwrap_or_default());
    let mut reported: Vec<_> = endpoints
        .map(|endpoint| {
            let name = endpoint.target_ref.and_then(|pod| pod.name).unwrap_or_default();
            (name, endpoint.conditions.and_then(|conditions| conditions.ready) == Some(true))
        })
        .collect();
    reported.sort();
    reported
}

/// How many addresses of the Endpoints `web` are ready, and how many are not.
async fn addresses(world: &World) -> (usize, usize) {
    let web = world.api::<Endpoints>().get("web").await.expect("Endpoints");
    let subsets = web.subsets.unwrap_or_default();
    let count = |list: Option<&Vec<_>>| list.map_or(0, Vec::len);
    subsets.iter().fold((0, 0), |(ready, others), subset| {
        (ready + count(subset.addresses.as_ref()), others + count(subset.not_ready_addresses.as_ref()))
    })
}

#[tokio::test(start_paused = true)]
async fn the_endpoints_of_a_service_are_its_ready_pods() {
    let world = World::start().await;
    world.create::<Service>(selecting()).await;
    world.create::<k8s_openapi::api::apps::v1::Deployment>(deployment(3)).await;
    world.settle().await;
    let pods = world.names::<Pod>().await;
    assert_eq!(endpoints(&world).await, pods.iter().map(|pod| (pod.clone(), true)).collect::<Vec<_>>());
    assert_eq!(addresses(&world).await, (3, 0));

    let unready = json!({"conditions": [
        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    let relabelled = json!({"metadata": {"labels": {"app": "debug"}}});
    world.merge_status::<Pod>(&pods[0], unready).await;
    world.merge::<Pod>(&pods[1], relabelled).await;
    world.settle().await;
    let reported = endpoints(&world).await;
    assert!(reported.contains(&(pods[0].clone(), false)), "{reported:?}");
    assert!(reported.iter().all(|(pod, _)| *pod != pods[1]), "{reported:?}");
    assert_eq!(addresses(&world).await, (2, 1), "the Deployment has replaced the pod that it lost");
}

#[tokio::test(start_paused = true)]
async fn endpoints_and_slices_go_with_their_service_and_come_back_when_they_are_deleted() {
    let world = World::start().await;
    world.create::<Service>(selecting()).await;
    world.settle().await;
    let first = world.all::<EndpointSlice>().await;
    let ours = first.iter().find(|slice| slice.metadata.generate_name.is_some()).expect("a slice");
    let name = ours.metadata.name.clone().expect("a name");
    world.api::<EndpointSlice>().delete(&name, &DeleteParams::default()).await.expect("deleted");
    world.api::<Endpoints>().delete("web", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert_eq!(addresses(&world).await, (0, 0));
    assert_eq!(world.all::<EndpointSlice>().await.len(), first.len());

    world.api::<Service>().delete("web", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert!(!world.is_there::<Endpoints>("web").await);
    assert_eq!(world.all::<EndpointSlice>().await.len(), first.len() - 1);
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_somebody_keeps_by_hand_are_mirrored() {
    let world = World::start().await;
    world.create::<Service>(service(&json!({"ports": [{"port": 80}]}))).await;
    let by_hand = json!({"metadata": {"name": "web"}, "subsets": [
        {"addresses": [{"ip": "10.9.0.1"}], "notReadyAddresses": [{"ip": "10.9.0.2"}], "ports": [{"port": 80}]}]});
    world.create::<Endpoints>(by_hand).await;
    world.settle().await;
    assert_eq!(endpoints(&world).await.iter().map(|(_, ready)| *ready).collect::<Vec<_>>(), [false, true]);
    world.merge::<Service>("web", json!({"spec": {"selector": {"app": "none"}}})).await;
    world.settle().await;
    assert_eq!(endpoints(&world).await, [], "the Service's own controller has taken over");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_orphaned_leaves_its_empty_slice() {
    let world = World::start().await;
    let mut held = selecting();
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create::<Service>(held).await;
    world.settle().await;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    world.api::<Service>().delete("web", &orphan).await.expect("deleted");
    world.settle().await;
    world.merge::<Service>("web", json!({"metadata": {"finalizers": null}})).await;
    world.settle().await;
    let slices = world.all::<EndpointSlice>().await;
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0].metadata.owner_references, None);
}
