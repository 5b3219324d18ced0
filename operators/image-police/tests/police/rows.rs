//! What the write-up promises.

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::{Pod, ReplicationController},
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use kubewright::testing::Cluster;
use kubewright_image_police::{WhiteList, operator};
use serde_json::{Value, json};

use super::{
    create, deployment, deployments, in_namespace, list, names, notes, pod, pod_spec, status, try_create,
    with_sample,
};

/// IP-01: what the schema says of manifests that are wrong.
#[kubewright::test]
async fn ip_01_the_schema_says_what_is_missing(cluster: Cluster) {
    cluster.run(operator).await;
    for (spec, said) in [
        (Value::Null, "spec: Required value"),
        (json!({}), "spec.images: Required value"),
        (json!({"images": [{"name": "nginx"}]}), "spec.images[0].tags: Required value"),
        (json!({"images": [{"tags": []}]}), "spec.images[0].name: Required value"),
        (
            json!({"images": [{"name": "nginx", "tags": [1.14]}]}),
            r#"spec.images[0].tags[0]: Invalid value: "number": spec.images[0].tags[0] in body must be of type string: "number""#,
        ),
        (json!({"images": [{"name": "nginx", "tags": ["latest, 1.14.2"]}]}), "spec.images[0].tags[0]"),
        (
            json!({"images": [{"name": "nginx:1", "tags": []}]}),
            "the name of an image has no tag: tags go to `tags`",
        ),
        (json!({"images": [{"name": "ngin*", "tags": []}]}), "a name with * or ? needs `match: Glob`"),
        (json!({"images": [{"name": "nginx", "tags": ["1.*"]}]}), "a tag with * or ? needs `match: Glob`"),
        (
            json!({"images": [{"name": "nginx", "tags": [], "digests": ["sha256:aa"]}]}),
            "spec.images[0].digests[0]",
        ),
        (
            json!({"images": [], "enforcement": "Arrest"}),
            r#"supported values: "Audit", "Deny", "ScaleToZero", "Delete""#,
        ),
    ] {
        let mut object = list("x", &json!({}));
        object["spec"] = spec;
        let told = try_create(&cluster, object).await.expect_err("it is refused");
        assert!(told.contains(said), "{told}");
    }
}

#[kubewright::test]
async fn ip_02_a_namespace_without_a_list_is_left_alone(cluster: Cluster) {
    cluster.run(operator).await;
    create(&cluster, deployment("any", "any:1")).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["any"]);
}

/// IP-03, IP-04, IP-05, IP-12.
#[kubewright::test]
async fn ip_05_what_is_not_listed_is_deleted_at_once_with_its_pods(cluster: Cluster) {
    with_sample(&cluster).await;
    for (name, image) in [("nginx", "nginx"), ("pinned", "nginx:1.14.2"), ("illegal-nginx", "nginx:1.15.7")] {
        create(&cluster, deployment(name, image)).await;
    }
    let at_once = Duration::from_secs(2);
    cluster
        .run_until(|cluster| async move { !cluster.exists::<Deployment>("illegal-nginx").await }, at_once)
        .await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["nginx", "pinned"]);
    let sets = names::<ReplicaSet>(&cluster).await;
    assert!(sets.iter().all(|name| !name.starts_with("illegal")) && sets.len() == 2, "{sets:?}");
    assert_eq!(names::<Pod>(&cluster).await.len(), 2);
    assert_eq!(
        notes(&cluster, "IllegalImage").await,
        [
            r#"container "main": image docker.io/library/nginx:1.15.7 is not allowed by WhiteList default/whitelist-sample"#
        ]
    );
    assert_eq!(
        notes(&cluster, "Deleted").await,
        [r#"Deleted Deployment illegal-nginx: container "main": image docker.io/library/nginx:1.15.7"#]
    );
    let told = status(&cluster, "whitelist-sample").await;
    assert_eq!((told.actions, told.violation_count), (1, 0));
}

/// IP-03: today's `kubectl run` makes a Pod.
#[kubewright::test]
async fn ip_03_bare_pods_are_judged_too(cluster: Cluster) {
    with_sample(&cluster).await;
    create(&cluster, pod("nginx", "nginx")).await;
    create(&cluster, pod("illegal-nginx", "nginx:1.15.7")).await;
    cluster.settle().await;
    assert_eq!(names::<Pod>(&cluster).await, ["nginx"]);
}

#[kubewright::test]
async fn ip_06_names_are_compared_as_they_are_written(cluster: Cluster) {
    with_sample(&cluster).await;
    for (name, image) in [("good", "gcr.io/busybox"), ("tag", "gcr.io/busybox:1.36"), ("name", "busybox")] {
        create(&cluster, deployment(name, image)).await;
    }
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["good"]);
}

#[kubewright::test]
async fn ip_07_a_list_that_comes_or_changes_judges_what_runs(cluster: Cluster) {
    cluster.run(operator).await;
    for name in ["nginx", "httpd", "redis"] {
        create(&cluster, deployment(name, name)).await;
    }
    cluster.settle().await;
    let (nginx, httpd) =
        (json!({"name": "nginx", "tags": ["latest"]}), json!({"name": "httpd", "tags": ["latest"]}));
    create(&cluster, list("a", &json!({"images": [nginx, httpd]}))).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["httpd", "nginx"]);
    cluster.patch::<WhiteList>("a", json!({"spec": {"images": [nginx]}})).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["nginx"]);
}

#[kubewright::test]
async fn ip_08_a_changed_deployment_is_judged_again(cluster: Cluster) {
    with_sample(&cluster).await;
    create(&cluster, deployment("web", "nginx")).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["web"]);
    cluster.patch::<Deployment>("web", json!({"spec": {"template": {"spec": pod_spec("httpd")}}})).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, [""; 0]);
}

/// IP-09, Beyond 4.
#[kubewright::test]
async fn ip_09_one_illegal_container_of_any_type_is_enough(cluster: Cluster) {
    with_sample(&cluster).await;
    let (good, bad) = (json!({"name": "good", "image": "nginx"}), json!({"name": "bad", "image": "evil"}));
    let volume = json!({"name": "data", "image": {"reference": "evil"}});
    for (name, spec) in [
        ("two", json!({"containers": [good, bad]})),
        ("init", json!({"containers": [good], "initContainers": [bad]})),
        ("volume", json!({"containers": [good], "volumes": [volume]})),
    ] {
        let mut object = deployment(name, "nginx");
        object["spec"]["template"]["spec"] = spec;
        create(&cluster, object).await;
    }
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, [""; 0]);
}

/// Beyond 4: `kubectl debug` puts a container into a pod that runs; the pod goes, its Deployment makes another.
#[kubewright::test]
async fn ip_09_an_ephemeral_container_costs_its_pod_and_not_the_deployment(cluster: Cluster) {
    with_sample(&cluster).await;
    create(&cluster, deployment("web", "nginx")).await;
    cluster.settle().await;
    let before = names::<Pod>(&cluster).await;
    let debugger = json!({"spec": {"ephemeralContainers": [{"name": "debugger", "image": "busybox"}]}});
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let change = Patch::Strategic(debugger);
    let params = PatchParams::default();
    pods.patch_subresource("ephemeralcontainers", &before[0], &params, &change).await.expect("taken");
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["web"]);
    let after = names::<Pod>(&cluster).await;
    assert_eq!(after.len(), 1);
    assert_ne!(before, after);
}

#[kubewright::test(namespaces = ["other"])]
async fn ip_10_a_list_holds_in_its_own_namespace(cluster: Cluster) {
    let cluster = cluster.in_namespace("default");
    with_sample(&cluster).await;
    create(&cluster, in_namespace(deployment("any", "any"), "other")).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster.in_namespace("other")).await, ["any"]);
}

#[kubewright::test]
async fn ip_11_without_its_list_a_namespace_is_free(cluster: Cluster) {
    with_sample(&cluster).await;
    cluster.delete::<WhiteList>("whitelist-sample").await;
    cluster.settle().await;
    create(&cluster, deployment("any", "any")).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["any"]);
}

#[kubewright::test]
async fn ip_13_a_digest_is_allowed_where_it_is_listed(cluster: Cluster) {
    with_sample(&cluster).await;
    let digest = format!("sha256:{}", "a".repeat(64));
    let object = || deployment("digest", &format!("nginx@{digest}"));
    create(&cluster, object()).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, [""; 0]);
    let images = json!([{"name": "nginx", "tags": [], "digests": [digest]}]);
    create(&cluster, list("digests", &json!({"images": images}))).await;
    cluster.settle().await;
    create(&cluster, object()).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["digest"]);
}

#[kubewright::test]
async fn ip_16_two_lists_add_up(cluster: Cluster) {
    with_sample(&cluster).await;
    create(&cluster, list("more", &json!({"images": [{"name": "httpd", "tags": ["2"]}]}))).await;
    cluster.settle().await;
    for (name, image) in [("a", "nginx:1.14.2"), ("b", "httpd:2"), ("c", "httpd")] {
        create(&cluster, deployment(name, image)).await;
    }
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["a", "b"]);
}

/// Beyond 4: every kind that makes pods, each with a legal one beside it.
#[kubewright::test]
async fn ip_05_all_kinds_of_workloads_are_judged(cluster: Cluster) {
    with_sample(&cluster).await;
    for (name, image) in [("good", "nginx"), ("bad", "evil")] {
        for object in workloads(name, image) {
            create(&cluster, object).await;
        }
    }
    cluster.settle().await;
    let left = [
        names::<DaemonSet>(&cluster).await,
        names::<StatefulSet>(&cluster).await,
        names::<ReplicaSet>(&cluster).await,
        names::<ReplicationController>(&cluster).await,
        names::<Job>(&cluster).await,
        names::<CronJob>(&cluster).await,
    ];
    assert_eq!(left.concat(), ["good"; 6]);
    let pods = names::<Pod>(&cluster).await;
    assert!(pods.iter().all(|name| name.starts_with("good")), "{pods:?}");
}

fn workloads(name: &str, image: &str) -> Vec<Value> {
    let labels = json!({"app": name});
    let mut spec = pod_spec(image);
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    spec["restartPolicy"] = "Never".into();
    let job = json!({"template": {"spec": spec}});
    let selected = json!({"selector": {"matchLabels": labels}, "template": template});
    let mut set = selected.clone();
    set["serviceName"] = "x".into();
    let object = |group: &str, kind: &str, spec: &Value| json!({"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec});
    vec![
        object("apps/v1", "DaemonSet", &selected),
        object("apps/v1", "StatefulSet", &set),
        object("apps/v1", "ReplicaSet", &selected),
        object("v1", "ReplicationController", &json!({"selector": labels, "template": template})),
        object("batch/v1", "Job", &job),
        object("batch/v1", "CronJob", &json!({"schedule": "@yearly", "jobTemplate": {"spec": job}})),
    ]
}

/// WL-14: the sample of the write-up's first half, whose kind was called the same, has a group of its own.
#[kubewright::test]
async fn wl_14_the_sample_and_the_police_are_installed_together(cluster: Cluster) {
    with_sample(&cluster).await;
    cluster.run(kubewright_whitelist::operator).await;
    let sample: kubewright_whitelist::WhiteList =
        serde_saphyr::from_str(kubewright_whitelist::manifests::SAMPLE).expect("the sample is a WhiteList");
    cluster.create(&sample).await;
    cluster.settle().await;
    assert!(status(&cluster, "whitelist-sample").await.observed_generation.is_some(), "the police's");
    let ready = cluster.get::<kubewright_whitelist::WhiteList>("whitelist-sample").await.status;
    assert!(ready.is_some_and(|status| status.ready), "the sample's");
    assert_eq!(deployments(&cluster).await, ["whitelist-sample-deployment"], "its image is on the list");
}
