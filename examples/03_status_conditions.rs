//! A Shift says by a condition whether enough people are on it, and by `observedGeneration` which spec that is about.
//! `docs/patterns.md` explains it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use kubewright::conditions::NewCondition;
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, command::Operator, testing::Cluster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Shift", namespaced, status = "ShiftStatus")]
struct ShiftSpec {
    people: u32,
}

#[derive(JsonSchema, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ShiftStatus {
    observed_generation: Option<i64>,
    conditions: Vec<Condition>,
}

struct Shifts;

impl Reconciler for Shifts {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(shift) = ctx.get::<Shift>(key) else { return Ok(Outcome::Done) };
        let people = shift.spec.people;
        let (is_ready, reason) = if people >= 2 { (true, "Staffed") } else { (false, "TooFewPeople") };
        let ready = NewCondition::new("Ready", is_ready.into(), reason).message(format!("{people} of 2"));
        ctx.status(&*shift).condition(ready).await?;
        Ok(Outcome::Done)
    }
}

fn operator() -> Operator {
    Operator::new("shift", "0.1.0")
        .definition::<Shift>()
        .controller(|| Controller::new("shift", Shifts).for_kind::<Shift>().writes_status::<Shift>())
}

#[kubewright::test]
async fn the_condition_is_about_the_newest_spec(cluster: Cluster) {
    cluster.run(operator).await;
    cluster.create(&Shift::new("night", ShiftSpec { people: 0 })).await;
    for (people, reason) in [(1, "TooFewPeople"), (2, "Staffed")] {
        let shift = cluster.patch::<Shift>("night", json!({"spec": {"people": people}})).await;
        cluster.settle().await;
        let ready = cluster.condition::<Shift>("night", "Ready").await.expect("a condition");
        assert_eq!((&*ready.reason, ready.observed_generation), (reason, shift.metadata.generation));
        let status = cluster.get::<Shift>("night").await.status.expect("a status");
        assert_eq!(status.observed_generation, shift.metadata.generation);
    }
}
