//! The promises of the AppService operator, in a whole cluster and in virtual time. `AS-` rows are those of the write-up that it
//! comes from; "Beyond" is what it promises besides.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use kubewright::testing::{
    Cluster,
    admin::{ApiFault, Match, Rule},
};
use kubewright_app_service::{AppService, check, check::Question, manifests, operator, operator_with};
use serde_json::{Value, json};

const NAME: &str = "example-appservice";

fn sample() -> AppService {
    serde_saphyr::from_str(manifests::SAMPLE).expect("the sample is an AppService")
}

async fn with_sample(cluster: &Cluster) {
    cluster.run(operator).await;
    cluster.create(&sample()).await;
    cluster.settle().await;
}

async fn pods(cluster: &Cluster) -> Vec<String> {
    cluster.list::<Pod>().await.iter().map(ResourceExt::name_any).collect()
}

async fn uids(cluster: &Cluster) -> Vec<Option<String>> {
    cluster.list::<Pod>().await.iter().map(ResourceExt::uid).collect()
}

async fn condition(cluster: &Cluster, type_: &str) -> String {
    let status = cluster.get::<AppService>(NAME).await.status.unwrap_or_default();
    let found = status.conditions.into_iter().find(|condition| condition.type_ == type_);
    found.map(|condition| format!("{} {}", condition.status, condition.reason)).unwrap_or_default()
}

async fn end(cluster: &Cluster, pod: &str, phase: &str) {
    let api: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let ended = Patch::Merge(json!({"status": {"phase": phase, "conditions": []}}));
    api.patch_status(pod, &PatchParams::default(), &ended).await.expect("taken");
}

/// AS-01, Beyond 1, Beyond 2.
#[kubewright::test]
async fn as_01_the_sample_gets_three_busyboxes_that_it_controls(cluster: Cluster) {
    with_sample(&cluster).await;
    assert_eq!(
        pods(&cluster).await,
        ["example-appservice-pod", "example-appservice-pod-1", "example-appservice-pod-2"]
    );
    let app = cluster.get::<AppService>(NAME).await;
    let pod = cluster.get::<Pod>("example-appservice-pod").await;
    assert_eq!(pod.owner_references()[0].uid, app.uid().expect("a uid"));
    assert_eq!(pod.labels()["app"], NAME);
    let status = app.status.expect("a status");
    assert_eq!((status.phase.as_str(), status.ready_replicas), ("Running", 3));
    assert_eq!(status.pod_names, pods(&cluster).await);
    assert_eq!(status.observed_generation, app.metadata.generation);
}

/// AS-02: no write when nothing changed.
#[kubewright::test]
async fn as_02_where_all_pods_are_an_idle_hour_brings_no_writes(cluster: Cluster) {
    with_sample(&cluster).await;
    // A container sleeps for an hour.
    cluster.patch::<AppService>(NAME, json!({"spec": {"command": ["sleep", "1000000"]}})).await;
    // What slept before is killed at the end of its grace period.
    cluster.advance(Duration::from_secs(300)).await;
    cluster.settle().await;
    let before = cluster.revision();
    cluster.advance(Duration::from_secs(3000)).await;
    assert_eq!(cluster.revision(), before);
}

#[kubewright::test]
async fn as_03_a_deleted_pod_is_made_again(cluster: Cluster) {
    with_sample(&cluster).await;
    let before = uids(&cluster).await;
    cluster.delete::<Pod>("example-appservice-pod").await;
    cluster
        .eventually(|cluster| {
            let before = before.clone();
            async move {
                let now = uids(&cluster).await;
                now.len() == 3 && now.iter().filter(|uid| before.contains(uid)).count() == 2
            }
        })
        .await;
}

/// AS-04: pods of others are none of its business, even those with its label.
#[kubewright::test]
async fn as_04_a_pod_of_nobody_is_not_adopted_and_not_counted(cluster: Cluster) {
    with_sample(&cluster).await;
    let known = cluster.get::<AppService>(NAME).await.resource_version();
    let theirs: Pod = kubewright::object::from_value(json!({
        "metadata": {"name": "theirs", "labels": {"app": NAME}}, "spec": {"containers": [{"name": "a", "image": "a"}]},
    }))
    .expect("a Pod");
    cluster.create(&theirs).await;
    cluster.settle().await;
    assert_eq!(cluster.get::<AppService>(NAME).await.resource_version(), known);
    assert_eq!(cluster.get::<Pod>("theirs").await.owner_references(), []);
}

/// Beyond 4.
#[kubewright::test]
async fn as_04_a_name_that_somebody_else_has_is_told_and_taken_when_it_is_free(cluster: Cluster) {
    cluster.run(operator).await;
    let theirs: Pod = kubewright::object::from_value(json!({
        "metadata": {"name": "example-appservice-pod"}, "spec": {"containers": [{"name": "a", "image": "a"}]},
    }))
    .expect("a Pod");
    let uid = cluster.create(&theirs).await.uid();
    cluster.create(&sample()).await;
    cluster.settle().await;
    assert_eq!(condition(&cluster, "Ready").await, "False Conflict");
    assert_eq!(cluster.get::<Pod>("example-appservice-pod").await.uid(), uid);
    cluster.delete::<Pod>("example-appservice-pod").await;
    cluster
        .run_until(
            |cluster| async move { condition(&cluster, "Ready").await == "True AllPodsReady" },
            Duration::from_secs(90),
        )
        .await;
}

/// OS-12.
#[kubewright::test]
async fn as_05_a_deleted_appservice_takes_its_pods_along(cluster: Cluster) {
    with_sample(&cluster).await;
    cluster.delete::<AppService>(NAME).await;
    cluster.eventually(|cluster| async move { pods(&cluster).await.is_empty() }).await;
}

/// AS-06, Beyond 3.
#[kubewright::test]
async fn as_06_a_pod_that_failed_is_made_anew_unless_it_is_never_to_be(cluster: Cluster) {
    with_sample(&cluster).await;
    let before = uids(&cluster).await;
    end(&cluster, "example-appservice-pod-1", "Failed").await;
    cluster
        .eventually(|cluster| {
            let before = before.clone();
            async move { uids(&cluster).await.iter().any(|uid| !before.contains(uid)) }
        })
        .await;
    cluster.patch::<AppService>(NAME, json!({"spec": {"size": 1, "restartPolicy": "Never"}})).await;
    cluster
        .eventually(|cluster| async move { condition(&cluster, "Ready").await == "True AllPodsReady" })
        .await;
    cluster.settle().await;
    end(&cluster, "example-appservice-pod", "Failed").await;
    cluster.settle().await;
    let status = cluster.get::<AppService>(NAME).await.status.expect("a status");
    assert_eq!((status.phase.as_str(), pods(&cluster).await.len()), ("Completed", 1));
}

/// AS-06, Beyond 3.
#[kubewright::test]
async fn as_06_another_spec_replaces_the_pods_one_after_the_other(cluster: Cluster) {
    with_sample(&cluster).await;
    cluster.patch::<AppService>(NAME, json!({"spec": {"image": "busybox:1.36"}})).await;
    cluster
        .run_until(
            |cluster| async move {
                let pods = cluster.list::<Pod>().await;
                let is_ending = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some();
                assert!(pods.iter().filter(is_ending).count() <= 1);
                let image = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.containers[0].image.clone());
                pods.len() == 3 && pods.iter().all(|pod| image(pod).as_deref() == Some("busybox:1.36"))
            },
            Duration::from_secs(600),
        )
        .await;
}

/// AS-07, Beyond 1, Beyond 2: `kubectl scale appservice/example-appservice --replicas=...`, zero included.
#[kubewright::test]
async fn as_07_it_is_scaled_and_its_status_is_right_at_every_size(cluster: Cluster) {
    with_sample(&cluster).await;
    let api: Api<AppService> = Api::namespaced(cluster.client(), "default");
    for size in [0, 4, 1] {
        let scaled = Patch::Merge(json!({"spec": {"replicas": size}}));
        api.patch_scale(NAME, &PatchParams::default(), &scaled).await.expect("scaled");
        cluster
            .run_until(
                move |cluster| async move {
                    let status = cluster.get::<AppService>(NAME).await.status.unwrap_or_default();
                    let is_right = status.pod_names == pods(&cluster).await && status.ready_replicas == size;
                    is_right && status.phase == "Running"
                },
                Duration::from_secs(120),
            )
            .await;
        let scale = api.get_scale(NAME).await.expect("a scale").status.expect("a status");
        assert_eq!((scale.replicas, scale.selector.as_deref()), (size, Some("app=example-appservice")));
    }
}

/// AS-08: on a strict server; and what the schema refuses.
/// OS-08.
#[kubewright::test]
async fn as_08_the_schema_knows_its_fields_and_refuses_what_is_wrong(cluster: Cluster) {
    cluster.run(operator).await;
    let kind = ApiResource::erase::<AppService>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &kind);
    for (spec, said) in [
        (json!({"size": -1}), "should be greater than or equal to 0"),
        (json!({"size": "3"}), "must be of type integer"),
        (json!({"size": 1, "restartPolicy": "Sometimes"}), "Unsupported value: \"Sometimes\""),
        (json!({"check": {}}), "a check is either `exec` or `http`"),
        (json!({"check": {"exec": ["true"], "http": {"port": 80}}}), "a check is either `exec` or `http`"),
        (json!({"check": {"http": {"port": 0}}}), "should be greater than or equal to 1"),
    ] {
        let mut object = DynamicObject::new("x", &kind);
        object.data = json!({"spec": spec});
        let refused = api.create(&PostParams::default(), &object).await.expect_err("it is refused");
        assert!(refused.to_string().contains(said), "{refused}");
    }
    let strict = format!("/apis/app.example.com/v1alpha1/namespaces/default/{}", "appservices");
    let sample: Value = serde_saphyr::from_str(manifests::SAMPLE).expect("YAML");
    let body = serde_json::to_vec(&sample).expect("JSON");
    let mut request =
        kube::core::Request::new(&strict).create(&PostParams::default(), body).expect("a request");
    *request.uri_mut() = format!("{strict}?fieldValidation=Strict").parse().expect("a path");
    let created: AppService = cluster.client().request(request).await.expect("a strict server takes it");
    assert_eq!(created.spec.size, 3);
}

/// Beyond 5, the author's wish: what a command in a pod says is an event like any other.
#[kubewright::test]
async fn as_07_what_a_check_says_is_a_condition(cluster: Cluster) {
    let ask = |question: Question| async move {
        match question {
            Question::Exec { pods, command } if pods.len() == 3 && command == ["healthy"] => {
                Ok("well".to_owned())
            }
            other => Err(format!("{other:?}")),
        }
    };
    cluster.run(move || operator_with(move |manager| check::with(manager.world(), ask))).await;
    let mut checked = sample();
    checked.spec.check = Some(kubewright::object::from_value(json!({"exec": ["healthy"]})).expect("a check"));
    cluster.create(&checked).await;
    cluster
        .eventually(|cluster| async move { condition(&cluster, "Healthy").await == "True ProbeSucceeded" })
        .await;
    cluster.patch::<AppService>(NAME, json!({"spec": {"check": {"exec": ["ill"]}}})).await;
    cluster
        .eventually(|cluster| async move { condition(&cluster, "Healthy").await == "False ProbeFailed" })
        .await;
    cluster.patch::<AppService>(NAME, json!({"spec": {"check": null}})).await;
    cluster.eventually(|cluster| async move { condition(&cluster, "Healthy").await.is_empty() }).await;
}

/// An operator that has not heard that the object is gone and that its pods go: each would be a reason to make the next.
#[kubewright::test]
async fn as_03_no_pods_are_made_for_what_is_gone_unheard(cluster: Cluster) {
    with_sample(&cluster).await;
    let silence = Rule::new(ApiFault::HoldWatch { lasting: None }).on(Match::resource("appservices"));
    let silence = cluster.admin().expect("there is one in a test").inject(silence);
    cluster.delete::<AppService>(NAME).await;
    cluster.advance(Duration::from_secs(45)).await;
    let writes = cluster.history::<Pod>("example-appservice-pod").writes;
    assert_eq!(writes.iter().filter(|write| write.verb == "create").count(), 1);
    assert!(pods(&cluster).await.is_empty());
    cluster.admin().expect("there is one in a test").remove_fault(silence);
}

/// Whatever goes wrong on the way: never a pod too many at the end, never one too few.
#[kubewright::test(seeds = 200, faults)]
async fn as_03_it_comes_to_its_size_whatever_goes_wrong(cluster: Cluster) {
    with_sample(&cluster).await;
    cluster.patch::<AppService>(NAME, json!({"spec": {"size": 4}})).await;
    cluster
        .run_until(
            |cluster| async move {
                let status = cluster.get::<AppService>(NAME).await.status.unwrap_or_default();
                status.ready_replicas == 4 && pods(&cluster).await.len() == 4
            },
            Duration::from_secs(900),
        )
        .await;
}
