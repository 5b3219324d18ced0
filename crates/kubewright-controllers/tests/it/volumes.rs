//! Claims and volumes.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::support::World;

fn claim(class: &str) -> Value {
    json!({"metadata": {"name": "data"}, "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}})
}

async fn volumes(world: &World) -> Vec<PersistentVolume> {
    let volumes = Api::<PersistentVolume>::all(world.client.clone());
    volumes.list(&Default::default()).await.expect("a list").items
}

async fn phase_of_claim(world: &World) -> String {
    let claim = world.api::<PersistentVolumeClaim>().get("data").await.expect("the claim");
    claim.status.and_then(|status| status.phase).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_a_simulated_class_gets_a_volume_that_goes_with_it() {
    let world = World::start().await;
    let class: StorageClass = serde_json::from_value(
        json!({"metadata": {"name": "fast"}, "provisioner": "simulated.kubewright.dev"}),
    )
    .expect("a class");
    world.create::<PersistentVolumeClaim>(claim("fast")).await;
    world.settle().await;
    assert_eq!(phase_of_claim(&world).await, "Pending");
    Api::<StorageClass>::all(world.client.clone())
        .create(&PostParams::default(), &class)
        .await
        .expect("created");
    world.settle().await;
    assert_eq!(phase_of_claim(&world).await, "Bound", "the class came later than the claim");
    assert_eq!(volumes(&world).await.len(), 1);
    world.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert_eq!(volumes(&world).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_claim_takes_a_volume_that_comes_later_and_leaves_it_released() {
    let world = World::start().await;
    world.create::<PersistentVolumeClaim>(claim("")).await;
    world.settle().await;
    let disk: PersistentVolume = serde_json::from_value(json!({"metadata": {"name": "disk"}, "spec": {
        "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/x"}}}))
    .expect("a volume");
    Api::<PersistentVolume>::all(world.client.clone())
        .create(&PostParams::default(), &disk)
        .await
        .expect("created");
    world.settle().await;
    assert_eq!(phase_of_claim(&world).await, "Bound");
    world.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    let left = volumes(&world).await;
    assert_eq!(left[0].status.as_ref().and_then(|status| status.phase.as_deref()), Some("Released"));
}

#[tokio::test(start_paused = true)]
async fn what_is_told_of_a_volume_has_the_same_source_as_what_is_told_of_a_claim() {
    let world = World::start().await;
    world.create::<PersistentVolumeClaim>(claim("")).await;
    let disk: PersistentVolume = serde_json::from_value(json!({"metadata": {"name": "disk"}, "spec": {
        "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/x"},
        "persistentVolumeReclaimPolicy": "Recycle"}}))
    .expect("a volume");
    world.settle().await;
    let volumes = Api::<PersistentVolume>::all(world.client.clone());
    volumes.create(&PostParams::default(), &disk).await.expect("created");
    world.settle().await;
    world.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    let events = world.all::<k8s_openapi::api::core::v1::Event>().await;
    let told = |kind: &str| -> Vec<_> {
        let of_kind = events.iter().filter(|event| event.involved_object.kind.as_deref() == Some(kind));
        of_kind.filter_map(|event| event.source.as_ref()?.component.as_deref()).collect()
    };
    assert_eq!(told("PersistentVolume"), ["persistentvolume-controller"]);
    assert!(told("PersistentVolumeClaim").contains(&"persistentvolume-controller"));
}
