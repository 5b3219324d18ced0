//! A Reminder is due at a time of which no event tells: the reconciler asks to be called again then, and asks the clock of its context what
//! time it is. The test lets a day pass, which takes no time. `docs/testing.md` explains the clock.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, command::Operator, testing::Cluster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "example.com", version = "v1", kind = "Reminder", namespaced, status = "ReminderStatus")]
struct ReminderSpec {
    at: Time,
}

#[derive(JsonSchema, Clone, Debug, Default, Serialize, Deserialize)]
struct ReminderStatus {
    due: bool,
}

struct Reminders;

impl Reconciler for Reminders {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(reminder) = ctx.get::<Reminder>(key) else { return Ok(Outcome::Done) };
        let left = reminder.spec.at.0.duration_since(ctx.world().clock.now());
        ctx.status(&*reminder).set(|status| status.due = !left.is_positive()).await?;
        Ok(if left.is_positive() { Outcome::RequeueAfter(left.unsigned_abs()) } else { Outcome::Done })
    }
}

fn operator() -> Operator {
    Operator::new("reminder", "0.1.0").definition::<Reminder>().controller(|| {
        Controller::new("reminder", Reminders).for_kind::<Reminder>().writes_status::<Reminder>()
    })
}

#[kubewright::test]
async fn a_reminder_is_due_at_its_time_and_not_before(cluster: Cluster) {
    const DAY: Duration = Duration::from_hours(24);
    cluster.run(operator).await;
    let is_due = async || cluster.get::<Reminder>("birthday").await.status.is_some_and(|status| status.due);
    let at = Time(cluster.world().clock.now() + DAY);
    cluster.create(&Reminder::new("birthday", ReminderSpec { at })).await;
    cluster.advance(DAY - Duration::from_secs(1)).await;
    assert!(!is_due().await);
    cluster.advance(Duration::from_secs(1)).await;
    assert!(is_due().await);
}
