//! The promises of the Memcached operator, in a whole cluster and in virtual time. `MC-` rows are those of the guide that it comes
//! from; "Beyond" is what it promises besides.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use kubewright::testing::Cluster;
use kubewright_memcached::{Memcached, manifests, operator, operator_with, stats};
use serde_json::{Value, json};

const NAME: &str = "example-memcached";

fn sample() -> Memcached {
    serde_saphyr::from_str(manifests::SAMPLE).expect("the sample is a Memcached")
}

async fn with_sample(cluster: &Cluster) {
    cluster.run(operator).await;
    cluster.create(&sample()).await;
    cluster.settle().await;
}

/// The sample with another spec, as anybody may send it; what the server says when it refuses.
async fn try_create(cluster: &Cluster, spec: Value) -> Result<(), String> {
    let kind = ApiResource::erase::<Memcached>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &kind);
    let mut object = DynamicObject::new("x", &kind);
    object.data = json!({"spec": spec});
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(other) => panic!("{other}"),
    }
}

async fn replicas(cluster: &Cluster) -> Option<i32> {
    cluster.get::<Deployment>(NAME).await.spec.and_then(|spec| spec.replicas)
}

async fn nodes(cluster: &Cluster) -> Vec<String> {
    cluster.get::<Memcached>(NAME).await.status.unwrap_or_default().nodes
}

async fn pods(cluster: &Cluster) -> Vec<String> {
    cluster.list::<Pod>().await.iter().map(ResourceExt::name_any).collect()
}

async fn condition(cluster: &Cluster, type_: &str) -> String {
    let status = cluster.get::<Memcached>(NAME).await.status.unwrap_or_default();
    let found = status.conditions.into_iter().find(|condition| condition.type_ == type_);
    found.map(|condition| format!("{} {}", condition.status, condition.reason)).unwrap_or_default()
}

/// MC-01, MC-02.
#[kubewright::test]
async fn mc_01_the_sample_gets_a_deployment_of_three_and_names_its_pods(cluster: Cluster) {
    with_sample(&cluster).await;
    assert_eq!(replicas(&cluster).await, Some(3));
    assert_eq!(nodes(&cluster).await, pods(&cluster).await);
    assert_eq!(nodes(&cluster).await.len(), 3);
    for (type_, said) in [
        ("Available", "True AllPodsReady"),
        ("Progressing", "False RolledOut"),
        ("Degraded", "False AllPodsReady"),
    ] {
        assert_eq!(condition(&cluster, type_).await, said);
    }
    let service = cluster.get::<Service>(NAME).await.spec.expect("a spec");
    assert_eq!(service.ports.expect("ports")[0].port, 11211);
    assert_eq!(service.selector.expect("a selector")["memcached_cr"], NAME);
}

#[kubewright::test]
async fn mc_03_another_size_is_followed_up_and_down(cluster: Cluster) {
    with_sample(&cluster).await;
    for size in [4, 1] {
        cluster.patch::<Memcached>(NAME, json!({"spec": {"size": size}})).await;
        cluster.settle().await;
        assert_eq!(replicas(&cluster).await, Some(size));
        assert_eq!(nodes(&cluster).await, pods(&cluster).await);
        assert_eq!(i32::try_from(nodes(&cluster).await.len()), Ok(size));
    }
    assert!(!cluster.exists::<PodDisruptionBudget>(NAME).await, "one pod alone has no budget");
}

/// MC-04, MC-09.
#[kubewright::test]
async fn mc_04_what_somebody_changes_or_deletes_is_put_right(cluster: Cluster) {
    with_sample(&cluster).await;
    cluster.patch::<Deployment>(NAME, json!({"spec": {"replicas": 7}})).await;
    cluster.settle().await;
    assert_eq!(replicas(&cluster).await, Some(3));
    let other = json!([{"name": "memcached", "image": "evil", "command": ["evil"]}]);
    cluster.patch::<Deployment>(NAME, json!({"spec": {"template": {"spec": {"containers": other}}}})).await;
    cluster.settle().await;
    let pod = cluster.get::<Deployment>(NAME).await.spec.and_then(|spec| spec.template.spec).expect("a pod");
    assert_eq!(pod.containers[0].image.as_deref(), Some("memcached:1.6-alpine"), "mc_09");
    let other = json!([{"name": "memcached", "port": 12000}]);
    cluster.patch::<Service>(NAME, json!({"spec": {"ports": other}})).await;
    cluster.settle().await;
    let ports = cluster.get::<Service>(NAME).await.spec.and_then(|spec| spec.ports).unwrap_or_default();
    assert_eq!(ports.iter().map(|port| port.port).collect::<Vec<_>>(), [11211]);
    cluster.delete::<Deployment>(NAME).await;
    cluster.delete::<Service>(NAME).await;
    cluster.delete::<PodDisruptionBudget>(NAME).await;
    cluster.settle().await;
    assert_eq!(replicas(&cluster).await, Some(3));
    assert!(cluster.exists::<Service>(NAME).await && cluster.exists::<PodDisruptionBudget>(NAME).await);
    assert_eq!(condition(&cluster, "Available").await, "True AllPodsReady");
}

#[kubewright::test]
async fn mc_05_a_deleted_memcached_takes_everything_along(cluster: Cluster) {
    with_sample(&cluster).await;
    cluster.delete::<Memcached>(NAME).await;
    cluster.settle().await;
    assert_eq!(cluster.list::<Deployment>().await, []);
    assert_eq!(cluster.list::<ReplicaSet>().await, []);
    assert_eq!(pods(&cluster).await, [""; 0]);
    assert!(!cluster.exists::<Service>(NAME).await);
    assert_eq!(cluster.list::<PodDisruptionBudget>().await, []);
}

/// MC-06, MC-07, Beyond 6.
#[kubewright::test]
async fn mc_06_the_schema_says_what_is_wrong(cluster: Cluster) {
    cluster.run(operator).await;
    for (spec, said) in [
        (json!({}), "spec.size: Required value"),
        (json!({"size": "3"}), "must be of type integer: \"string\""),
        (json!({"size": 1.5}), "must be of type int32: \"float64\""),
        (
            json!({"size": -1}),
            "spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0",
        ),
        (json!({"size": 1, "memoryMegabytes": 1}), "should be greater than or equal to 8"),
        (json!({"size": 1, "maxConnections": 0}), "should be greater than or equal to 1"),
        (json!({"size": 1, "extraArgs": ["-p=1"]}), "extraArgs cannot set address, port"),
        (json!({"size": 1, "image": "a b"}), "spec.image"),
    ] {
        let told = try_create(&cluster, spec).await.expect_err("it is refused");
        assert!(told.contains(said), "{told}");
    }
    assert_eq!(try_create(&cluster, json!({"size": 0, "extraArgs": ["-o", "modern", "-v"]})).await, Ok(()));
}

#[kubewright::test]
async fn mc_08_scaled_to_zero_the_list_is_empty_and_back_again(cluster: Cluster) {
    with_sample(&cluster).await;
    for size in [0, 2] {
        cluster.patch::<Memcached>(NAME, json!({"spec": {"size": size}})).await;
        cluster.settle().await;
        assert_eq!(nodes(&cluster).await.len(), size);
        assert_eq!(condition(&cluster, "Available").await, "True AllPodsReady");
        let known = cluster.get::<Memcached>(NAME).await;
        assert_eq!(known.status.and_then(|status| status.observed_generation), known.metadata.generation);
    }
}

/// Beyond 2: `kubectl scale memcached/example-memcached --replicas=4`, and MC-07's refusal by the server itself.
#[kubewright::test]
async fn mc_07_it_is_scaled_by_its_scale_and_autoscalers_find_its_pods(cluster: Cluster) {
    with_sample(&cluster).await;
    let api: Api<Memcached> = Api::namespaced(cluster.client(), "default");
    let scaled = |replicas: i32| Patch::Merge(json!({"spec": {"replicas": replicas}}));
    let scale = api.patch_scale(NAME, &PatchParams::default(), &scaled(4)).await.expect("scaled");
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(4));
    cluster.settle().await;
    let scale = api.get_scale(NAME).await.expect("a scale").status.expect("a status");
    assert_eq!((scale.replicas, pods(&cluster).await.len()), (4, 4));
    assert_eq!(scale.selector.as_deref(), Some("app=memcached,memcached_cr=example-memcached"));
    assert!(api.patch_scale(NAME, &PatchParams::default(), &scaled(-1)).await.is_err());
}

/// Beyond 5: another image rolls through, and never more than one pod is missing.
#[kubewright::test(nodes = 3)]
async fn mc_03_another_version_rolls_through_without_a_gap(cluster: Cluster) {
    with_sample(&cluster).await;
    cluster.patch::<Memcached>(NAME, json!({"spec": {"image": "memcached:1.7"}})).await;
    cluster
        .eventually(|cluster| async move {
            assert!(nodes(&cluster).await.len() >= 2, "more than one is missing");
            let pods = cluster.list::<Pod>().await;
            let image = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone());
            pods.len() == 3 && pods.iter().all(|pod| image(pod).as_deref() == Some("memcached:1.7"))
        })
        .await;
}

/// MC-03, Beyond 1: pods run an image that is pinned by its digest, as it is written.
#[kubewright::test]
async fn mc_03_an_image_is_pinned_by_its_digest(cluster: Cluster) {
    with_sample(&cluster).await;
    let digest = format!("sha256:{}", "a".repeat(64));
    for name in ["memcached", "memcached:1.6-alpine", "registry.example:5000/team/memcached"] {
        let image = format!("{name}@{digest}");
        cluster.patch::<Memcached>(NAME, json!({"spec": {"image": image}})).await;
        cluster.settle().await;
        let specs = cluster.list::<Pod>().await.into_iter().filter_map(|pod| pod.spec);
        let images: Vec<_> = specs.filter_map(|spec| spec.containers[0].image.clone()).collect();
        assert_eq!(images, [&*image; 3]);
        assert_eq!(condition(&cluster, "Available").await, "True AllPodsReady");
    }
}

/// Beyond 1: what the `restricted` Pod Security Standard asks for.
#[kubewright::test]
async fn mc_01_its_pods_are_restricted(cluster: Cluster) {
    let label = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(cluster.client());
    namespaces.patch("default", &PatchParams::default(), &Patch::Merge(label)).await.expect("labelled");
    with_sample(&cluster).await;
    assert_eq!(pods(&cluster).await.len(), 3);
}

#[kubewright::test]
async fn mc_04_a_deployment_of_somebody_else_is_left_alone(cluster: Cluster) {
    cluster.run(operator).await;
    let labels = json!({"app": "theirs"});
    let spec = json!({
        "replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "theirs"}]}},
    });
    let theirs: Deployment =
        kubewright::object::from_value(json!({"metadata": {"name": NAME}, "spec": spec}))
            .expect("a Deployment");
    let before = cluster.create(&theirs).await;
    cluster.create(&sample()).await;
    cluster.settle().await;
    assert_eq!(condition(&cluster, "Degraded").await, "True Conflict");
    assert_eq!(cluster.get::<Deployment>(NAME).await.spec, before.spec);
    cluster.delete::<Deployment>(NAME).await;
    cluster.eventually(|cluster| async move { nodes(&cluster).await.len() == 3 }).await;
}

/// Beyond 6, and the wish of the write-up: what a pod says is an event and a condition.
#[kubewright::test]
async fn mc_02_what_stats_say_is_a_condition(cluster: Cluster) {
    let ask = |addresses: BTreeMap<String, String>| async move {
        match addresses.len() {
            3 => Ok("3 pods answer".to_owned()),
            more => Err(format!("{more} pods are asked")),
        }
    };
    cluster.run(move || operator_with(move |manager| stats::with(manager.world(), ask))).await;
    let mut asked = sample();
    asked.spec.check_stats = true;
    cluster.create(&asked).await;
    cluster
        .eventually(|cluster| async move { condition(&cluster, "Answering").await == "True ProbeSucceeded" })
        .await;
    cluster.patch::<Memcached>(NAME, json!({"spec": {"size": 2}})).await;
    cluster
        .eventually(|cluster| async move { condition(&cluster, "Answering").await == "False ProbeFailed" })
        .await;
    cluster.patch::<Memcached>(NAME, json!({"spec": {"checkStats": false}})).await;
    cluster.eventually(|cluster| async move { condition(&cluster, "Answering").await.is_empty() }).await;
}

/// No write when nothing changed.
#[kubewright::test]
async fn mc_01_an_idle_hour_brings_no_writes(cluster: Cluster) {
    with_sample(&cluster).await;
    let before = cluster.revision();
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(cluster.revision(), before);
}

/// Whatever goes wrong on the way.
#[kubewright::test(seeds = 200, faults)]
async fn mc_04_it_comes_to_its_size_whatever_goes_wrong(cluster: Cluster) {
    with_sample(&cluster).await;
    cluster.patch::<Memcached>(NAME, json!({"spec": {"size": 5}})).await;
    cluster.delete::<Deployment>(NAME).await;
    cluster
        .run_until(
            |cluster| async move { nodes(&cluster).await.len() == 5 && pods(&cluster).await.len() == 5 },
            Duration::from_secs(900),
        )
        .await;
}
