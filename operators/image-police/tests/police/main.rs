//! The promises of the Container Image Police, in a whole cluster and in virtual time. `IP-` rows are those of the write-up that it
//! comes from; "Beyond" is what it promises besides.

mod deny;
mod faults;
mod rows;
mod safety;

use k8s_openapi::api::{apps::v1::Deployment, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams},
};
use kubewright::{Object, testing::Cluster};
use kubewright_image_police::{WhiteList, WhiteListStatus, manifests, operator};
use serde_json::{Value, json};

/// Runs the police, with the sample in `default`.
async fn with_sample(cluster: &Cluster) {
    cluster.run(operator).await;
    let sample: WhiteList = serde_saphyr::from_str(manifests::SAMPLE).expect("the sample is a WhiteList");
    cluster.create(&sample).await;
    cluster.settle().await;
}

/// Runs the police, with a list `a` that allows `nginx`, and what `spec` says besides.
async fn with_list(cluster: &Cluster, spec: Value) {
    cluster.run(operator).await;
    create(cluster, list("a", &spec)).await;
    cluster.settle().await;
}

/// Creates an object of any kind, in `default` if it names no namespace.
async fn try_create(cluster: &Cluster, object: Value) -> Result<DynamicObject, String> {
    let object: DynamicObject = kubewright::object::from_value(object).expect("an object");
    let types = object.types.as_ref().expect("a kind");
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types).expect("a kind"));
    let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
    let api: Api<DynamicObject> = match types.kind.as_str() {
        "Namespace" | "ClusterWhiteList" => Api::all_with(cluster.client(), &kind),
        _ => Api::namespaced_with(cluster.client(), &namespace, &kind),
    };
    match api.create(&PostParams::default(), &object).await {
        Ok(created) => Ok(created),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(other) => panic!("{other}"),
    }
}

async fn create(cluster: &Cluster, object: Value) -> DynamicObject {
    try_create(cluster, object).await.expect("it is taken")
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

/// A list that allows `nginx`, and what `spec` says besides.
fn list(name: &str, spec: &Value) -> Value {
    let mut all = json!({"images": [{"name": "nginx", "tags": ["latest"]}]});
    for (field, value) in spec.as_object().expect("fields") {
        all[field] = value.clone();
    }
    json!({
        "apiVersion": "police.foo.bar/v1beta1", "kind": "WhiteList", "metadata": {"name": name}, "spec": all,
    })
}

async fn status(cluster: &Cluster, name: &str) -> WhiteListStatus {
    cluster.get::<WhiteList>(name).await.status.unwrap_or_default()
}

/// Status and reason of a condition of a list.
async fn condition(cluster: &Cluster, name: &str, type_: &str) -> String {
    let found = status(cluster, name).await.conditions;
    let found = found.into_iter().find(|condition| condition.type_ == type_);
    found.map(|condition| format!("{} {}", condition.status, condition.reason)).unwrap_or_default()
}

async fn names<K: Object>(cluster: &Cluster) -> Vec<String> {
    cluster.list::<K>().await.iter().map(ResourceExt::name_any).collect()
}

async fn deployments(cluster: &Cluster) -> Vec<String> {
    names::<Deployment>(cluster).await
}

/// The notes of the Events of this reason, in all namespaces, sorted.
async fn notes(cluster: &Cluster, reason: &str) -> Vec<String> {
    let events =
        Api::<Event>::all(cluster.client()).list(&ListParams::default()).await.expect("a list").items;
    let events = events.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
    let mut notes: Vec<String> = events.filter_map(|event| event.note).collect();
    notes.sort();
    notes
}
