//! What the police does not do.

use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, batch::v1::CronJob, core::v1::Pod};
use kube::ResourceExt;
use kubewright::{metrics::Metrics, testing::Cluster};
use kubewright_image_police::{
    ClusterWhiteList, Shared, WhiteList, operator, operator_with,
    workload::{EXEMPT, EXEMPT_UNTIL, SCALED_FROM},
};
use serde_json::json;

use super::{
    condition, create, deployment, deployments, in_namespace, list, names, notes, pod, status, with_list,
    with_sample,
};

/// IP-14: "arrests itself".
#[kubewright::test]
async fn ip_14_the_police_does_not_arrest_itself(cluster: Cluster) {
    cluster.run(operator).await;
    let home = cluster.in_namespace("image-police-system");
    let mut police = in_namespace(deployment("image-police", "image-police:1"), home.namespace());
    police["spec"]["template"]["spec"]["serviceAccountName"] = "image-police".into();
    create(&cluster, police).await;
    create(&cluster, in_namespace(deployment("other", "evil"), home.namespace())).await;
    create(&cluster, in_namespace(list("a", &json!({})), home.namespace())).await;
    cluster.settle().await;
    assert_eq!(deployments(&home).await, ["image-police", "other"]);

    home.patch::<WhiteList>("a", json!({"spec": {"enforceInSystemNamespace": true}})).await;
    cluster.settle().await;
    assert_eq!(deployments(&home).await, ["image-police"]);
}

/// IP-15: "seed of a civil war in the cluster".
#[kubewright::test]
async fn ip_15_kube_system_is_exempt_unless_a_list_opts_in(cluster: Cluster) {
    cluster.run(operator).await;
    let system = cluster.in_namespace("kube-system");
    create(&cluster, in_namespace(deployment("dns", "dns:1"), "kube-system")).await;
    create(&cluster, in_namespace(list("a", &json!({})), "kube-system")).await;
    cluster.settle().await;
    assert_eq!(deployments(&system).await, ["dns"]);
    assert_eq!(condition(&system, "a", "Enforced").await, "False SystemNamespace");
    assert_eq!(notes(&cluster, "SystemNamespace").await.len(), 1);
}

/// Beyond 2.
#[kubewright::test]
async fn ip_05_in_audit_everything_is_told_and_nothing_touched(cluster: Cluster) {
    let shared = Shared::default();
    let metrics = Metrics::new();
    shared.counts().register(metrics.registry()).expect("they are new");
    cluster.run(move || operator_with(&shared)).await;
    create(&cluster, list("a", &json!({"enforcement": "Audit"}))).await;
    create(&cluster, deployment("bad", "evil")).await;
    create(&cluster, pod("good", "nginx")).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["bad"]);
    let told = status(&cluster, "a").await;
    assert_eq!((told.violation_count, told.actions), (1, 0));
    let one = &told.violations[0];
    assert_eq!(
        [&one.kind, &one.name, &one.container, &one.image, &one.reason],
        ["Deployment", "bad", "main", "docker.io/library/evil:latest", "NameNotListed"]
    );
    assert_eq!(one.written.as_deref(), Some("evil"), "which somebody may look for");
    assert_eq!(condition(&cluster, "a", "Compliant").await, "False Violations");
    assert_eq!(condition(&cluster, "a", "Enforced").await, "False Audit");
    assert_eq!(notes(&cluster, "IllegalImage").await.len(), 1);
    assert!(metrics.text().contains("image_police_violations{namespace=\"default\"} 1\n"));

    cluster.advance(Duration::from_secs(3600)).await;
    create(&cluster, pod("worse", "evil")).await;
    cluster.settle().await;
    let later = status(&cluster, "a").await;
    assert_eq!((later.violation_count, &later.violations[0].first_seen), (2, &one.first_seen));
    cluster.delete::<Deployment>("bad").await;
    cluster.delete::<Pod>("worse").await;
    cluster.settle().await;
    assert_eq!(condition(&cluster, "a", "Compliant").await, "True NoViolations");
    assert!(metrics.text().contains("image_police_violations{namespace=\"default\"} 0\n"));
}

/// Beyond 2.
#[kubewright::test]
async fn ip_05_scaled_to_zero_they_stay_and_their_pods_go(cluster: Cluster) {
    with_list(&cluster, json!({"enforcement": "ScaleToZero"})).await;
    let mut three = deployment("bad", "evil");
    three["spec"]["replicas"] = 3.into();
    create(&cluster, three).await;
    create(&cluster, pod("bare", "evil")).await;
    let container = json!({"name": "main", "image": "evil"});
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}});
    let spec = json!({"schedule": "* * * * *", "jobTemplate": {"spec": job}});
    create(
        &cluster,
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "bad"}, "spec": spec}),
    )
    .await;
    cluster.settle().await;
    let found = cluster.get::<Deployment>("bad").await;
    assert_eq!(found.spec.as_ref().and_then(|spec| spec.replicas), Some(0));
    assert_eq!(found.annotations().get(SCALED_FROM).map(String::as_str), Some("3"));
    assert_eq!(cluster.get::<CronJob>("bad").await.spec.suspend, Some(true));
    assert_eq!(names::<Pod>(&cluster).await, ["bare"], "a pod cannot be scaled");
    let told = status(&cluster, "a").await;
    assert_eq!((told.violation_count, told.actions), (3, 2));
}

/// Beyond 5.
#[kubewright::test]
async fn ip_07_no_more_are_deleted_in_a_minute_than_may_be(cluster: Cluster) {
    cluster.run(operator).await;
    for number in 0..7 {
        create(&cluster, pod(&format!("bad-{number}"), "evil")).await;
    }
    cluster.settle().await;
    create(&cluster, list("a", &json!({"maxDeletionsPerMinute": 3}))).await;
    cluster.advance(Duration::from_secs(40)).await;
    assert_eq!(names::<Pod>(&cluster).await.len(), 4);
    assert_eq!(condition(&cluster, "a", "Enforced").await, "False DeletionCapReached");
    assert_eq!(notes(&cluster, "DeletionCapReached").await.len(), 1);
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(names::<Pod>(&cluster).await.len(), 1);
    cluster.advance(Duration::from_secs(120)).await;
    assert_eq!(names::<Pod>(&cluster).await, [""; 0]);
    assert_eq!(condition(&cluster, "a", "Enforced").await, "True Delete");
}

/// A defect of the original: an error while the list was read deleted every Deployment of the namespace. Here a list that cannot be
/// understood deletes nothing either, and says so, once.
#[kubewright::test]
async fn ip_07_a_list_that_cannot_be_understood_deletes_nothing(cluster: Cluster) {
    cluster.run(operator).await;
    create(&cluster, deployment("bad", "evil")).await;
    let images = json!([{"name": "nginx", "tags": [], "versions": ["1.2.3.4"]}]);
    create(&cluster, list("a", &json!({"images": images}))).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["bad"]);
    assert_eq!(condition(&cluster, "a", "Accepted").await, "False InvalidRules");
    assert_eq!(condition(&cluster, "a", "Enforced").await, "False InvalidRules");
    assert_eq!(status(&cluster, "a").await.violation_count, 1);
    let told = notes(&cluster, "InvalidRules").await;
    let range = "spec.images[0].versions: \"1.2.3.4\" is no range";
    assert!(told.iter().any(|note| note.starts_with(range)), "{told:?}");
    let before = cluster.revision();
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(cluster.revision(), before, "no loop");
}

/// Beyond 6: with a reason and an end; what is exempt is told, and judged when its time is over.
#[kubewright::test]
async fn ip_09_an_exemption_has_a_reason_and_an_end(cluster: Cluster) {
    with_sample(&cluster).await;
    let until = (cluster.world().clock.now() + Duration::from_secs(600)).to_string();
    for (name, annotations) in [
        ("exempt", json!({EXEMPT: "ticket 42", EXEMPT_UNTIL: until})),
        ("no-end", json!({EXEMPT: "ticket 42"})),
        ("no-reason", json!({EXEMPT: " ", EXEMPT_UNTIL: until})),
        ("over", json!({EXEMPT: "ticket 42", EXEMPT_UNTIL: "2001-01-01T00:00:00Z"})),
        ("nonsense", json!({EXEMPT: "ticket 42", EXEMPT_UNTIL: "soon"})),
    ] {
        let mut object = deployment(name, "evil");
        object["metadata"]["annotations"] = annotations;
        create(&cluster, object).await;
    }
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["exempt"]);
    let told = status(&cluster, "whitelist-sample").await;
    assert_eq!((told.violation_count, told.exempt.len()), (0, 1));
    assert_eq!(told.exempt[0].reason, "ticket 42");
    assert_eq!(notes(&cluster, "Exempt").await.len(), 1, "break-glass is told");
    cluster.advance(Duration::from_secs(601)).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, [""; 0]);
}

#[kubewright::test]
async fn ip_09_a_list_may_know_no_exemptions(cluster: Cluster) {
    with_list(&cluster, json!({"exemptions": "None"})).await;
    let mut object = deployment("bad", "evil");
    object["metadata"]["annotations"] = json!({EXEMPT: "because", EXEMPT_UNTIL: "2999-01-01T00:00:00Z"});
    create(&cluster, object).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, [""; 0]);
}

/// Beyond 2: report first.
#[kubewright::test]
async fn ip_07_what_was_there_before_the_list_may_be_reported_only(cluster: Cluster) {
    cluster.run(operator).await;
    create(&cluster, deployment("old", "evil")).await;
    cluster.advance(Duration::from_secs(5)).await;
    create(&cluster, list("a", &json!({"existing": "Report"}))).await;
    cluster.advance(Duration::from_secs(5)).await;
    create(&cluster, deployment("new", "evil")).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["old"]);
    assert_eq!(status(&cluster, "a").await.violation_count, 1);
}

/// Beyond 6.
#[kubewright::test]
async fn ip_10_a_list_of_the_cluster_allows_everywhere_and_is_enforced_where_it_selects(cluster: Cluster) {
    cluster.run(operator).await;
    let labels = json!({"police": "on"});
    create(
        &cluster,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "policed", "labels": labels}}),
    )
    .await;
    let policed = cluster.in_namespace("policed");
    let mut wide = list("wide", &json!({"images": [{"name": "base", "tags": ["latest"]}]}));
    wide["kind"] = "ClusterWhiteList".into();
    wide["spec"]["namespaceSelector"] = json!({"matchLabels": labels});
    create(&cluster, wide).await;
    for image in ["base", "evil"] {
        create(&cluster, in_namespace(deployment(image, image), "policed")).await;
        create(&cluster, deployment(image, image)).await;
    }
    cluster.settle().await;
    assert_eq!(deployments(&policed).await, ["base"]);
    assert_eq!(deployments(&cluster).await, ["base", "evil"], "a namespace that it does not select");
    create(&cluster, list("own", &json!({}))).await;
    cluster.settle().await;
    assert_eq!(deployments(&cluster).await, ["base"], "what it allows is allowed everywhere");
    let wide: kube::Api<ClusterWhiteList> = kube::Api::all(cluster.client());
    let told = wide.get("wide").await.expect("a list").status.expect("a status");
    assert_eq!((told.namespaces, told.violation_count), (1, 0));
}

/// No write when nothing changed.
#[kubewright::test]
async fn ip_07_an_idle_hour_brings_no_writes(cluster: Cluster) {
    with_list(&cluster, json!({"enforcement": "Audit"})).await;
    for number in 0..5 {
        create(&cluster, deployment(&format!("bad-{number}"), "evil")).await;
    }
    cluster.settle().await;
    let before = cluster.revision();
    cluster.advance(Duration::from_secs(3600)).await;
    assert_eq!(cluster.revision(), before);
    let known = cluster.get::<WhiteList>("a").await.resource_version();
    cluster.patch::<Deployment>("bad-0", json!({"metadata": {"labels": {"a": "b"}}})).await;
    cluster.settle().await;
    assert_eq!(cluster.get::<WhiteList>("a").await.resource_version(), known);
}

/// Who takes over knows from the statuses what was told already.
#[kubewright::test]
async fn ip_05_who_starts_anew_tells_nothing_twice(cluster: Cluster) {
    let police = cluster.run(operator).await;
    create(&cluster, list("a", &json!({"enforcement": "Audit"}))).await;
    create(&cluster, deployment("bad", "evil")).await;
    cluster.settle().await;
    let told = status(&cluster, "a").await;
    police.crash().await;
    police.restart().await;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(status(&cluster, "a").await, told);
    assert_eq!(notes(&cluster, "IllegalImage").await.len(), 1);
}
