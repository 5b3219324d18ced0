//! PersistentVolumeClaims.

use kubewright_why::Cause;
use serde_json::{Value, json};

use crate::lab::{Lab, says};

fn claim(more: Value) -> Value {
    let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    for (key, value) in more.as_object().into_iter().flatten() {
        claim["spec"][key] = value.clone();
    }
    claim
}

fn class(mode: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
        "provisioner": "disk.example.org", "volumeBindingMode": mode})
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_class_says_that_there_is_no_default() {
    let lab = Lab::start(1).await;
    lab.create(claim(json!({}))).await;
    says(&lab.finds("pvc/data", Cause::ClaimNoClass).await, &["there is no default one"]);
}

#[tokio::test(start_paused = true)]
async fn a_class_that_does_not_exist_is_named_with_those_that_do() {
    let lab = Lab::start(1).await;
    lab.create(class("Immediate")).await;
    lab.create(claim(json!({"storageClassName": "fats"}))).await;
    says(&lab.finds("pvc/data", Cause::ClassMissing).await, &["\"fats\" does not exist; there are: fast"]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_waits_for_its_provisioner_or_for_a_pod() {
    let lab = Lab::start(1).await;
    lab.create(class("Immediate")).await;
    let made = lab.create(claim(json!({"storageClassName": "fast"}))).await;
    says(&lab.finds("pvc/data", Cause::NoProvisioner).await, &["disk.example.org"]);
    lab.delete(&made, kube::api::PropagationPolicy::Background).await;
    let mut late = class("WaitForFirstConsumer");
    late["metadata"]["name"] = json!("late");
    lab.create(late).await;
    lab.create(claim(json!({"storageClassName": "late"}))).await;
    says(&lab.finds("pvc/data", Cause::FirstConsumer).await, &["nothing is wrong with the claim"]);
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_does_not_exist_is_named() {
    let lab = Lab::start(1).await;
    lab.create(claim(json!({"volumeName": "gone", "storageClassName": ""}))).await;
    says(&lab.finds("pvc/data", Cause::VolumeMissing).await, &["volume gone does not exist"]);
}
