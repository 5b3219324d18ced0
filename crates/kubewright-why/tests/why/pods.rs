//! Pods.

use kubewright_why::Cause;
use serde_json::json;

use crate::lab::{Lab, annotated, pod, says};

#[tokio::test(start_paused = true)]
async fn a_pod_that_runs_is_healthy() {
    let lab = Lab::start(1).await;
    lab.create(pod(json!({}))).await;
    let report = lab.why("po/p").await;
    assert!(report.healthy && report.unread.is_empty(), "{report:#?}");
    assert_eq!(report.object.state, "ready");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_asks_for_more_than_there_is_is_unschedulable() {
    let lab = Lab::start(1).await;
    let resources = json!({"requests": {"cpu": "100000", "memory": "1Gi"}});
    lab.create(pod(json!({"containers": [{"name": "c", "image": "web:1", "resources": resources}]}))).await;
    let finding = lab.finds("pod/p", Cause::InsufficientResources).await;
    says(&finding, &["Insufficient cpu", "container c requests cpu 100k", "event FailedScheduling"]);
}

#[tokio::test(start_paused = true)]
async fn taints_and_selectors_keep_a_pod_from_the_nodes() {
    let lab = Lab::start(1).await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "tainted"},
        "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}});
    lab.create(node).await;
    lab.create(pod(json!({"nodeSelector": {"disk": "ssd"}}))).await;
    let finding = lab.finds("pod/p", Cause::NodeSelectorMismatch).await;
    says(&finding, &["disk", "ssd", "kubectl label nodes"]);
    says(&lab.finds("pod/p", Cause::UntoleratedTaint).await, &["gpu", "toleration"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_wants_a_port_that_is_taken_is_unschedulable_for_another_reason() {
    let lab = Lab::start(1).await;
    let port = json!([{"name": "c", "image": "web:1", "ports": [{"containerPort": 80, "hostPort": 80}]}]);
    let mut first = pod(json!({"containers": port}));
    lab.create(first.clone()).await;
    first["metadata"]["name"] = json!("q");
    lab.create(first).await;
    says(&lab.finds("pod/q", Cause::Unschedulable).await, &["free ports"]);
}

#[tokio::test(start_paused = true)]
async fn without_nodes_no_pod_is_placed() {
    let lab = Lab::start(0).await;
    lab.create(pod(json!({}))).await;
    says(&lab.finds("pod/p", Cause::NoNodes).await, &["--nodes 1"]);
}

#[tokio::test(start_paused = true)]
async fn gates_and_schedulers_that_are_not_there_keep_a_pod_pending() {
    let lab = Lab::start(1).await;
    lab.create(pod(json!({"schedulingGates": [{"name": "example.org/quota"}]}))).await;
    says(&lab.finds("pod/p", Cause::SchedulingGated).await, &["example.org/quota"]);
    let mut other = pod(json!({"schedulerName": "gpu-scheduler"}));
    other["metadata"]["name"] = json!("q");
    lab.create(other).await;
    says(&lab.finds("pod/q", Cause::NoScheduler).await, &["gpu-scheduler"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_that_has_stopped_is_not_ready_for_that() {
    let lab = Lab::start(1).await;
    lab.create(pod(json!({}))).await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}});
    let node = serde_json::from_str(&node.to_string()).expect("a node");
    lab.patch(&node, json!({"metadata": {"annotations": {"kubewright.dev/kubelet": "stopped"}}})).await;
    lab.pass(90).await;
    says(
        &lab.finds("pod/p", Cause::NodeNotReady).await,
        &["node node-0 is not ready", "kubewright why node/node-0"],
    );
    says(&lab.finds("node/node-0", Cause::NodeNotReady).await, &["condition Ready=Unknown"]);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_cannot_be_pulled_is_named() {
    let lab = Lab::start(1).await;
    lab.create(annotated(json!({"kubewright.dev/waiting": "ImagePullBackOff"}), json!({}))).await;
    says(&lab.finds("pod/p", Cause::ImagePull).await, &["image web:1 of container c", "imagePullSecrets"]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_tells_how_the_container_ended() {
    let lab = Lab::start(1).await;
    let crash = json!({"kubewright.dev/run-for": "1s", "kubewright.dev/exit-code": "3"});
    lab.create(annotated(crash, json!({}))).await;
    lab.pass(60).await;
    says(
        &lab.finds("pod/p", Cause::CrashLoop).await,
        &["exited with 3", "kubectl logs p -c c", "--previous"],
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_failed_for_good_tells_how_its_containers_ended() {
    let lab = Lab::start(1).await;
    lab.create(annotated(json!({"kubewright.dev/exit-code": "4"}), json!({"restartPolicy": "Never"}))).await;
    lab.pass(5).await;
    says(&lab.finds("pod/p", Cause::PodFailed).await, &["container c exited with 4"]);
}

/// What a kubelet would say of a pod: simulated nodes leave it alone when somebody else has said it.
async fn with_status(status: serde_json::Value, spec: serde_json::Value) -> Lab {
    let lab = Lab::of(kubewright_cluster::Cluster::builder().controllers("").nodes(0)).await;
    let node = lab.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "far"}})).await;
    lab.set_status(&node, json!({"conditions": [{"type": "Ready", "status": "True"}]})).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}});
    lab.create(account).await;
    let mut pod = pod(spec);
    pod["spec"]["nodeName"] = json!("far");
    // Without controllers there is no kube-root-ca.crt to be mounted.
    pod["spec"]["automountServiceAccountToken"] = json!(false);
    let pod = lab.create(pod).await;
    lab.set_status(&pod, status).await;
    lab
}

#[tokio::test(start_paused = true)]
async fn a_container_that_was_killed_for_its_memory_names_the_limit() {
    let killed = json!({"exitCode": 137, "reason": "OOMKilled"});
    let status = json!({"phase": "Running", "containerStatuses": [{"name": "c", "image": "web:1", "imageID": "",
        "ready": false, "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": killed}}]});
    let limits = json!([{"name": "c", "image": "web:1", "resources": {"limits": {"memory": "64Mi"}}}]);
    let lab = with_status(status, json!({"containers": limits})).await;
    says(&lab.finds("pod/p", Cause::OutOfMemory).await, &["limit of 64Mi", "4 restarts", "exited with 137"]);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_is_told_with_what_it_asks() {
    let status = json!({"phase": "Running", "containerStatuses": [{"name": "c", "image": "web:1", "imageID": "",
        "ready": false, "restartCount": 0, "state": {"running": {}}}]});
    let probe =
        json!([{"name": "c", "image": "web:1", "readinessProbe": {"httpGet": {"path": "/up", "port": 80}}}]);
    let lab = with_status(status, json!({"containers": probe})).await;
    says(&lab.finds("pod/p", Cause::ProbeFails).await, &["httpGet", "/up"]);
}

#[tokio::test(start_paused = true)]
async fn a_readiness_gate_that_is_not_met_is_named() {
    let lab = Lab::start(1).await;
    lab.create(pod(json!({"readinessGates": [{"conditionType": "example.org/balanced"}]}))).await;
    says(&lab.finds("pod/p", Cause::ReadinessGate).await, &["example.org/balanced"]);
}

#[tokio::test(start_paused = true)]
async fn an_init_container_that_does_not_end_holds_the_others() {
    let lab = Lab::start(1).await;
    let waiting = json!({"wait.containers.kubewright.dev/run-for": "1h"});
    lab.create(annotated(waiting, json!({"initContainers": [{"name": "wait", "image": "wait:1"}]}))).await;
    says(&lab.finds("pod/p", Cause::InitContainer).await, &["init container wait"]);
}

#[tokio::test(start_paused = true)]
async fn a_configmap_or_secret_that_is_missing_is_named() {
    let lab = Lab::start(1).await;
    let waiting = json!({"kubewright.dev/waiting": "CreateContainerConfigError"});
    let from = json!([{"name": "c", "image": "web:1", "envFrom": [{"secretRef": {"name": "key"}},
        {"configMapRef": {"name": "maybe", "optional": true}}]}]);
    lab.create(annotated(waiting, json!({"containers": from}))).await;
    let finding = lab.finds("pod/p", Cause::ConfigMissing).await;
    says(&finding, &["secret/key does not exist", "create secret/key"]);
    assert!(!finding.message.contains("maybe"), "{finding:?}");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_cannot_be_made_is_told_of() {
    let lab = Lab::start(1).await;
    lab.create(annotated(json!({"kubewright.dev/waiting": "CreateContainerError"}), json!({}))).await;
    says(&lab.finds("pod/p", Cause::ContainerConfig).await, &["container c cannot be made"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_kubelet_says_nothing_is_starting() {
    let lab = with_status(json!({"phase": "Pending"}), json!({})).await;
    says(&lab.finds("pod/p", Cause::Starting).await, &["node far"]);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_pod_says_why() {
    let status =
        json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."});
    let lab = with_status(status, json!({})).await;
    says(&lab.finds("pod/p", Cause::Evicted).await, &["low on resource: memory"]);
}

#[tokio::test(start_paused = true)]
async fn claims_that_are_missing_or_unbound_hold_a_pod() {
    let lab = Lab::start(1).await;
    let volume =
        |claim: &str| json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]});
    lab.create(pod(volume("data"))).await;
    says(&lab.finds("pod/p", Cause::ClaimMissing).await, &["claim data does not exist"]);
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    lab.create(claim).await;
    says(&lab.finds("pod/p", Cause::ClaimUnbound).await, &["claim data is pending"]);
    // The cause is in the tree below.
    lab.finds("pod/p", Cause::ClaimNoClass).await;
}
