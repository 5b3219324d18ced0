//! What is deleted and still there.

use kube::api::PropagationPolicy;
use kubewright_why::Cause;
use serde_json::json;

use crate::lab::{Lab, deployment, pod, says};

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_an_object_and_its_manager_has_to_take_it() {
    let lab = Lab::start(1).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "m", "namespace": "default", "finalizers": ["example.org/keep"]}});
    let map = lab.create(map).await;
    lab.delete(&map, PropagationPolicy::Background).await;
    lab.pass(300).await;
    let finding = lab.finds("cm/m", Cause::Finalizer).await;
    says(
        &finding,
        &[
            "deleted 5m ago",
            "example.org/keep",
            "finalizers were last written by",
            "kubectl patch configmap/m",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_a_pod_uses_names_the_pod() {
    let lab = Lab::start(1).await;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let claim = lab.create(claim).await;
    let volume = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    lab.create(pod(json!({"volumes": volume, "nodeName": "node-0"}))).await;
    lab.delete(&claim, PropagationPolicy::Background).await;
    says(&lab.finds("pvc/data", Cause::Finalizer).await, &["delete the pods that use it: p"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_stops_says_how_long_it_may_take_and_when_that_is_over() {
    let lab = Lab::start(1).await;
    let stops = json!({"kubewright.dev/stop-for": "25s"});
    let made = lab.create(crate::lab::annotated(stops, json!({}))).await;
    lab.delete(&made, PropagationPolicy::Background).await;
    says(&lab.finds("pod/p", Cause::GracePeriod).await, &["grace period of 30s are left"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_on_a_node_that_is_down_stays() {
    let lab = Lab::start(1).await;
    let made = lab.create(pod(json!({}))).await;
    let node =
        serde_json::from_str(r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}}"#)
            .expect("a node");
    lab.patch(&node, json!({"metadata": {"annotations": {"kubewright.dev/kubelet": "stopped"}}})).await;
    lab.pass(90).await;
    lab.delete(&made, PropagationPolicy::Background).await;
    says(&lab.finds("pod/p", Cause::NodeGone).await, &["node node-0 does not answer", "--force"]);
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_waits_for_dependents_that_are_held() {
    let lab = Lab::start(1).await;
    let made = lab.create(deployment(json!({}), json!({"replicas": 1}), json!({}))).await;
    let report = lab.why("deploy/web").await;
    assert!(report.healthy, "{report:#?}");
    let pods = lab.api_list("v1", "Pod").await;
    lab.patch(&pods[0], json!({"metadata": {"finalizers": ["example.org/keep"]}})).await;
    lab.delete(&made, PropagationPolicy::Foreground).await;
    says(
        &lab.finds("deploy/web", Cause::ForegroundDeletion).await,
        &["it waits for 1 dependents: replicaset/web-"],
    );
    // And the cause is below: the pod's finalizer.
    says(&lab.finds("deploy/web", Cause::Finalizer).await, &["example.org/keep"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_owner_is_not_there_will_go() {
    let lab = Lab::with("").await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default", "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gone", "uid": "1-2-3"}]}});
    lab.create(map).await;
    says(&lab.finds("cm/m", Cause::OwnerMissing).await, &["owner Deployment/gone does not exist"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_ends_names_what_is_left_and_who_holds_it() {
    let lab = Lab::start(1).await;
    let space =
        lab.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "m", "namespace": "shop", "finalizers": ["example.org/keep"]}});
    lab.create(map).await;
    lab.delete(&space, PropagationPolicy::Background).await;
    lab.pass(30).await;
    let finding = lab.finds("ns/shop", Cause::NamespaceFinalizer).await;
    says(&finding, &["configmap/m (example.org/keep)", "condition NamespaceFinalizersRemaining=True"]);
    lab.finds("ns/shop", Cause::Finalizer).await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_nobody_empties_tells_its_content() {
    let lab = Lab::with("").await;
    let space =
        lab.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await;
    lab.create(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "shop"}}),
    )
    .await;
    lab.delete(&space, PropagationPolicy::Background).await;
    says(&lab.finds("ns/shop", Cause::NamespaceContent).await, &["1 ConfigMap", "namespace controller"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_waits_for_an_api_server_behind_this_one() {
    let lab = Lab::start(1).await;
    let behind = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.away.example.org"},
        "spec": {"group": "away.example.org", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
            "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "away"}}});
    lab.create(behind).await;
    let space =
        lab.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await;
    lab.pass(60).await;
    lab.delete(&space, PropagationPolicy::Background).await;
    lab.pass(30).await;
    says(
        &lab.finds("apiservice/v1.away.example.org", Cause::ApiServiceUnavailable).await,
        &["service away in default does not exist"],
    );
    says(&lab.finds("ns/shop", Cause::DiscoveryFailed).await, &["away.example.org"]);
    lab.finds("ns/shop", Cause::ApiServiceUnavailable).await;
}
