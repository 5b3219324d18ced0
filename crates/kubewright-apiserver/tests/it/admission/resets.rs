//! Writes that are admitted while the cluster is reset.

use kubewright_engine::verbs;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::support::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A webhook of validation takes five seconds, and is asked about config maps and namespaces.
async fn slow() -> Arc<Cluster> {
    let cluster = Cluster::start().await;
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps", "namespaces"]}]);
    cluster
        .hook(false, "slow", json!({"rules": rules, "timeoutSeconds": 30}), |_| {
            (json!({}), Duration::from_secs(5))
        })
        .await;
    Arc::new(cluster)
}

/// Sends a write, and resets the cluster while the webhook is asked.
async fn across_a_reset(cluster: &Arc<Cluster>, method: Method, path: &str, body: Value) -> (u16, Value) {
    let (writer, path) = (Arc::clone(cluster), path.to_owned());
    let write = tokio::spawn(async move { writer.send(method, &path, &body).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!write.is_finished(), "the webhook is asked");
    verbs::reset(cluster.engine()).await.expect("the store is well");
    let (code, body, _) = write.await.expect("no panic");
    (code, body)
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_was_admitted_before_a_reset_is_refused() {
    let cluster = slow().await;
    let (code, body) = across_a_reset(&cluster, Method::POST, MAPS, json!({"metadata": {"name": "a"}})).await;
    assert_eq!((code, &body["reason"]), (409, &json!("Conflict")));
    assert_eq!(
        body["message"],
        "Operation cannot be fulfilled on configmaps \"a\": the cluster was reset while the request was under way"
    );
    let (code, list, _) = cluster.send(Method::GET, MAPS, &Value::Null).await;
    assert_eq!((code, &list["items"]), (200, &json!([])));
    // The webhook is gone too.
    assert_eq!(cluster.create("a", "").await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_first_object_that_was_admitted_before_a_reset_is_refused() {
    let cluster = slow().await;
    let place = "/api/v1/namespaces/default";
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(across_a_reset(&cluster, Method::PATCH, place, label).await.0, 409);
    let (_, namespace, _) = cluster.send(Method::GET, place, &Value::Null).await;
    assert_eq!(namespace["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "default"}));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_was_admitted_before_a_reset_is_refused() {
    let cluster = slow().await;
    let place = "/api/v1/namespaces/kube-node-lease";
    assert_eq!(across_a_reset(&cluster, Method::DELETE, place, Value::Null).await.0, 409);
    let (_, namespace, _) = cluster.send(Method::GET, place, &Value::Null).await;
    assert_eq!(namespace["metadata"].get("deletionTimestamp"), None);
}
