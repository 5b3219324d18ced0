//! Each Greeting gets a ConfigMap with its text: a kind, a reconciler, a controller, an operator, and a test.
//! `docs/first-operator.md` explains each part.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, command::Operator, testing::Cluster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
struct GreetingSpec {
    text: String,
}

struct Greetings;

impl Reconciler for Greetings {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(greeting) = ctx.get::<Greeting>(key) else { return Ok(Outcome::Done) };
        let map = ConfigMap {
            metadata: key.into(),
            data: Some([("text".to_owned(), greeting.spec.text.clone())].into()),
            ..ConfigMap::default()
        };
        ctx.apply(&map).owned_by(&*greeting).await?;
        Ok(Outcome::Done)
    }
}

fn operator() -> Operator {
    let controller = || Controller::new("greeting", Greetings).for_kind::<Greeting>().applies::<ConfigMap>();
    Operator::new("greeting", "0.1.0").definition::<Greeting>().controller(controller)
}

#[kubewright::test]
async fn the_config_map_says_what_the_greeting_says(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&Greeting::new("world", GreetingSpec { text: "hello".to_owned() })).await;
    cluster.settle().await;
    assert_eq!(cluster.get::<ConfigMap>("world").await.data.unwrap_or_default()["text"], "hello");

    cluster.patch::<Greeting>("world", json!({"spec": {"text": "good morning"}})).await;
    cluster.settle().await;
    assert_eq!(cluster.get::<ConfigMap>("world").await.data.unwrap_or_default()["text"], "good morning");
}
