//! What the tests of the operator have in common.

use std::sync::Arc;

use k8s_openapi::api::{apps::v1::Deployment, events::v1::Event};
use kube::{Resource, ResourceExt};
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, command::Operator, testing::Cluster};
use kubewright_whitelist::{WhiteList, WhiteListReconciler, WhiteListSpec, controller, operator};
use parking_lot::Mutex;
use serde_json::json;

/// The Deployment of the sample.
pub(crate) const NAME: &str = "whitelist-sample-deployment";

/// A WhiteList with the sample's spec.
pub(crate) fn whitelist(name: &str) -> WhiteList {
    WhiteList::new(name, WhiteListSpec { foo: Some("bar".to_owned()), ..WhiteListSpec::default() })
}

/// Runs the operator, with the sample in `default`.
pub(crate) async fn with_sample(cluster: &Cluster) {
    cluster.run(operator).await;
    cluster.create(&whitelist("whitelist-sample")).await;
    cluster.settle().await;
    assert!(is_ready(cluster, "whitelist-sample").await);
}

pub(crate) async fn is_ready(cluster: &Cluster, name: &str) -> bool {
    cluster.get::<WhiteList>(name).await.status.is_some_and(|status| status.ready)
}

/// The condition `type_` of the sample: its status and reason.
pub(crate) async fn condition(cluster: &Cluster, type_: &str) -> String {
    let found = cluster.condition::<WhiteList>("whitelist-sample", type_).await;
    found.map(|found| format!("{} {}", found.status, found.reason)).unwrap_or_default()
}

/// The notes of the Events with this reason about the sample.
pub(crate) async fn notes(cluster: &Cluster, reason: &str) -> Vec<String> {
    let events: Vec<Event> = cluster.events_of(&cluster.get::<WhiteList>("whitelist-sample").await).await;
    let events = events.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
    events.filter_map(|event| event.note).collect()
}

/// How many pods the sample's Deployment is to have.
pub(crate) async fn replicas(cluster: &Cluster) -> Option<i32> {
    cluster.get::<Deployment>(NAME).await.spec.and_then(|spec| spec.replicas)
}

/// The images of a Deployment's containers.
pub(crate) fn images(deployment: &Deployment) -> Vec<String> {
    let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()).expect("a pod");
    pod.containers.iter().filter_map(|container| container.image.clone()).collect()
}

pub(crate) fn uid<K: Resource>(object: &K) -> String {
    object.uid().expect("a stored object")
}

/// A Deployment of nobody, of the sample's Deployment's name.
pub(crate) fn foreign() -> Deployment {
    let labels = json!({"app": "foreign"});
    let pod = json!({"containers": [{"name": "foreign", "image": "foreign"}]});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let spec = json!({"selector": {"matchLabels": labels}, "template": template});
    kubewright::object::from_value(json!({"metadata": {"name": NAME}, "spec": spec})).expect("a Deployment")
}

/// Which WhiteLists were reconciled, in order.
pub(crate) type Reconciled = Arc<Mutex<Vec<Key>>>;

/// The operator with somebody who looks over its shoulder.
pub(crate) fn noting(reconciled: &Reconciled) -> Operator {
    let reconciled = Arc::clone(reconciled);
    let noting = move || {
        let noting = Noting(WhiteListReconciler, Arc::clone(&reconciled));
        Controller::new("whitelist", noting).for_kind::<WhiteList>().owns::<Deployment>()
    };
    Operator::new("whitelist", "0").definition::<WhiteList>().controller(noting).may(controller().rights())
}

/// Writes down which keys are reconciled.
struct Noting(WhiteListReconciler, Reconciled);

impl Reconciler for Noting {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        self.1.lock().push(key.clone());
        self.0.reconcile(ctx, key).await
    }
}
