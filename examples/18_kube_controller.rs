//! A reconcile function and an error policy that were written for the `Controller` of kube-rs, as they are, on the caches, the queue and the
//! retries of this SDK: a program moves one controller after the other. `docs/coming-from.md` explains it.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, CustomResource, Resource, ResourceExt, runtime::controller::Action};
use kubewright::{Controller, Manager, command::Operator, kube_rs, rbac::Verb, testing::Cluster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Memo", namespaced)]
struct MemoSpec {
    text: String,
}

async fn reconcile(memo: Arc<Memo>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let maps = Api::<ConfigMap>::namespaced((*client).clone(), &memo.namespace().unwrap_or_default());
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": memo.name_any(), "ownerReferences": [memo.controller_owner_ref(&())]},
        "data": {"text": memo.spec.text},
    });
    maps.patch(&memo.name_any(), &PatchParams::apply("memo").force(), &Patch::Apply(map)).await?;
    Ok(Action::await_change())
}

fn error_policy(_: Arc<Memo>, _: &kube::Error, _: Arc<Client>) -> Action {
    Action::requeue(Duration::from_secs(5))
}

fn port(manager: &Manager) -> Controller {
    let reconciler = kube_rs::reconciler(reconcile, error_policy, Arc::new(manager.client().clone()));
    let controller = Controller::new("memo", reconciler).for_kind::<Memo>().owns::<ConfigMap>();
    controller.all_own_events().writes::<ConfigMap>([Verb::Create, Verb::Patch])
}

#[kubewright::test]
async fn functions_of_kube_put_right_what_somebody_breaks(cluster: Cluster) {
    cluster.run(Operator::new("memo", "0.1.0").definition::<Memo>().controller_in(port)).await;
    cluster.create(&Memo::new("a", MemoSpec { text: "hello".to_owned() })).await;
    cluster.settle().await;
    cluster.patch::<ConfigMap>("a", json!({"data": {"text": "broken"}})).await;
    cluster.settle().await;
    assert_eq!(cluster.get::<ConfigMap>("a").await.data.unwrap_or_default()["text"], "hello");
}
