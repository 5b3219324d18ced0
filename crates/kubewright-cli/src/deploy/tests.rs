//! On the embedded control plane, in virtual time. Its nodes are simulated: pods run, and nothing is in them.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use kubewright_cluster::Cluster;
use kubewright_runtime::command::{Installation, Operator};
use serde_json::{Value, json};

use super::*;
use crate::install::tests::{assert_whole, large};

const TIMEOUT: Duration = Duration::from_secs(60);
const HOME: &str = "whitelist-system";

async fn cluster(nodes: usize) -> Cluster {
    Cluster::builder().nodes(nodes).start().await.expect("a cluster")
}

fn plan_of(operator: &Operator) -> Plan {
    let installation = Installation { image: Some("operator:test".to_owned()), ..Installation::default() };
    Plan::new(operator.manifests(&installation).expect("manifests")).expect("a plan")
}

fn whitelist() -> Plan {
    plan_of(&kubewright_whitelist::operator())
}

/// Installs, and gives what was told, and what is warned of or why not.
async fn installed(cluster: &Cluster, plan: &Plan) -> (Vec<String>, Result<Vec<String>, String>) {
    let mut lines = Vec::new();
    let done =
        install(&cluster.client(), plan, Others::Respected, StoredArgs::default(), TIMEOUT, &mut |line| {
            lines.push(line.to_owned());
        })
        .await;
    (lines, done.map_err(|error| format!("{error:#}")))
}

async fn removed(
    cluster: &Cluster,
    plan: &Plan,
    keep_kinds: bool,
    lose_objects: bool,
) -> (Vec<String>, Result<usize, String>) {
    let client = cluster.client();
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    let removal = Removal { client: &client, deadline, keep_kinds, lose_objects };
    let mut lines = Vec::new();
    let done = removal.run(plan, &mut |line| lines.push(line.to_owned())).await;
    (lines, done.map_err(|error| format!("{error:#}")))
}

async fn create(cluster: &Cluster, object: &Value) {
    let object: DynamicObject = kubewright_objects::from_value(object).expect("an object");
    let kind = GroupVersionKind::try_from(object.types.as_ref().expect("a kind")).expect("a kind");
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(cluster.client(), &namespace, &resource),
        None => Api::all_with(cluster.client(), &resource),
    };
    api.create(&PostParams::default(), &object).await.expect("created");
}

async fn create_sample(cluster: &Cluster, finalizers: &[&str]) {
    let group = "police.foo.bar/v1beta1";
    let plan = whitelist();
    let definition = plan.of(Role::Kind).next().expect("a kind").object.data["spec"].clone();
    let version = definition["versions"][0]["name"].as_str().expect("a version");
    let api_version = format!("{}/{version}", definition["group"].as_str().unwrap_or(group));
    create(
        cluster,
        &json!({"apiVersion": api_version, "kind": definition["names"]["kind"],
            "metadata": {"name": "sample", "namespace": "default", "finalizers": finalizers}, "spec": {}}),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_installed_until_it_runs_and_removed_without_a_trace() {
    let cluster = cluster(1).await;
    cluster.settle().await;
    let before = everything(&cluster).await;
    let plan = whitelist();
    let (lines, done) = installed(&cluster, &plan).await;
    assert_eq!(
        done.expect("it runs"),
        [
            "node-0 is simulated: the pods of deployment.apps/whitelist do not run; `kubewright up --runtime process` runs them"
        ]
    );
    assert!(
        lines[0].starts_with("customresourcedefinition.apiextensions.k8s.io/")
            && lines[0].ends_with(" created"),
        "{lines:#?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("deployment.apps/whitelist: 1 of 1 simulated"));
    let (again, done) = installed(&cluster, &plan).await;
    done.expect("it runs");
    let applied = again.iter().filter(|line| !line.contains(": "));
    assert!(
        applied.clone().count() == plan.manifests().len()
            && applied.clone().all(|line| line.ends_with(" unchanged")),
        "{again:#?}"
    );
    let (lines, done) = removed(&cluster, &plan, false, false).await;
    assert_eq!(done, Ok(plan.manifests().len()), "{lines:#?}");
    cluster.settle().await;
    assert_eq!(everything(&cluster).await, before);
    assert_eq!(removed(&cluster, &plan, false, false).await, (Vec::new(), Ok(0)));
}

/// The names of all that an installation could leave.
async fn everything(cluster: &Cluster) -> BTreeMap<&'static str, Vec<String>> {
    let mut all = BTreeMap::new();
    for (group, version, kind) in [
        ("", "v1", "Namespace"),
        ("", "v1", "Pod"),
        ("", "v1", "Service"),
        ("", "v1", "ServiceAccount"),
        ("apps", "v1", "Deployment"),
        ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
        ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io", "v1", "Role"),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ] {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(cluster.client(), &resource);
        let list = api.list(&Default::default()).await.expect("listed");
        all.insert(kind, list.items.iter().map(ResourceExt::name_any).collect());
    }
    all
}

#[tokio::test(start_paused = true)]
async fn objects_of_its_kinds_are_not_lost_unless_that_is_wanted() {
    let cluster = cluster(1).await;
    let plan = whitelist();
    installed(&cluster, &plan).await.1.expect("it runs");
    create_sample(&cluster, &[]).await;
    let before = everything(&cluster).await;
    let refused = removed(&cluster, &plan, false, false).await.1.expect_err("an object is there");
    assert!(
        refused.contains("1 objects of its kinds would be lost: ") && refused.contains("default/sample"),
        "{refused}"
    );
    assert_eq!(everything(&cluster).await, before, "nothing was removed");
    removed(&cluster, &plan, true, false).await.1.expect("the kinds are kept");
    let kinds: Api<CustomResourceDefinition> = Api::all(cluster.client());
    assert_eq!(kinds.list(&Default::default()).await.expect("listed").items.len(), 1);
    installed(&cluster, &plan).await.1.expect("it runs again");
    removed(&cluster, &plan, false, true).await.1.expect("it may be lost");
    assert!(kinds.list(&Default::default()).await.expect("listed").items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_held_by_a_finalizer_is_named() {
    let cluster = cluster(1).await;
    let plan = whitelist();
    installed(&cluster, &plan).await.1.expect("it runs");
    create_sample(&cluster, &["example.com/cleanup"]).await;
    let refused = removed(&cluster, &plan, false, true).await.1.expect_err("it is held");
    assert!(
        refused.contains("is not gone in time") && refused.contains("default/sample (example.com/cleanup)"),
        "{refused}"
    );
    let deployments: Api<Deployment> = Api::namespaced(cluster.client(), HOME);
    deployments.get("whitelist").await.expect("the operator is there to finish");
}

#[tokio::test(start_paused = true)]
async fn without_a_node_it_is_told_that_there_is_none() {
    let cluster = cluster(0).await;
    let (lines, done) = installed(&cluster, &whitelist()).await;
    let refused = done.expect_err("it cannot run");
    assert!(refused.contains("waits for a node"), "{refused}");
    assert!(
        refused.contains("does not run in time") && refused.contains("the cluster needs a node"),
        "{refused}"
    );
    assert_eq!(lines.iter().filter(|line| line.contains("waits for a node")).count(), 1, "once: {lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_quota_in_the_way_is_told_and_a_namespace_of_others_is_left() {
    let cluster = cluster(1).await;
    create(&cluster, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})).await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": HOME},
        "spec": {"hard": {"pods": "0"}}});
    create(&cluster, &quota).await;
    cluster.settle().await;
    let plan = whitelist();
    let (lines, done) = installed(&cluster, &plan).await;
    assert!(
        lines.contains(&format!("namespace/{HOME} was there before, and is left as it is")),
        "{lines:#?}"
    );
    let refused = done.expect_err("no pod is allowed");
    assert!(
        refused.contains("its pods cannot be created") && refused.contains("exceeded quota: none"),
        "{refused}"
    );
    let (lines, done) = removed(&cluster, &plan, false, false).await;
    assert_eq!(done, Ok(plan.manifests().len() - 1));
    assert!(lines[0].contains("was not installed by kubewright deploy"), "{lines:#?}");
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    namespaces.get(HOME).await.expect("it is left");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_programs_of_others_is_left() {
    let cluster = cluster(1).await;
    let plan = whitelist();
    installed(&cluster, &plan).await.1.expect("it runs");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "other", "namespace": HOME},
        "spec": {"ports": [{"port": 80}]}});
    create(&cluster, &service).await;
    let (lines, done) = removed(&cluster, &plan, false, false).await;
    done.expect("the rest is removed");
    assert!(lines.iter().any(|line| line.contains("is left: it has service/other")), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn webhooks_that_nobody_is_trusted_for_are_told() {
    let cluster = cluster(1).await;
    // Simulated pods run no program, so nobody writes the authority.
    let plan = plan_of(&kubewright_image_police::operator());
    let (lines, done) = installed(&cluster, &plan).await;
    let refused = done.expect_err("no authority");
    assert!(refused.contains("webhookconfiguration") && refused.contains("has no caBundle"), "{refused}");
    assert!(lines.iter().any(|line| line.ends_with("waits for its caBundle")), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn fields_of_others_are_taken_over_only_when_told_so() {
    let cluster = cluster(1).await;
    let plan = whitelist();
    installed(&cluster, &plan).await.1.expect("it runs");
    let deployments: Api<Deployment> = Api::namespaced(cluster.client(), HOME);
    let theirs = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2}});
    let parameters = PatchParams::apply("autoscaler").force();
    deployments.patch("whitelist", &parameters, &Patch::Apply(&theirs)).await.expect("theirs");
    let refused = installed(&cluster, &plan).await.1.expect_err("a conflict");
    assert!(refused.contains("autoscaler") && refused.contains("--force-conflicts"), "{refused}");
    install(&cluster.client(), &plan, Others::TakenOver, StoredArgs::default(), TIMEOUT, &mut |_| ())
        .await
        .expect("taken over");
    let spec = deployments.get("whitelist").await.expect("there").spec.expect("a spec");
    assert_eq!(spec.replicas, Some(1));
}

#[tokio::test(start_paused = true)]
async fn who_may_not_install_is_told_so() {
    let cluster = cluster(1).await;
    let client = cluster.client_of_service_account("default", "default");
    let done =
        install(&client, &whitelist(), Others::Respected, StoredArgs::default(), TIMEOUT, &mut |_| ()).await;
    let refused = format!("{:#}", done.expect_err("forbidden"));
    assert!(refused.contains("forbidden") && refused.contains("ask an administrator"), "{refused}");
    assert!(!refused.contains('\n'), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_a_stored_object_is_not_valid_under_is_not_deployed() {
    let cluster = cluster(1).await;
    let plan = whitelist();
    installed(&cluster, &plan).await.1.expect("it runs");
    create_sample(&cluster, &[]).await;
    let installation = Installation { image: Some("operator:next".to_owned()), ..Installation::default() };
    let mut objects = kubewright_whitelist::operator().manifests(&installation).expect("manifests");
    let is_kind = |object: &&mut DynamicObject| object.data["spec"]["versions"].is_array();
    let kind = objects.iter_mut().find(is_kind).expect("a kind");
    let schema = &mut kind.data["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["team"] = json!({"type": "string"});
    schema["properties"]["spec"]["required"] = json!(["team"]);
    let strict = Plan::new(objects).expect("a plan");
    let (lines, done) = installed(&cluster, &strict).await;
    let refused = done.expect_err("an object is in the way");
    assert!(
        refused.contains("  default/sample: spec.team: Required value\n") && lines.is_empty(),
        "{refused}: {lines:?}"
    );
    let wanted = StoredArgs { yes: true };
    install(&cluster.client(), &strict, Others::Respected, wanted, TIMEOUT, &mut |_| ())
        .await
        .expect("it is wanted");
}

/// A definition over the 262,144 bytes of an annotation, installed and upgraded with the rest.
#[tokio::test(start_paused = true)]
async fn a_definition_that_no_annotation_holds_is_deployed_and_upgraded() {
    let cluster = cluster(1).await;
    let plan = |fields| {
        let installation =
            Installation { image: Some("operator:test".to_owned()), ..Installation::default() };
        let mut objects = kubewright_whitelist::operator().manifests(&installation).expect("manifests");
        objects.push(large(fields));
        Plan::new(objects).expect("a plan")
    };
    for (fields, change) in [(700, "created"), (900, "configured"), (900, "unchanged")] {
        let (lines, done) = installed(&cluster, &plan(fields)).await;
        done.expect("it runs");
        let line = format!("customresourcedefinition.apiextensions.k8s.io/larges.example.com {change}");
        assert!(lines.contains(&line), "{lines:#?}");
        assert_whole(&cluster.client(), fields).await;
    }
    removed(&cluster, &plan(900), false, false).await.1.expect("it goes as it came");
}
