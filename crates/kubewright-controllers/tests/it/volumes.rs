//! Claims and volumes.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::support::{World, phase};

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
    let class: StorageClass = kubewright_objects::from_value(
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
    let disk: PersistentVolume =
        kubewright_objects::from_value(json!({"metadata": {"name": "disk"}, "spec": {
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
    let disk: PersistentVolume =
        kubewright_objects::from_value(json!({"metadata": {"name": "disk"}, "spec": {
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
    let managers = |kind: &str| -> Vec<_> {
        let of_kind = events.iter().filter(|event| event.involved_object.kind.as_deref() == Some(kind));
        of_kind.filter_map(|event| event.source.as_ref()?.component.as_deref()).collect()
    };
    assert_eq!(managers("PersistentVolume"), ["persistentvolume-controller"]);
    assert!(managers("PersistentVolumeClaim").contains(&"persistentvolume-controller"));
}

fn growing_class() -> StorageClass {
    kubewright_objects::from_value(
        json!({"metadata": {"name": "fast"}, "provisioner": "simulated.kubewright.dev",
        "allowVolumeExpansion": true}),
    )
    .expect("a class")
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_a_pod_describes_is_a_claim_that_comes_and_goes_with_it() {
    let world = World::start().await;
    let classes = Api::<StorageClass>::all(world.client.clone());
    classes.create(&PostParams::default(), &growing_class()).await.expect("created");
    let template = json!({"metadata": {"labels": {"of": "p"}}, "spec": claim("fast")["spec"]});
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}],
        "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]}});
    world.create::<Pod>(pod.clone()).await;
    world.settle().await;
    let claims = world.api::<PersistentVolumeClaim>();
    let made = claims.get("p-scratch").await.expect("the claim");
    assert_eq!(made.metadata.labels.unwrap_or_default().get("of").map(String::as_str), Some("p"));
    assert_eq!(phase(&world.api::<Pod>().get("p").await.expect("the pod")), "Running");
    assert_eq!(volumes(&world).await.len(), 1);
    world.api::<Pod>().delete("p", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    world.settle().await;
    assert!(!world.is_there::<PersistentVolumeClaim>("p-scratch").await);
    assert_eq!(volumes(&world).await, []);

    // A claim of somebody else is in the way.
    let mut other = claim("fast");
    other["metadata"]["name"] = "p-scratch".into();
    world.create::<PersistentVolumeClaim>(other).await;
    world.create::<Pod>(pod).await;
    world.settle().await;
    let note = "ephemeral volume scratch: PVC default/p-scratch was not created for pod default/p (pod is not owner)";
    assert!(world.events("Pod").await.contains(&("FailedBinding".to_owned(), note.to_owned())));
    assert_eq!(phase(&world.api::<Pod>().get("p").await.expect("the pod")), "Pending");
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_a_class_that_allows_it_grows_with_its_volume() {
    let world = World::start().await;
    let classes = Api::<StorageClass>::all(world.client.clone());
    classes.create(&PostParams::default(), &growing_class()).await.expect("created");
    world.create::<PersistentVolumeClaim>(claim("fast")).await;
    world.settle().await;
    let wanted = json!({"spec": {"resources": {"requests": {"storage": "5Gi"}}}});
    world.merge::<PersistentVolumeClaim>("data", wanted).await;
    world.settle().await;
    let claim = world.api::<PersistentVolumeClaim>().get("data").await.expect("the claim");
    assert_eq!(json!(claim.status.expect("a status").capacity), json!({"storage": "5Gi"}));
    let volume = volumes(&world).await.remove(0);
    assert_eq!(json!(volume.spec.expect("a spec").capacity), json!({"storage": "5Gi"}));
    let reasons: Vec<String> =
        world.events("PersistentVolumeClaim").await.into_iter().map(|(reason, _)| reason).collect();
    assert!(reasons.contains(&"VolumeResizeSuccessful".to_owned()), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_a_volume_without_its_claim_is_its_policy() {
    let world = World::start().await;
    let all = Api::<PersistentVolume>::all(world.client.clone());
    for (policy, phase, reason) in [
        ("Retain", "Released", None),
        ("Delete", "Failed", Some("VolumeFailedDelete")),
        ("Recycle", "Failed", Some("VolumeFailedRecycle")),
    ] {
        let disk = json!({"metadata": {"name": "disk"}, "spec": {"persistentVolumeReclaimPolicy": policy,
            "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "h"}}});
        let mut disk = disk;
        if policy != "Retain" {
            disk["spec"].as_object_mut().expect("a spec").remove("csi");
            disk["spec"]["hostPath"] = json!({"path": "/tmp/x"});
        }
        let disk: PersistentVolume = kubewright_objects::from_value(disk).expect("a volume");
        all.create(&PostParams::default(), &disk).await.expect("created");
        world.create::<PersistentVolumeClaim>(claim("")).await;
        world.settle().await;
        assert_eq!(phase_of_claim(&world).await, "Bound", "{policy}");
        world.api::<PersistentVolumeClaim>().delete("data", &DeleteParams::default()).await.expect("deleted");
        world.settle().await;
        let left = all.get("disk").await.expect("the volume");
        assert_eq!(left.status.and_then(|status| status.phase).as_deref(), Some(phase), "{policy}");
        let events = world.events("PersistentVolume").await;
        assert!(
            reason.is_none_or(|reason| events.iter().any(|(recorded, _)| recorded == reason)),
            "{policy}: {events:?}"
        );
        all.delete("disk", &DeleteParams::default()).await.expect("deleted");
        world.settle().await;
    }
}
