//! Stages of kwok in place of the default life of pods and nodes.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{World, phase};

async fn with_stages(stages: &[Value]) -> World {
    let world = World::start().await;
    let definition = json!({
        "metadata": {"name": "stages.kwok.x-k8s.io"},
        "spec": {
            "group": "kwok.x-k8s.io", "scope": "Cluster",
            "names": {"plural": "stages", "singular": "stage", "kind": "Stage", "listKind": "StageList"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let definition: CustomResourceDefinition =
        kubewright_objects::from_value(definition).expect("a definition");
    let definitions = Api::all(world.client.clone());
    definitions.create(&PostParams::default(), &definition).await.expect("created");
    for stage in stages {
        let stage: DynamicObject = kubewright_objects::from_value(stage).expect("a stage");
        api(&world).create(&PostParams::default(), &stage).await.expect("created");
    }
    world.settle().await;
    world
}

fn api(world: &World) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("kwok.x-k8s.io", "v1alpha1", "Stage"));
    Api::all_with(world.client.clone(), &kind)
}

fn stage(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    if spec["resourceRef"].is_null() {
        spec["resourceRef"] = json!({"apiGroup": "v1", "kind": "Pod"});
    }
    json!({"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec})
}

fn in_phase(phase: &str) -> Value {
    json!([
        {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
        {"key": ".status.phase", "operator": "In", "values": [phase]},
        {"key": ".status.conditions.[] | select( .type == \"Slow\" ) | .status", "operator": "NotIn", "values": ["True"]},
    ])
}

const RUNNING: &str = "
{{ $now := Now }}
conditions:
- type: Ready
  status: \"True\"
  lastTransitionTime: {{ $now | Quote }}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
{{ end }}
{{ with PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) }}
podIP: {{ index . 0 | Quote }}
podIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
phase: Running
";

fn pod() -> Value {
    json!({"metadata": {"name": "p", "annotations": {"delay": "30s"}},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]}})
}

#[tokio::test(start_paused = true)]
async fn a_stage_says_when_a_pod_runs_and_what_it_tells() {
    let start = stage(
        "start",
        json!({
            "selector": {"matchExpressions": in_phase("Pending")},
            "delay": {"durationMilliseconds": 1000, "durationFrom": {"expressionFrom": ".metadata.annotations[\"delay\"]"}},
            "next": {"statusTemplate": RUNNING, "event": {"type": "Normal", "reason": "Started", "message": "off it goes"}},
        }),
    );
    let end = stage(
        "end",
        json!({
            "selector": {"matchExpressions": [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}]},
            "delay": {"durationMilliseconds": 5000},
            "next": {"finalizers": {"empty": true}, "delete": true},
        }),
    );
    let world = with_stages(&[start, end]).await;
    let mut held = pod();
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create::<Pod>(held).await;
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(phase(&world.api::<Pod>().get("p").await.expect("the pod")), "Pending");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let running = world.api::<Pod>().get("p").await.expect("the pod");
    assert_eq!(phase(&running), "Running");
    let status = running.status.expect("a status");
    assert!(status.pod_ip.is_some_and(|address| address.starts_with("10.")));
    let conditions = status.conditions.expect("conditions");
    assert!(
        conditions.iter().any(|condition| condition.type_ == "PodScheduled"),
        "a strategic patch keeps others"
    );
    assert!(world.events("Pod").await.contains(&("Started".into(), "off it goes".into())));

    world.api::<Pod>().delete("p", &DeleteParams::default()).await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(world.is_there::<Pod>("p").await);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!world.is_there::<Pod>("p").await);
}

#[tokio::test(start_paused = true)]
async fn without_a_stage_for_them_pods_live_as_ever_and_a_refused_stage_says_so() {
    let odd = stage("odd", json!({"resourceRef": {"kind": "Service"}, "next": {}}));
    let world = with_stages(&[odd]).await;
    world.create::<Pod>(pod()).await;
    world.settle().await;
    assert_eq!(phase(&world.api::<Pod>().get("p").await.expect("the pod")), "Running");
    let message = "resourceRef v1/Service is not supported: only v1/Pod and v1/Node are";
    assert!(world.events("Stage").await.contains(&("NotSupported".into(), message.into())));
}

#[tokio::test(start_paused = true)]
async fn when_the_last_stage_goes_what_waits_goes_on_by_default() {
    let never = stage(
        "never",
        json!({
            "selector": {"matchExpressions": in_phase("Pending")},
            "delay": {"durationMilliseconds": 3_600_000},
            "next": {"statusTemplate": "phase: Failed"},
        }),
    );
    let world = with_stages(&[never]).await;
    world.create::<Pod>(pod()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(phase(&world.api::<Pod>().get("p").await.expect("the pod")), "Pending");
    api(&world).delete("never", &DeleteParams::default()).await.expect("deleted");
    world.settle().await;
    assert_eq!(phase(&world.api::<Pod>().get("p").await.expect("the pod")), "Running");
}

#[tokio::test(start_paused = true)]
async fn a_stage_of_nodes_makes_one_fail() {
    let fail = stage(
        "fail",
        json!({
            "resourceRef": {"apiGroup": "v1", "kind": "Node"},
            "selector": {"matchLabels": {"fails": "yes"}, "matchExpressions": [
                {"key": ".status.conditions.[] | select( .type == \"Ready\" ) | .status", "operator": "In", "values": ["True"]}]},
            "next": {"statusTemplate": "
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  reason: {{ if eq .type \"Ready\" }}Broken{{ else }}{{ .reason }}{{ end }}
  status: {{ if eq .type \"Ready\" }}\"False\"{{ else }}{{ .status | Quote }}{{ end }}
{{ end }}
"},
        }),
    );
    let world = with_stages(&[fail]).await;
    let nodes = Api::<Node>::all(world.client.clone());
    let label = json!({"metadata": {"labels": {"fails": "yes"}}});
    nodes.patch("node-0", &PatchParams::default(), &Patch::Merge(label)).await.expect("patched");
    world.settle().await;
    let node = nodes.get("node-0").await.expect("the node");
    let conditions = node.status.and_then(|status| status.conditions).expect("conditions");
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready").expect("the condition");
    assert_eq!((ready.status.as_str(), ready.reason.as_deref()), ("False", Some("Broken")));
}
