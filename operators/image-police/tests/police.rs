//! The promises of the Container Image Police, in a whole cluster and in virtual time. `IP-` rows are those of the write-up that it
//! comes from; "Beyond" is what it promises besides.

mod deny;
mod lab;
mod rows;
mod safety;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kubewright_image_police::{WhiteList, WhiteListStatus, manifests, operator};
use lab::Lab;
use serde_json::{Value, json};

/// A cluster with the police, and the sample in `default`.
async fn with_sample() -> Lab {
    let lab = Lab::start(operator).await;
    lab.apply(manifests::SAMPLE).await;
    lab.settle().await;
    lab
}

/// As `kubectl create deployment NAME --image=IMAGE`.
fn deployment(name: &str, image: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(image)},
        },
    })
}

/// As `kubectl run NAME --image=IMAGE`.
fn pod(name: &str, image: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod_spec(image)})
}

fn pod_spec(image: &str) -> Value {
    json!({"containers": [{"name": "main", "image": image}]})
}

fn in_namespace(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = namespace.into();
    object
}

/// A list that allows `nginx` and what `spec` says besides.
fn list(name: &str, spec: &Value) -> Value {
    let mut all = json!({"images": [{"name": "nginx", "tags": ["latest"]}]});
    for (field, value) in spec.as_object().expect("fields") {
        all[field] = value.clone();
    }
    json!({
        "apiVersion": "police.foo.bar/v1beta1", "kind": "WhiteList", "metadata": {"name": name}, "spec": all,
    })
}

async fn status(lab: &Lab, name: &str) -> WhiteListStatus {
    let lists: Api<WhiteList> = lab.api();
    lists.get(name).await.expect("a list").status.unwrap_or_default()
}

/// Status and reason of a condition of a list.
async fn condition(lab: &Lab, name: &str, type_: &str) -> (String, String) {
    let found = status(lab, name).await.conditions.into_iter().find(|condition| condition.type_ == type_);
    found.map(|condition| (condition.status, condition.reason)).unwrap_or_default()
}

async fn deployments(lab: &Lab) -> Vec<String> {
    lab::names(&lab.api::<Deployment>()).await
}
