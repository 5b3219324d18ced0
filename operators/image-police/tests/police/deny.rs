//! Refusals up front: by the policy that the police keeps, and by its webhook.

use k8s_openapi::api::{
    admissionregistration::v1::ValidatingAdmissionPolicy,
    apps::v1::Deployment,
    core::v1::{Namespace, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kubewright::{
    command::{AdmissionFlags, Installation},
    testing::Cluster,
    webhook::FailurePolicy,
};
use kubewright_image_police::{
    Shared, WhiteList,
    image::Image,
    operator, operator_with,
    rules::Rules,
    workload::{EXEMPT, EXEMPT_UNTIL},
};
use serde_json::json;

use super::{
    condition, create, deployment, deployments, in_namespace, list, names, notes, pod, pod_spec, status,
    try_create, with_list,
};

/// Runs the police, whose webhook the API server finds in this process if it is to; with a Deployment that was there before the
/// list.
async fn with_deny(cluster: &Cluster, by: &str) {
    let shared = Shared::default();
    if by == "Webhook" {
        let webhooks = operator_with(&shared).webhooks_in_process(&Installation::default());
        let (host, server) = webhooks.expect("it has one");
        cluster.mount_webhooks(host, server.service());
    }
    cluster.run(move || operator_with(&shared)).await;
    cluster.settle().await;
    create(cluster, deployment("old", "evil:old")).await;
    cluster.settle().await;
    create(cluster, list("a", &json!({"enforcement": "Deny", "denyBy": by}))).await;
    cluster.settle().await;
}

/// Beyond 1, by whoever refuses.
async fn refuses(cluster: &Cluster, by: &str, said: &str) {
    with_deny(cluster, by).await;
    for object in [deployment("bad", "nginx:1.15.7"), pod("bad", "nginx:1.15.7")] {
        let told = try_create(cluster, object).await.expect_err("it is refused");
        assert!(told.contains(said), "{told}");
    }
    create(cluster, deployment("good", "nginx")).await;
    cluster.settle().await;
    assert_eq!(deployments(cluster).await, ["good", "old"]);
    assert_eq!(names::<Pod>(cluster).await.len(), 2, "controllers make what was judged with its template");
    assert_eq!(status(cluster, "a").await.violation_count, 1, "what was there before is reported");
    assert_eq!(condition(cluster, "a", "Enforced").await, "True Deny");

    cluster.patch::<Deployment>("old", json!({"spec": {"replicas": 2}})).await;
    changes_are_refused(cluster).await;

    let mut exempt = deployment("exempt", "evil");
    exempt["metadata"]["annotations"] = json!({EXEMPT: "because", EXEMPT_UNTIL: "2999-01-01T00:00:00Z"});
    create(cluster, exempt).await;
    create(cluster, in_namespace(deployment("any", "any"), "other")).await;

    cluster.patch::<WhiteList>("a", json!({"spec": {"enforcement": "Audit"}})).await;
    cluster.settle().await;
    create(cluster, deployment("bad", "evil")).await;
}

async fn changes_are_refused(cluster: &Cluster) {
    let (params, apps) = (PatchParams::default(), Api::<Deployment>::namespaced(cluster.client(), "default"));
    let evil = Patch::Merge(json!({"spec": {"template": {"spec": pod_spec("evil")}}}));
    let changed = apps.patch("good", &params, &evil).await;
    assert!(changed.expect_err("it is refused").to_string().contains("evil"));
    let pods = Api::<Pod>::namespaced(cluster.client(), "default");
    let all = names::<Pod>(cluster).await;
    let name = all.iter().find(|name| name.starts_with("good")).expect("a pod");
    let debugger = json!({"spec": {"ephemeralContainers": [{"name": "debugger", "image": "busybox"}]}});
    let debugged =
        pods.patch_subresource("ephemeralcontainers", name, &params, &Patch::Strategic(debugger)).await;
    assert!(debugged.expect_err("it is refused").to_string().contains("busybox"));
}

/// Beyond 1: `admission webhook "..." denied the request: container "...": image ... is not allowed by WhiteList ...`.
#[kubewright::test(namespaces = ["other"])]
async fn ip_05_the_webhook_refuses_up_front(cluster: Cluster) {
    let said = "admission webhook \"images.police.foo.bar\" denied the request: container \"main\": image \
                docker.io/library/nginx:1.15.7 is not allowed by WhiteList default/a";
    refuses(&cluster.in_namespace("default"), "Webhook", said).await;
}

/// Beyond 1.
#[kubewright::test(namespaces = ["other"])]
async fn ip_05_the_policy_refuses_up_front(cluster: Cluster) {
    let said = "denied request: container \"main\": image docker.io/library/nginx:1.15.7 is not allowed by WhiteList default/a";
    refuses(&cluster.in_namespace("default"), "Policy", said).await;
}

/// Beyond 1: whoever refuses says the same of all containers at once, and of images that are volumes.
#[kubewright::test]
async fn ip_09_policy_and_webhook_tell_of_every_container(cluster: Cluster) {
    cluster.run(operator).await;
    for by in ["Policy", "Webhook"] {
        create(&cluster, list(&by.to_lowercase(), &json!({"enforcement": "Deny", "denyBy": by}))).await;
        cluster.settle().await;
        let mut object = pod("bad", "nginx");
        let digest = format!("gcr.io/team/app:1@sha256:{}", "a".repeat(64));
        object["spec"]["initContainers"] = json!([{"name": "init", "image": digest}]);
        object["spec"]["volumes"] = json!([{"name": "data", "image": {"reference": "localhost:5000/data"}}]);
        let told = try_create(&cluster, object).await.expect_err("it is refused");
        let said = format!(
            "container \"init\": image {digest}, container \"volume data\": image localhost:5000/data:latest are not allowed by \
             WhiteList default/{}",
            by.to_lowercase()
        );
        assert!(told.contains(&said), "{told}");
        cluster.delete::<WhiteList>(&by.to_lowercase()).await;
        cluster.settle().await;
    }
}

/// Beyond 1: who installs the police says what becomes of requests while its webhook is down, and where; whatever they say, its own
/// pods can be replaced.
#[kubewright::test(namespaces = ["policed", "other"])]
async fn ip_14_a_webhook_that_fails_closed_does_not_keep_the_police_from_being_replaced(cluster: Cluster) {
    cluster.run(operator).await;
    let admission = AdmissionFlags {
        webhook_failure_policy: Some(FailurePolicy::Fail),
        webhook_namespace_selector: Some("team in (a,b)".to_owned()),
    };
    let installation = Installation { admission, ..Installation::default() };
    operator().prepare(&cluster.client(), &installation).await.expect("it is installed");
    for namespace in ["policed", "image-police-system", "kube-system"] {
        cluster.patch::<Namespace>(namespace, json!({"metadata": {"labels": {"team": "a"}}})).await;
    }
    cluster.settle().await;
    create(&cluster, in_namespace(pod("any", "any"), "policed")).await;
    cluster.plug_webhooks(false);
    let told = try_create(&cluster, in_namespace(pod("late", "any"), "policed")).await;
    let told = told.expect_err("nobody judges it");
    assert!(told.contains("failed calling webhook \"images.police.foo.bar\""), "{told}");
    create(&cluster, in_namespace(pod("late", "any"), "other")).await;
    for namespace in ["image-police-system", "kube-system"] {
        create(&cluster, in_namespace(deployment("any", "any"), namespace)).await;
        cluster.settle().await;
        assert_eq!(names::<Pod>(&cluster.in_namespace(namespace)).await.len(), 1, "{namespace}");
    }
}

/// What a policy says of an image is what the police says of it.
#[kubewright::test]
async fn ip_06_policy_and_police_agree(cluster: Cluster) {
    let digest = format!("sha256:{}", "a".repeat(64));
    let images = json!([
        {"name": "nginx", "tags": ["latest", "1.14.2"], "digests": [digest]},
        {"name": "localhost:5000/app", "tags": ["v1"]},
        {"name": "busybox", "tags": ["stable"], "match": "Normalized", "digests": [digest]},
        {"name": "gcr.io/team/**", "tags": ["1.*", "prod-?"], "match": "Glob"},
        {"name": "docker.io/library/redis*", "tags": ["*"], "match": "Glob", "digests": [digest]},
    ]);
    with_list(&cluster, json!({"images": images, "enforcement": "Deny"})).await;
    let rules = Rules::compile(&cluster.get::<WhiteList>("a").await.spec).expect("rules");
    let names = "nginx docker.io/library/nginx localhost:5000/app localhost/app busybox library/busybox docker.io/busybox \
                 index.docker.io/library/busybox gcr.io/busybox gcr.io/team/a gcr.io/team/a/b gcr.io/teams/a redis \
                 redis-stack team/redis docker.io/redis Upper/redis";
    let suffixes = [
        String::new(),
        format!("@{digest}"),
        format!(":stable@{digest}"),
        format!("@sha256:{}", "b".repeat(64)),
    ];
    let tags = ["latest", "1.14.2", "v1", "stable", "1.x", "prod-1", "prod-12"].map(|tag| format!(":{tag}"));
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    let asked = PostParams { dry_run: true, ..PostParams::default() };
    let mut allowed = 0;
    for name in names.split_whitespace() {
        for suffix in suffixes.iter().chain(&tags) {
            let image = format!("{name}{suffix}");
            let object: Pod = kubewright::object::from_value(pod("x", &image)).expect("a Pod");
            let answer = pods.create(&asked, &object).await.map(|created| created.name_any());
            let judged = rules.judge(&Image::read(&image));
            assert_eq!(answer.is_ok(), judged.is_ok(), "{image}: {answer:?}, {judged:?}");
            allowed += usize::from(judged.is_ok());
        }
    }
    assert!(allowed > 20, "{allowed}");
}

/// A policy that somebody changes or deletes is put right; it goes with its list.
#[kubewright::test]
async fn ip_11_the_policy_is_kept_and_goes_with_its_list(cluster: Cluster) {
    with_deny(&cluster, "Policy").await;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cluster.client());
    let name = "image-police-default";
    let ignore = Patch::Merge(json!({"spec": {"failurePolicy": "Ignore"}}));
    policies.patch(name, &PatchParams::default(), &ignore).await.expect("taken");
    cluster.settle().await;
    let policy = policies.get(name).await.expect("it is there");
    assert_eq!(policy.spec.and_then(|spec| spec.failure_policy).as_deref(), Some("Fail"));
    policies.delete(name, &DeleteParams::default()).await.expect("deleted");
    cluster.settle().await;
    assert!(policies.get_opt(name).await.expect("an answer").is_some());
    cluster.delete::<WhiteList>("a").await;
    cluster.settle().await;
    assert_eq!(policies.list(&ListParams::default()).await.expect("a list").items, []);
}

#[kubewright::test]
async fn ip_06_versions_need_the_webhook_and_the_status_says_so(cluster: Cluster) {
    cluster.run(operator).await;
    let images = json!([{"name": "nginx", "tags": [], "versions": ["^1.14"]}]);
    create(&cluster, list("a", &json!({"images": images, "enforcement": "Deny"}))).await;
    cluster.settle().await;
    assert_eq!(condition(&cluster, "a", "Enforced").await, "False VersionsNeedTheWebhook");
    assert_eq!(notes(&cluster, "VersionsNeedTheWebhook").await.len(), 1);
}
