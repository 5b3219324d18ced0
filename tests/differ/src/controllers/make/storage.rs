//! Volumes and claims.

use serde_json::{Value, json};

use crate::controllers::make::{HOLD, Making};
use crate::controllers::story::Step;

/// Claims are looked at again every fifteen seconds.
const LOOKED: u64 = 17_000;

/// The story's own class: volumes of another would be anybody's.
fn class(making: &mut Making) -> Value {
    making.value(&[json!("@run@"), json!("@run@"), json!("@run@-other"), json!("@run@")])
}

pub(super) fn claim(making: &mut Making) {
    making.quiet = making.quiet.max(LOOKED);
    let mut spec = json!({
        "accessModes": [making.word(&["ReadWriteOnce", "ReadOnlyMany"])],
        "storageClassName": class(making),
        "resources": {"requests": {"storage": making.word(&["1Gi", "2Gi"])}},
    });
    if making.chance(0.15) {
        spec["selector"] = json!({"matchLabels": {"disk": "fast"}});
    }
    if making.chance(0.1) {
        spec["volumeName"] = json!("@run@-v1");
    }
    let name = making.word(&["data", "more"]);
    making.step(Step::create("PersistentVolumeClaim", json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec})));
    if making.chance(0.7) {
        volume(making);
    }
    if making.chance(0.3) {
        storage_class(making);
    }
}

/// The story's class, which says when its claims are bound and by whom volumes for them are made.
fn storage_class(making: &mut Making) {
    let mode = making.word(&["WaitForFirstConsumer", "Immediate"]);
    let provisioner = making.word(&["kubernetes.io/no-provisioner", "differ.example.com/none"]);
    let reclaim = making.word(&["Delete", "Retain"]);
    let grows = making.chance(0.5);
    making.step(Step::object(
        "StorageClass",
        "@run@",
        json!({"provisioner": provisioner, "volumeBindingMode": mode, "reclaimPolicy": reclaim, "allowVolumeExpansion": grows}),
    ));
}

fn volume(making: &mut Making) {
    let name = making.word(&["@run@-v1", "@run@-v2"]);
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "storageClassName": class(making),
        "capacity": {"storage": making.word(&["1Gi", "2Gi", "3Gi"])},
        "persistentVolumeReclaimPolicy": making.word(&["Retain", "Retain", "Delete"]),
        "hostPath": {"path": "/tmp/differ"},
    });
    if making.chance(0.2) {
        spec["claimRef"] = json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "@run@", "name": making.word(&["data", "more"])});
    }
    let labels = if making.chance(0.4) { json!({"disk": "fast"}) } else { Value::Null };
    making.step(Step::create("PersistentVolume", json!({"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}, "spec": spec})));
}

pub(super) fn change_claim(making: &mut Making) {
    let name = making.word(&["data", "more"]);
    match making.number(0, 12) {
        10 => {
            if making.chance(0.4) {
                making.step(Step::delete("StorageClass", "@run@", None));
            } else {
                storage_class(making);
            }
        }
        11 => {
            let storage = making.word(&["1Gi", "2Gi", "4Gi"]);
            making.set(
                "PersistentVolumeClaim",
                "grow",
                name,
                json!({"resources": {"requests": {"storage": storage}}}),
            );
        }
        12 => {
            let volume = making.word(&["@run@-v1", "@run@-v2"]);
            let phase = making.word(&["Available", "Released", "Failed"]);
            let status = json!({"status": {"phase": phase}});
            making.step(Step::patch("PersistentVolume", "spoil", volume, status).sub("status"));
        }
        0 | 1 => volume(making),
        2 => claim(making),
        3 => {
            let volume = making.word(&["@run@-v1", "@run@-v2"]);
            making.step(Step::delete("PersistentVolume", volume, None));
        }
        4 => making.common("PersistentVolumeClaim", name, claim),
        5 | 6 => {
            let mut spec = making.template("v")["spec"].clone();
            spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": name}}]);
            making.step(Step::create(
                "Pod",
                json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "user"}, "spec": spec}),
            ));
        }
        7 => making.step(Step::delete("Pod", "user", None)),
        8 => {
            let volume = making.word(&["@run@-v1", "@run@-v2"]);
            let spec = making.value(&[
                json!({"claimRef": null}),
                json!({"persistentVolumeReclaimPolicy": "Delete"}),
                json!({"capacity": {"storage": "5Gi"}}),
            ]);
            making.set("PersistentVolume", "change", volume, spec);
        }
        _ => {
            making.step(Step::patch(
                "PersistentVolumeClaim",
                "hold",
                name,
                json!({"metadata": {"finalizers": [HOLD]}}),
            ));
        }
    }
}
