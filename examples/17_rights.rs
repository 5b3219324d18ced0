//! An operator runs in a test as its own service account, with the rights that its controllers declare and no others. A right that is missing
//! fails the test and names the line to add; one that is never used is told. `docs/testing.md` explains it.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::CustomResource;
use kubewright::{
    Context, Controller, Error, Key, Outcome, Reconciler, command::Operator, rbac::Verb, testing::Cluster,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Note", namespaced)]
struct NoteSpec {}

struct Notes;

impl Reconciler for Notes {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(note) = ctx.get::<Note>(key) else { return Ok(Outcome::Done) };
        let metadata = ObjectMeta::from(key);
        ctx.apply(&ConfigMap { metadata, ..ConfigMap::default() }).owned_by(&*note).await?;
        Ok(Outcome::Done)
    }
}

fn controller() -> Controller {
    Controller::new("note", Notes).for_kind::<Note>().owns::<ConfigMap>()
}

fn operator(controller: fn() -> Controller) -> Operator {
    Operator::new("note", "0.1.0").definition::<Note>().controller(controller)
}

#[kubewright::test]
async fn the_rights_that_are_declared_are_those_that_are_used(cluster: Cluster) {
    let controller = || controller().writes::<ConfigMap>([Verb::Create, Verb::Patch]);
    let operator = cluster.run(operator(controller)).await;
    cluster.create(&Note::new("a", NoteSpec {})).await;
    cluster.settle().await;
    let rights = operator.rights();
    assert!(rights.is_clean(), "{rights}");
}

#[kubewright::test]
#[should_panic(expected = "these rights are missing")]
async fn a_missing_right_fails_the_test(cluster: Cluster) {
    cluster.run(operator(controller)).await;
    cluster.create(&Note::new("a", NoteSpec {})).await;
    cluster.settle().await;
}
