//! What a quota counts when the caches of its controller are behind.

use std::time::Duration;

use http::Request;
use http::header::ACCEPT;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use kubewright_runtime::{CancellationToken, Manager};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::{BoxError, service_fn};

use crate::support::{World, setup, template};

const OTHERS: &str = "*,-resourcequota-controller";

/// Whether a request would tell a cache of what changes; but for the typed quotas, which bring the keys.
fn tells_of_changes(request: &Request<Body>) -> bool {
    let is_partial = request
        .headers()
        .get(ACCEPT)
        .is_some_and(|accept| accept.to_str().is_ok_and(|accept| accept.contains("PartialObjectMetadata")));
    let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
    watches && (is_partial || !request.uri().path().ends_with("/resourcequotas"))
}

/// Runs the quota controller on caches that know nothing but their first lists, until this is dropped.
fn run_behind(world: &World) -> JoinSet<()> {
    let up_to_date = world.client.clone();
    let service = service_fn(move |request: Request<Body>| {
        let up_to_date = up_to_date.clone();
        async move {
            if tells_of_changes(&request) {
                std::future::pending::<()>().await;
            }
            Ok::<_, BoxError>(up_to_date.send(request).await?)
        }
    });
    let mut manager = Manager::in_process(Client::new(service, "default"), world.cluster.world().clone());
    for builtin in kubewright_controllers::select("resourcequota-controller").expect("a known name") {
        for controller in builtin.controllers(&setup()) {
            manager.add(controller);
        }
    }
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let ended = manager.run(CancellationToken::new()).await;
        panic!("the manager ended: {ended:?}");
    });
    tasks
}

async fn used(world: &World, name: &str) -> Value {
    let quota = world.api::<ResourceQuota>().get(name).await.expect("the quota");
    json!(quota.status.unwrap_or_default().used)
}

#[tokio::test(start_paused = true)]
async fn a_quota_counts_what_its_controllers_caches_do_not_know_yet() {
    let world = World::with(OTHERS).await;
    let _controller = run_behind(&world);
    let hard = json!({"resourcequotas": "9", "count/configmaps": "9", "pods": "9", "services": "9"});
    let quota = |name: &str| json!({"metadata": {"name": name}, "spec": {"hard": hard}});
    world.create::<ResourceQuota>(quota("early")).await;
    world.settle().await;
    assert_eq!(
        used(&world, "early").await,
        json!({"resourcequotas": "1", "count/configmaps": "1", "pods": "0", "services": "1"})
    );

    world.create::<ConfigMap>(json!({"metadata": {"name": "m"}})).await;
    world.create::<Pod>(json!({"metadata": {"name": "p"}, "spec": template("web:1")["spec"]})).await;
    world.create::<Service>(json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})).await;
    world.create::<ResourceQuota>(quota("late")).await;
    world.settle().await;
    let all = json!({"resourcequotas": "2", "count/configmaps": "2", "pods": "1", "services": "2"});
    assert_eq!(used(&world, "late").await, all);
    assert_eq!(used(&world, "early").await, all, "what came was charged, once");
}

/// Somebody else's charge may be lost between a count and what was charged for: not for long.
#[tokio::test(start_paused = true)]
async fn what_a_count_has_changed_is_counted_again_after_a_minute() {
    let world = World::start().await;
    let hard = json!({"count/configmaps": "9"});
    world.create::<ResourceQuota>(json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).await;
    world.settle().await;
    assert_eq!(used(&world, "q").await, json!({"count/configmaps": "1"}));
    world.merge_status::<ResourceQuota>("q", json!({"used": {"count/configmaps": "0"}})).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    world.settle().await;
    assert_eq!(used(&world, "q").await, json!({"count/configmaps": "1"}));
}

/// A kind that moves to another version while its objects are counted.
#[tokio::test(start_paused = true)]
async fn objects_are_counted_in_whatever_version_they_are_served() {
    let world = World::start().await;
    let versions = |served: [bool; 2]| {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let version = |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage, "schema": schema});
        json!([version("v1", served[0], true), version("v2", served[1], false)])
    };
    let names = json!({"kind": "Gauge", "plural": "gauges"});
    let definition = json!({"metadata": {"name": "gauges.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced", "names": names, "versions": versions([true, false])}});
    let definitions = Api::<CustomResourceDefinition>::all(world.client.clone());
    let definition: CustomResourceDefinition =
        kubewright_objects::from_value(definition).expect("a definition");
    definitions.create(&PostParams::default(), &definition).await.expect("created");
    let gauge = |version: &str, name: &str| {
        let kind = GroupVersionKind::gvk("example.com", version, "Gauge");
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = Api::default_namespaced_with(world.client.clone(), &resource);
        let object = DynamicObject::new(name, &resource);
        async move { api.create(&PostParams::default(), &object).await.expect("created") }
    };
    let quota =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"hard": {"count/gauges.example.com": "9"}}});
    world.settle().await;
    gauge("v1", "a").await;
    world.create::<ResourceQuota>(quota("early")).await;
    world.settle().await;
    assert_eq!(used(&world, "early").await, json!({"count/gauges.example.com": "1"}));

    let patch = Patch::Merge(json!({"spec": {"versions": versions([false, true])}}));
    definitions.patch("gauges.example.com", &PatchParams::default(), &patch).await.expect("patched");
    gauge("v2", "b").await;
    world.create::<ResourceQuota>(quota("late")).await;
    tokio::time::sleep(Duration::from_secs(31)).await;
    world.settle().await;
    assert_eq!(used(&world, "late").await, json!({"count/gauges.example.com": "2"}));
}
