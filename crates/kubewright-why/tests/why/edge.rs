//! What is asked wrongly, what may not be read, and how much is told.

use kubewright_cluster::{Cluster, User};
use kubewright_why::{Cause, GatherError, Target, explain, gather};
use serde_json::json;

use crate::lab::{Lab, deployment, found};

async fn refused(lab: &Lab, object: &str) -> String {
    let target = Target::parse(&[object.to_owned()], "default").expect("words");
    gather(&lab.client, &target, lab.now()).await.expect_err("refused").to_string()
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_said_by_its_name() {
    let lab = Lab::start(1).await;
    let no_kind = "kind \"deplyoment\" is not served by this cluster (it has deployments.apps)";
    assert!(
        refused(&lab, "deplyoment/web").await.starts_with(no_kind),
        "{}",
        refused(&lab, "deplyoment/web").await
    );
    assert_eq!(refused(&lab, "deploy/web").await, "deployment/web not found in namespace default");
    assert_eq!(refused(&lab, "node/far").await, "node/far not found");
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_read_is_said_and_the_rest_goes_on() {
    let lab = Lab::of(Cluster::builder().nodes(1)).await;
    let waiting = json!({"kubewright.dev/waiting": "ErrImagePull"});
    lab.create(deployment(waiting, json!({}), json!({}))).await;
    let rbac = "rbac.authorization.k8s.io/v1";
    lab.create(json!({"apiVersion": rbac, "kind": "Role", "metadata": {"name": "reader", "namespace": "default"},
        "rules": [{"apiGroups": ["", "apps"], "resources": ["pods", "deployments", "replicasets"], "verbs": ["get", "list"]}]})).await;
    lab.create(json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": "reader", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]})).await;
    let ann = lab.cluster.client_as(User::new("ann", ["system:authenticated"]));
    let target = |word: &str| Target::parse(&[word.to_owned()], "default").expect("words");
    let report = explain(&gather(&ann, &target("deploy/web"), lab.now()).await.expect("a picture"));
    assert!(found(&report.object, Cause::ImagePull).is_some(), "{report:#?}");
    let nodes = report.unread.iter().find(|unread| unread.what == "nodes").expect("nodes were not read");
    assert!(nodes.why.contains("forbidden"), "{nodes:?}");
    let error = gather(&ann, &target("svc/web"), lab.now()).await.expect_err("it may not be read");
    assert!(
        matches!(error, GatherError::Unreadable { .. }) && error.to_string().contains("forbidden"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn of_many_pods_with_the_same_cause_two_are_shown() {
    let lab = Lab::start(1).await;
    let waiting = json!({"kubewright.dev/waiting": "ErrImagePull"});
    lab.create(deployment(waiting, json!({"replicas": 20}), json!({}))).await;
    let report = lab.why("deploy/web").await;
    let pods = &report.object.children[0].children;
    assert_eq!(pods.iter().map(|pod| pod.alike).collect::<Vec<_>>(), [0, 18]);
}

#[tokio::test(start_paused = true)]
async fn a_report_is_the_same_for_the_same_cluster() {
    let lab = Lab::start(1).await;
    lab.create(deployment(json!({}), json!({"replicas": 3}), json!({"priorityClassName": "gone"}))).await;
    let text = |report| serde_json::to_string(&report).expect("JSON");
    assert_eq!(text(lab.why("deploy/web").await), text(lab.why("deploy/web").await));
}
