//! Each Login gets a password, made once. The test runs under ten seeds: conflicts, lost answers, old caches, crashes between two writes, and
//! more. None of that may change a password. `docs/faults.md` explains it.

use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::CustomResource;
use kubewright::{
    Context, Controller, Error, Key, Outcome, Reconciler, command::Operator, owner, rbac::Verb,
    testing::Cluster,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Login", namespaced)]
struct LoginSpec {}

struct Logins;

impl Reconciler for Logins {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(login) = ctx.get::<Login>(key) else { return Ok(Outcome::Done) };
        if ctx.get::<Secret>(key).is_some() {
            return Ok(Outcome::Done);
        }
        let metadata =
            ObjectMeta { owner_references: Some(vec![owner::controller_reference(&*login)]), ..key.into() };
        let password = [("password".to_owned(), ctx.world().dice.uid())];
        let secret = Secret { metadata, string_data: Some(password.into()), ..Secret::default() };
        // Where the cache is old and the Secret is there, this fails, and the next try finds it.
        ctx.create(&secret).await?;
        Ok(Outcome::Done)
    }
}

fn operator() -> Operator {
    Operator::new("login", "0.1.0").definition::<Login>().controller(|| {
        Controller::new("login", Logins).for_kind::<Login>().owns::<Secret>().writes::<Secret>([Verb::Create])
    })
}

#[kubewright::test(seeds = 10, faults)]
async fn a_password_never_changes_whatever_goes_wrong(cluster: Cluster) {
    let operator = cluster.run(operator).await;
    cluster.create(&Login::new("ada", LoginSpec {})).await;
    cluster.settle().await;
    let first = cluster.get::<Secret>("ada").await.data;
    assert!(first.as_ref().is_some_and(|data| data.contains_key("password")));
    operator.restart().await;
    cluster.settle().await;
    assert_eq!(cluster.get::<Secret>("ada").await.data, first);
}
