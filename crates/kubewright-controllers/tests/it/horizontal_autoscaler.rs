//! Autoscalers look at what pods use, and at other metrics, and scale what they are for.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kubewright_cluster::KubernetesVersion;
use serde_json::{Value, json};

use crate::faults::{Apart, Faults};
use crate::support::{World, deployment};

const CPU: &str = "kwok.x-k8s.io/usage-cpu";

/// A Deployment `web` whose pods ask for 100m.
async fn web(world: &World, replicas: i32) {
    let mut web = deployment(replicas);
    let containers = &mut web["spec"]["template"]["spec"]["containers"];
    containers[0]["resources"] = json!({"requests": {"cpu": "100m"}});
    world.create::<Deployment>(web).await;
}

async fn autoscaler(world: &World, name: &str, spec: Value) {
    let mut whole = json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1, "maxReplicas": 10});
    let (Some(has), Value::Object(more)) = (whole.as_object_mut(), spec) else { panic!("no spec") };
    has.extend(more);
    world.create::<HorizontalPodAutoscaler>(json!({"metadata": {"name": name}, "spec": whole})).await;
}

fn cpu(percent: i32) -> Value {
    json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": percent}}}])
}

fn external(name: &str, selector: &Value, target: &str) -> Value {
    json!([{"type": "External", "external": {"metric": {"name": name, "selector": selector},
        "target": {"type": "AverageValue", "averageValue": target}}}])
}

/// Says what every pod that there is uses.
async fn load(world: &World, used: &str) {
    for name in world.names::<Pod>().await {
        world.merge::<Pod>(&name, json!({"metadata": {"annotations": {CPU: used}}})).await;
    }
}

/// Says what there is of something outside.
async fn outside(world: &World, metric: &str, value: &str) {
    let namespaces = Api::<Namespace>::all(world.client.clone());
    let patch = json!({"metadata": {"annotations": {format!("metrics.kubewright.dev/{metric}"): value}}});
    namespaces.patch("default", &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
}

async fn replicas(world: &World) -> i32 {
    let web = world.api::<Deployment>().get("web").await.expect("the Deployment");
    web.spec.and_then(|spec| spec.replicas).expect("replicas")
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn status(world: &World, name: &str) -> Value {
    let autoscaler = world.api::<HorizontalPodAutoscaler>().get(name).await.expect("the autoscaler");
    json!(autoscaler.status)
}

fn reason<'a>(status: &'a Value, kind: &str) -> &'a str {
    let conditions = status["conditions"].as_array().expect("conditions");
    let found = conditions.iter().find(|condition| condition["type"] == kind).expect("the condition");
    found["reason"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_follows_what_its_pods_use() {
    let world = World::of(KubernetesVersion::V1_36).await;
    web(&world, 2).await;
    autoscaler(&world, "h", json!({"metrics": cpu(50)})).await;
    world.settle().await;
    load(&world, "100m").await;
    pass(35).await;
    // Those that came count as idle as long as nobody knows better.
    assert_eq!(replicas(&world).await, 4);
    let up = status(&world, "h").await;
    assert_eq!((&up["currentReplicas"], &up["desiredReplicas"]), (&json!(4), &json!(4)));
    let current = json!({"averageUtilization": 100, "averageValue": "100m"});
    assert_eq!(
        up["currentMetrics"],
        json!([{"type": "Resource", "resource": {"name": "cpu", "current": current}}])
    );
    assert!(up["lastScaleTime"].is_string() && up.get("observedGeneration").is_none());
    let events = world.events("HorizontalPodAutoscaler").await;
    let message = "New size: 4; reason: cpu resource utilization (percentage of request) above target";
    assert!(events.contains(&("SuccessfulRescale".into(), message.into())), "{events:?}");

    load(&world, "10m").await;
    pass(250).await;
    assert_eq!(replicas(&world).await, 4);
    assert_eq!(reason(&status(&world, "h").await, "AbleToScale"), "ScaleDownStabilized");
    pass(90).await;
    assert_eq!(replicas(&world).await, 1);
    let events = world.events("HorizontalPodAutoscaler").await;
    let message = "New size: 1; reason: All metrics below target";
    assert!(events.contains(&("SuccessfulRescale".into(), message.into())), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn it_looks_every_fifteen_seconds_whatever_happens() {
    let world = World::of(KubernetesVersion::V1_36).await;
    web(&world, 5).await;
    autoscaler(&world, "h", json!({"maxReplicas": 3})).await;
    world.settle().await;
    for _ in 0..5 {
        pass(2).await;
        world
            .merge::<HorizontalPodAutoscaler>("h", json!({"metadata": {"labels": {"touched": "yes"}}}))
            .await;
        assert_eq!(replicas(&world).await, 5);
    }
    pass(6).await;
    assert_eq!(replicas(&world).await, 3);
}

#[tokio::test(start_paused = true)]
async fn from_v1_37_on_a_new_autoscaler_does_not_wait_and_tells_its_generation() {
    let world = World::of(KubernetesVersion::V1_37).await;
    web(&world, 5).await;
    autoscaler(&world, "h", json!({"maxReplicas": 3})).await;
    world.settle().await;
    assert_eq!(replicas(&world).await, 3);
    assert_eq!(status(&world, "h").await["observedGeneration"], 1);
}

#[tokio::test(start_paused = true)]
async fn without_metrics_it_says_so_as_in_a_cluster_without_metrics_server() {
    let world = World::start().await;
    web(&world, 2).await;
    autoscaler(&world, "h", json!({})).await;
    pass(20).await;
    let why = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
    let events = world.events("HorizontalPodAutoscaler").await;
    assert!(events.contains(&("FailedGetResourceMetric".into(), why.into())), "{events:?}");
    assert_eq!(reason(&status(&world, "h").await, "ScalingActive"), "FailedGetResourceMetric");

    // Once anybody set a usage, there is somebody who measures, and nothing to tell of these.
    let pod = json!({"metadata": {"name": "other", "annotations": {CPU: "1"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    world.create::<Pod>(pod).await;
    pass(15).await;
    let events = world.events("HorizontalPodAutoscaler").await;
    let why = "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API";
    assert!(events.contains(&("FailedGetResourceMetric".into(), why.into())), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn policies_slow_it_down() {
    let world = World::of(KubernetesVersion::V1_36).await;
    web(&world, 6).await;
    let down = json!({"stabilizationWindowSeconds": 0, "policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]});
    let metrics = external("jobs", &json!({"matchLabels": {"queue": "mail"}}), "10");
    autoscaler(&world, "h", json!({"metrics": metrics, "behavior": {"scaleDown": down}})).await;
    outside(&world, "jobs", "queue=mail: 10; queue=print: 1000").await;
    pass(20).await;
    assert_eq!(replicas(&world).await, 4);
    assert_eq!(reason(&status(&world, "h").await, "ScalingLimited"), "ScaleDownLimit");
    pass(45).await;
    assert_eq!(replicas(&world).await, 4);
    pass(15).await;
    assert_eq!(replicas(&world).await, 2);
    pass(60).await;
    assert_eq!(replicas(&world).await, 1);
}

#[tokio::test(start_paused = true)]
async fn metrics_of_pods_and_of_an_object_are_read_from_them() {
    let world = World::of(KubernetesVersion::V1_36).await;
    web(&world, 2).await;
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let metrics = json!([
        {"type": "Pods", "pods": {"metric": {"name": "requests"}, "target": {"type": "AverageValue", "averageValue": "100"}}},
        {"type": "Object", "object": {"metric": {"name": "visitors"}, "describedObject": object,
            "target": {"type": "Value", "value": "50"}}},
    ]);
    autoscaler(&world, "h", json!({"metrics": metrics})).await;
    world.settle().await;
    for name in world.names::<Pod>().await {
        let annotations = json!({"metrics.kubewright.dev/requests": "150"});
        world.merge::<Pod>(&name, json!({"metadata": {"annotations": annotations}})).await;
    }
    pass(20).await;
    assert_eq!(replicas(&world).await, 3);
    let events = world.events("HorizontalPodAutoscaler").await;
    let missing = "unable to get metric visitors: Deployment on default web/unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered";
    assert!(events.contains(&("FailedGetObjectMetric".into(), missing.into())), "{events:?}");

    let annotations = json!({"metrics.kubewright.dev/visitors": "100"});
    world.merge::<Deployment>("web", json!({"metadata": {"annotations": annotations}})).await;
    pass(15).await;
    assert_eq!(replicas(&world).await, 6);
    let events = world.events("HorizontalPodAutoscaler").await;
    let message = "New size: 6; reason: Deployment metric visitors above target";
    assert!(events.contains(&("SuccessfulRescale".into(), message.into())), "{events:?}");
}

/// Makes a kind `Farm` with a scale, and one farm whose pods are labelled `app=farm`.
async fn farm(world: &World) -> Api<DynamicObject> {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector"});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale}});
    let crd = json!({"metadata": {"name": "farms.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "farms", "kind": "Farm"}, "versions": [version]}});
    let crds = Api::<CustomResourceDefinition>::all(world.client.clone());
    let crd = kubewright_objects::from_value(crd).expect("a CRD");
    crds.create(&PostParams::default(), &crd).await.expect("created");
    let kind = kube::core::GroupVersionKind::gvk("example.com", "v1", "Farm");
    let farms = Api::default_namespaced_with(world.client.clone(), &ApiResource::from_gvk(&kind));
    let farm = DynamicObject::new("f", &ApiResource::from_gvk(&kind)).data(json!({"spec": {"replicas": 2}}));
    farms.create(&PostParams::default(), &farm).await.expect("created");
    let status = json!({"status": {"replicas": 2, "selector": "app=farm"}});
    farms.patch_status("f", &PatchParams::default(), &Patch::Merge(status)).await.expect("patched");
    farms
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_with_a_scale_is_scaled() {
    let world = World::start().await;
    let target = json!({"apiVersion": "example.com/v1", "kind": "Farm", "name": "f"});
    let spec = json!({"scaleTargetRef": target, "metrics": external("jobs", &Value::Null, "10")});
    autoscaler(&world, "h", spec).await;
    outside(&world, "jobs", "35").await;
    pass(20).await;
    let events = world.events("HorizontalPodAutoscaler").await;
    let unknown = r#"no matches for kind "Farm" in group "example.com""#;
    assert!(events.contains(&("FailedGetScale".into(), unknown.into())), "{events:?}");

    let farms = farm(&world).await;
    pass(15).await;
    assert_eq!(farms.get("f").await.expect("the farm").data["spec"]["replicas"], 4);
    // What goes is noticed, though its kind was known.
    let crds = Api::<CustomResourceDefinition>::all(world.client.clone());
    crds.delete("farms.example.com", &DeleteParams::default()).await.expect("deleted");
    pass(20).await;
    assert_eq!(reason(&status(&world, "h").await, "AbleToScale"), "FailedGetScale");
    let message = status(&world, "h").await;
    assert!(message["conditions"].to_string().contains("no matches for kind"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn two_autoscalers_of_the_same_pods_do_nothing_until_one_goes() {
    let world = World::of(KubernetesVersion::V1_36).await;
    web(&world, 2).await;
    for name in ["a", "b"] {
        autoscaler(&world, name, json!({"metrics": external("jobs", &Value::Null, "10")})).await;
    }
    outside(&world, "jobs", "20").await;
    pass(40).await;
    for name in ["a", "b"] {
        assert_eq!(reason(&status(&world, name).await, "ScalingActive"), "AmbiguousSelector");
    }
    let events = world.events("HorizontalPodAutoscaler").await;
    let message = "pods by selector app=web are controlled by multiple HPAs: [default/a default/b]";
    assert!(events.contains(&("AmbiguousSelector".into(), message.into())), "{events:?}");

    world.api::<HorizontalPodAutoscaler>().delete("a", &DeleteParams::default()).await.expect("deleted");
    outside(&world, "jobs", "50").await;
    pass(20).await;
    assert_eq!(replicas(&world).await, 5);
}

#[tokio::test(start_paused = true)]
async fn a_served_metrics_api_goes_before_what_was_set() {
    let world = World::start().await;
    web(&world, 2).await;
    autoscaler(&world, "h", json!({"metrics": cpu(50)})).await;
    world.settle().await;
    load(&world, "50m").await;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let crd = json!({"metadata": {"name": "pods.metrics.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, test-only"}},
        "spec": {"group": "metrics.k8s.io", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "pods", "kind": "PodMetrics"}}});
    let crds = Api::<CustomResourceDefinition>::all(world.client.clone());
    let crd = kubewright_objects::from_value(crd).expect("a CRD");
    crds.create(&PostParams::default(), &crd).await.expect("created");
    let kind = kube::core::GroupVersionKind::gvk("metrics.k8s.io", "v1beta1", "PodMetrics");
    let kind = ApiResource::from_gvk_with_plural(&kind, "pods");
    let metrics = Api::<DynamicObject>::default_namespaced_with(world.client.clone(), &kind);
    let now = world.cluster.world().clock.now().to_string();
    for name in world.names::<Pod>().await {
        let used = json!({"timestamp": now, "window": "0s", "containers": [{"name": "c", "usage": {"cpu": "150m"}}]});
        let mut used = DynamicObject::new(&name, &kind).data(used);
        used.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
        metrics.create(&PostParams::default(), &used).await.expect("created");
    }
    pass(20).await;
    assert_eq!(replicas(&world).await, 4);
    assert_eq!(reason(&status(&world, "h").await, "ScalingLimited"), "ScaleUpLimit");
}

/// Whatever write fails, and whenever it is started anew, what it asks for stays in bounds and is right in the end.
#[tokio::test(start_paused = true)]
async fn it_stays_in_bounds_and_comes_to_its_goal_whatever_write_fails() {
    const NAME: &str = "horizontal-pod-autoscaler-controller";
    for seed in 0..6 {
        let world = World::with("*,-horizontal-pod-autoscaler-controller").await;
        web(&world, 3).await;
        let spec =
            json!({"minReplicas": 2, "maxReplicas": 8, "metrics": external("jobs", &Value::Null, "10")});
        autoscaler(&world, "h", spec).await;
        let faults = Faults::new(seed).one_in(2).deadly_after(9);
        let controllers = Apart::start(&world, NAME, &faults);
        for jobs in ["100", "30", "0", "55"] {
            outside(&world, "jobs", jobs).await;
            for _ in 0..30 {
                pass(13).await;
                let replicas = replicas(&world).await;
                assert!((2..=8).contains(&replicas), "{replicas} with seed {seed}");
            }
            controllers.restart();
        }
        faults.end();
        outside(&world, "jobs", "42").await;
        pass(400).await;
        assert_eq!(replicas(&world).await, 5, "seed {seed}");
        assert_eq!(status(&world, "h").await["desiredReplicas"], 5, "seed {seed}");
    }
}
