//! Claims of devices: made from templates, allocated where a pod goes, and free again when it is done.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kubewright_objects::devices::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice};
use serde_json::{Value, json};

use crate::support::{World, phase};

/// A cluster with a class `gpu`, a template `one-gpu` for one of them, and these devices on its node.
async fn world(devices: Value) -> World {
    let world = World::start().await;
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [
        {"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}});
    let class: DeviceClass = kubewright_objects::from_value(class).expect("a class");
    Api::all(world.client.clone()).create(&PostParams::default(), &class).await.expect("created");
    let template = json!({"metadata": {"name": "one-gpu"}, "spec": {"spec": one_gpu()}});
    world.create::<ResourceClaimTemplate>(template).await;
    let slice = json!({"metadata": {"name": "node-0"}, "spec": {"driver": "gpu.example.com", "nodeName": "node-0",
        "pool": {"name": "node-0", "resourceSliceCount": 1}, "devices": devices}});
    let slice: ResourceSlice = kubewright_objects::from_value(slice).expect("a slice");
    Api::all(world.client.clone()).create(&PostParams::default(), &slice).await.expect("created");
    world.settle().await;
    world
}

fn one_gpu() -> Value {
    json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}})
}

/// A pod with a claim from the template.
async fn pod(world: &World, name: &str, claim: Value) {
    let mut claim = claim;
    claim["name"] = json!("gpu");
    let pod = json!({"metadata": {"name": name}, "spec": {"resourceClaims": [claim],
        "containers": [{"name": "c", "image": "web:1", "resources": {"claims": [{"name": "gpu"}]}}]}});
    world.create::<Pod>(pod).await;
    world.settle().await;
}

fn from_template() -> Value {
    json!({"resourceClaimTemplateName": "one-gpu"})
}

async fn get(world: &World, name: &str) -> Pod {
    world.api::<Pod>().get(name).await.expect("the pod")
}

async fn says(world: &World, reason: &str, message: &str) -> bool {
    world.events("Pod").await.iter().any(|(was, said)| was == reason && said.starts_with(message))
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_a_claim_from_its_template_and_the_claim_a_device() {
    let world = world(json!([{"name": "g0"}])).await;
    pod(&world, "p", from_template()).await;
    let running = get(&world, "p").await;
    assert_eq!(phase(&running), "Running");
    let told = running.status.and_then(|status| status.resource_claim_statuses).expect("its claims");
    let name = told[0].resource_claim_name.clone().expect("a name");
    assert!(name.starts_with("p-gpu-"), "{name}");
    let claim = world.api::<ResourceClaim>().get(&name).await.expect("the claim");
    let annotations = claim.metadata.annotations.clone().unwrap_or_default();
    assert_eq!(annotations.get("resource.kubernetes.io/pod-claim-name").map(String::as_str), Some("gpu"));
    assert_eq!(
        claim.metadata.finalizers.as_deref(),
        Some(&["resource.kubernetes.io/delete-protection".to_owned()][..])
    );
    assert_eq!(claim.status["allocation"]["devices"]["results"][0]["device"], "g0");
    assert_eq!(claim.status["reservedFor"][0]["name"], "p");
    assert_eq!(claim.metadata.owner_references.as_ref().map(Vec::len), Some(1));

    world.api::<Pod>().delete("p", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert!(world.names::<ResourceClaim>().await.is_empty(), "the claim goes with its pod");
}

#[tokio::test(start_paused = true)]
async fn of_two_pods_one_gets_the_only_device_and_the_other_when_that_one_is_done() {
    let world = world(json!([{"name": "g0"}])).await;
    pod(&world, "first", from_template()).await;
    pod(&world, "second", from_template()).await;
    assert_eq!(phase(&get(&world, "first").await), "Running");
    assert_eq!(phase(&get(&world, "second").await), "Pending");
    assert!(says(&world, "FailedScheduling", "0/1 nodes are available: 1 cannot allocate all claims.").await);

    world.merge_status::<Pod>("first", json!({"phase": "Succeeded"})).await;
    world.settle().await;
    assert_eq!(phase(&get(&world, "second").await), "Running");
    let claims = world.all::<ResourceClaim>().await;
    assert_eq!(claims.len(), 1, "a claim that was made for a pod goes when the pod is done");
    assert_eq!(claims[0].status["reservedFor"][0]["name"], "second");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_pods_share_is_allocated_once_and_free_when_the_last_is_done() {
    let world = world(json!([{"name": "g0"}])).await;
    world.create::<ResourceClaim>(json!({"metadata": {"name": "shared"}, "spec": one_gpu()})).await;
    for name in ["a", "b"] {
        pod(&world, name, json!({"resourceClaimName": "shared"})).await;
        assert_eq!(phase(&get(&world, name).await), "Running");
    }
    let shared = || async { world.api::<ResourceClaim>().get("shared").await.expect("the claim") };
    assert_eq!(shared().await.status["reservedFor"].as_array().map(Vec::len), Some(2));
    world.merge_status::<Pod>("a", json!({"phase": "Failed"})).await;
    world.settle().await;
    let claim = shared().await;
    assert_eq!(claim.status["reservedFor"].as_array().map(Vec::len), Some(1));
    assert!(claim.status["allocation"].is_object());
    world.api::<Pod>().delete("b", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    let claim = shared().await;
    assert_eq!((&claim.status["allocation"], &claim.status["reservedFor"]), (&Value::Null, &Value::Null));
    assert_eq!(claim.metadata.finalizers.unwrap_or_default(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_its_template_and_for_its_claim() {
    let world = world(json!([{"name": "g0"}, {"name": "g1"}])).await;
    pod(&world, "p", json!({"resourceClaimTemplateName": "later"})).await;
    pod(&world, "q", json!({"resourceClaimName": "later"})).await;
    let why = "PodResourceClaim gpu: resource claim template \"later\": resourceclaimtemplate.resource.k8s.io \"later\" not found";
    assert!(says(&world, "FailedResourceClaimCreation", why).await);
    world
        .create::<ResourceClaimTemplate>(json!({"metadata": {"name": "later"}, "spec": {"spec": one_gpu()}}))
        .await;
    world.create::<ResourceClaim>(json!({"metadata": {"name": "later"}, "spec": one_gpu()})).await;
    world.settle().await;
    for name in ["p", "q"] {
        assert_eq!(phase(&get(&world, name).await), "Running", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tainted_device_is_not_given_until_the_taint_is_gone() {
    let world = world(json!([{"name": "g0", "taints": [{"key": "broken", "effect": "NoSchedule"}]}])).await;
    pod(&world, "p", from_template()).await;
    assert_eq!(phase(&get(&world, "p").await), "Pending");
    let slices = Api::<ResourceSlice>::all(world.client.clone());
    let mut slice = slices.get("node-0").await.expect("the slice");
    assert!(slice.spec["devices"][0]["taints"][0]["timeAdded"].is_string());
    slice.spec["devices"] = json!([{"name": "g0"}]);
    slices.replace("node-0", &PostParams::default(), &slice).await.expect("replaced");
    world.settle().await;
    assert_eq!(phase(&get(&world, "p").await), "Running");
}

#[tokio::test(start_paused = true)]
async fn a_quota_counts_the_devices_of_a_class() {
    let world = world(json!([{"name": "g0"}])).await;
    let quota = json!({"metadata": {"name": "devices"}, "spec": {"hard": {"gpu.deviceclass.resource.k8s.io/devices": "1"}}});
    world.create::<k8s_openapi::api::core::v1::ResourceQuota>(quota).await;
    world.settle().await;
    let claim = |name: &str| {
        let claim = json!({"metadata": {"name": name}, "spec": one_gpu()});
        kubewright_objects::from_value::<ResourceClaim>(claim).expect("a claim")
    };
    let claims = world.api::<ResourceClaim>();
    claims.create(&PostParams::default(), &claim("one")).await.expect("created");
    let refused =
        claims.create(&PostParams::default(), &claim("two")).await.expect_err("refused").to_string();
    let why = "exceeded quota: devices, requested: gpu.deviceclass.resource.k8s.io/devices=1, used: gpu.deviceclass.resource.k8s.io/devices=1, limited: gpu.deviceclass.resource.k8s.io/devices=1";
    assert!(refused.contains(why), "{refused}");
}
