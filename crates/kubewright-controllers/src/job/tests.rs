//! Samples, and plans of whole Jobs.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kubewright_world::SIMULATION_START as NOW;
use serde_json::{Value, json};

/// A Job `work` of one container `c` with these members of `spec`.
pub(super) fn job(spec: Value) -> Job {
    let mut job = json!({
        "metadata": {"name": "work", "namespace": "default", "uid": "uid-work", "resourceVersion": "1"},
        "spec": {
            "selector": {"matchLabels": {"job": "work"}}, "backoffLimit": 6, "parallelism": 1,
            "template": {"metadata": {"labels": {"job": "work"}}, "spec": {"restartPolicy": "Never",
                "containers": [{"name": "c", "image": "work:1"}]}},
        },
        "status": {"startTime": NOW.to_string()},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    serde_json::from_value(job).expect("a Job")
}

/// A tracked pod of the Job with this status.
pub(super) fn pod(name: &str, status: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "labels": {"job": "work"}, "finalizers": [super::TRACKING], "creationTimestamp": NOW.to_string(),
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "uid-work", "controller": true}]},
        "spec": {"containers": [], "nodeName": "node-0"},
        "status": status,
    }))
    .expect("a pod")
}

/// A tracked pod of an index in this phase.
pub(super) fn indexed_pod(name: &str, index: u32, phase: &str) -> Pod {
    let mut pod = pod(name, json!({"phase": phase}));
    pod.metadata.annotations.get_or_insert_default().insert(super::pods::INDEX.into(), index.to_string());
    pod
}

fn shared(pods: impl IntoIterator<Item = Pod>) -> Vec<Arc<Pod>> {
    pods.into_iter().map(Arc::new).collect()
}
