//! A mutating webhook fills in what a user leaves out: the size of a Cup, and who ordered it. What the user says stays.
//! `docs/webhooks.md` explains it.

use kube::CustomResource;
use kubewright::{
    command::Operator,
    testing::Cluster,
    webhook::{Defaulter, Denied, Request, Webhook, Webhooks},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, JsonSchema, Clone, Debug, Default, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Cup", namespaced)]
struct CupSpec {
    millilitres: Option<u32>,
    ordered_by: Option<String>,
}

struct Defaults;

impl Defaulter<Cup> for Defaults {
    async fn apply_defaults(&self, request: &Request, mut cup: Cup) -> Result<Cup, Denied> {
        cup.spec.millilitres.get_or_insert(250);
        cup.spec.ordered_by.get_or_insert_with(|| request.user().to_owned());
        Ok(cup)
    }
}

fn operator() -> Operator {
    let webhooks = Webhooks::new("cup").add(Webhook::defaulting::<Cup>(Defaults));
    Operator::new("cup", "0.1.0").definition::<Cup>().webhooks(webhooks)
}

#[kubewright::test]
async fn what_is_left_out_is_filled_in(cluster: Cluster) {
    cluster.run(operator).await;
    let cup = cluster.create(&Cup::new("tea", CupSpec::default())).await;
    assert_eq!(cup.spec.millilitres, Some(250));
    assert_eq!(cup.spec.ordered_by.as_deref(), Some("kubernetes-admin"));
}

#[kubewright::test]
async fn what_the_user_says_stays(cluster: Cluster) {
    cluster.run(operator).await;
    let espresso = CupSpec { millilitres: Some(30), ordered_by: None };
    assert_eq!(cluster.create(&Cup::new("espresso", espresso)).await.spec.millilitres, Some(30));
}
