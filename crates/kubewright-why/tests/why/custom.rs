//! Objects of custom kinds, their definitions, and their operators.

use kube::Api;
use kube::api::ListParams;
use kubewright_cluster::Cluster;
use kubewright_why::{Cause, Target, explain, gather};
use serde_json::{Value, json};

use crate::lab::{Lab, deployment, found, says};

fn definition(name: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{name}s.example.org")},
        "spec": {"group": "example.org", "scope": "Namespaced",
            "names": {"plural": format!("{name}s"), "singular": name, "kind": "Bucket", "listKind": "BucketList", "shortNames": ["bk"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn bucket() -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Bucket", "metadata": {"name": "b", "namespace": "default"}, "spec": {"size": 1}})
}

/// The account, role and program of an operator of buckets, in the namespace `default`.
async fn operator(lab: &Lab, annotations: Value) {
    let rbac = "rbac.authorization.k8s.io/v1";
    lab.create(json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "buckets"},
        "rules": [{"apiGroups": ["example.org"], "resources": ["buckets", "buckets/status"], "verbs": ["get", "list", "watch", "patch"]}]}))
        .await;
    lab.create(json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": "buckets"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "buckets"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}]}))
        .await;
    lab.create(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}})).await;
    lab.create(deployment(annotations, json!({}), json!({"serviceAccountName": "robot"}))).await;
}

async fn with_bucket() -> (Lab, kube::api::DynamicObject) {
    let lab = Lab::of(Cluster::builder().nodes(1).admin(true)).await;
    lab.create(definition("bucket")).await;
    let made = lab.create(bucket()).await;
    (lab, made)
}

#[tokio::test(start_paused = true)]
async fn a_condition_says_what_is_wrong_and_what_the_object_made_says_why() {
    let (lab, made) = with_bucket().await;
    let condition = json!({"type": "Ready", "status": "False", "reason": "NoPods", "message": "0 of 1 pods"});
    lab.set_status(&made, json!({"conditions": [condition], "observedGeneration": 1})).await;
    let mut web = deployment(json!({"kubewright.dev/waiting": "ErrImagePull"}), json!({}), json!({}));
    web["metadata"]["ownerReferences"] = json!([{"apiVersion": "example.org/v1", "kind": "Bucket", "name": "b",
        "uid": made.metadata.uid, "controller": true}]);
    lab.create(web).await;
    says(&lab.finds("bk/b", Cause::ConditionFalse).await, &["Ready is False (NoPods): 0 of 1 pods"]);
    says(&lab.finds("bk/b", Cause::ImagePull).await, &["web:1"]);
    let report = lab.why("deploy/web").await;
    assert_eq!(report.owners.iter().map(ToString::to_string).collect::<Vec<_>>(), ["bucket/b"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_nobody_reconciles_says_that_no_operator_is_there() {
    let (lab, made) = with_bucket().await;
    says(&lab.finds("buckets.example.org/b", Cause::StatusMissing).await, &["it has no status"]);
    says(&lab.finds("bucket/b", Cause::OperatorMissing).await, &["no service account has a role"]);
    lab.set_status(&made, json!({"observedGeneration": 1})).await;
    assert!(lab.why("bk/b").await.healthy);
    lab.patch(&made, json!({"spec": {"size": 2}})).await;
    says(
        &lab.finds("bk/b", Cause::GenerationBehind).await,
        &["generation 1, the latest is 2", "wrote the status"],
    );
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_wrote_the_status_lately_is_not_missed_wherever_it_runs() {
    let (lab, made) = with_bucket().await;
    let condition = json!({"type": "Ready", "status": "False", "reason": "NoPods", "message": "0 of 1 pods"});
    lab.set_status(&made, json!({"conditions": [condition], "observedGeneration": 1})).await;
    let is_missed = async || found(&lab.why("bk/b").await.object, Cause::OperatorMissing).is_some();
    assert!(!is_missed().await);
    lab.pass(601).await;
    assert!(is_missed().await);
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_does_not_run_is_found_by_the_rights_it_has() {
    let (lab, _) = with_bucket().await;
    operator(&lab, json!({"kubewright.dev/waiting": "ErrImagePull"})).await;
    let finding = lab.finds("bk/b", Cause::OperatorNotReady).await;
    says(&finding, &["deployment/web -n default has 0 of 1 pods ready", "kubewright why deployment/web"]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_nobody_renews_is_told() {
    let (lab, _) = with_bucket().await;
    operator(&lab, json!({})).await;
    let renewed = lab.now().to_string();
    lab.create(json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader", "namespace": "default"},
        "spec": {"holderIdentity": "web-1", "leaseDurationSeconds": 15, "renewTime": format!("{}.000000Z", &renewed[..19])}})).await;
    lab.pass(300).await;
    says(&lab.finds("bk/b", Cause::LeaseExpired).await, &["lease leader", "5m ago by \"web-1\""]);
}

#[tokio::test(start_paused = true)]
async fn what_the_operator_was_refused_is_in_the_servers_log() {
    let (lab, _) = with_bucket().await;
    operator(&lab, json!({})).await;
    let robot = lab.cluster.client_of_service_account("default", "robot");
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(robot, "default");
    secrets.list(&ListParams::default()).await.expect_err("refused");
    let finding = lab.finds("bk/b", Cause::RightsMissing).await;
    says(&finding, &["system:serviceaccount:default:robot may not list secrets in default"]);
}

#[tokio::test(start_paused = true)]
async fn the_operator_says_what_fails_and_what_waits() {
    let (lab, made) = with_bucket().await;
    lab.set_status(&made, json!({"observedGeneration": 1})).await;
    let target = Target::parse(&["bk/b".to_owned()], "default").expect("an object");
    let picture = gather(&lab.client, &target, lab.now()).await.expect("a picture");
    let failing = json!({"key": "default/b", "error": "no such region", "failedSecondsAgo": 1.0, "retryInSeconds": 12.4});
    let latest = json!({"key": "default/b", "began": "2026-01-01T00:00:00Z", "reasons": "a retry", "outcome": "failed"});
    let said = |failing: Value, latest: Value, waiting: u64| json!({"controllers": [{"controller": "bucket", "waiting": waiting, "failing": failing, "reconciles": latest}]});
    let report = explain(&picture.clone().with_reconciles(said(json!([failing]), json!([latest]), 0)));
    let finding = found(&report.object, Cause::ReconcileFailing).expect("it fails");
    says(finding, &["no such region", "the next try is in 12s", "because of a retry: failed"]);
    let report = explain(&picture.with_reconciles(said(json!([]), json!([]), 7)));
    says(found(&report.object, Cause::ReconcileWaiting).expect("it waits"), &["7 keys wait"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_operator_told_the_server_of_its_reconciles_is_known_without_asking_it() {
    let (lab, made) = with_bucket().await;
    operator(&lab, json!({})).await;
    lab.set_status(&made, json!({"observedGeneration": 1})).await;
    lab.cluster.admin().expect("it was asked for").ask_for_reconciles();
    let report = async |account: &str, error: &str| {
        let failing = json!({"key": "default/b", "error": error, "retryInSeconds": 12.0});
        let body = json!({"controllers": [{"controller": account, "waiting": 0, "failing": [failing], "reconciles": []}]});
        let request = http::Request::post("/kubewright/reconciles").body(body.to_string().into_bytes());
        let client = lab.cluster.client_of_service_account("default", account);
        client.request::<Value>(request.expect("a request")).await.expect("it is taken");
    };
    report("robot", "no such region").await;
    report("somebody", "of another kind").await;
    let report = lab.why("bk/b").await;
    says(
        found(&report.object, Cause::ReconcileFailing).expect("it fails"),
        &["no such region", "the next try is in 1"],
    );
    let failing = report.object.findings.iter().filter(|one| one.cause == Cause::ReconcileFailing).count();
    assert_eq!(failing, 1, "another operator's key of that name is its own");
}

#[tokio::test(start_paused = true)]
async fn a_definition_whose_names_are_taken_is_not_served() {
    let lab = Lab::start(1).await;
    lab.create(definition("bucket")).await;
    lab.create(definition("pail")).await;
    says(&lab.finds("crd/pails.example.org", Cause::NamesNotAccepted).await, &["Bucket"]);
    assert!(lab.why("crd/buckets.example.org").await.healthy);
}

#[tokio::test(start_paused = true)]
async fn a_conversion_webhook_that_nobody_serves_is_told_of_the_definition_and_its_objects() {
    let lab = Lab::start(1).await;
    let mut converted = definition("bucket");
    converted["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "default", "name": "convert"}}}});
    lab.create(converted).await;
    says(
        &lab.finds("crd/buckets.example.org", Cause::ConversionUnreachable).await,
        &["service convert in default does not exist"],
    );
    lab.create(bucket()).await;
    lab.finds("bk/b", Cause::ConversionUnreachable).await;
}
