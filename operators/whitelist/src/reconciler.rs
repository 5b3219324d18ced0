//! Observe, plan, act.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::apps::v1::Deployment;
use kubewright::{Context, Controller, Error, EventType, Key, Outcome, Reconciler, SpamFilter, rbac::Verb};
use serde_json::json;

use crate::{
    WhiteList, WhiteListStatus,
    desired::deployment_name,
    plan::{Step, plan},
};

/// How long until a Deployment that is somebody else's is looked at again: its deletion tells this operator nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The WhiteList controller: a WhiteList is reconciled when it or the Deployment that it controls changes.
#[must_use]
pub fn controller() -> Controller {
    let reconciler = WhiteListReconciler::default();
    Controller::new("whitelist", reconciler)
        .for_kind::<WhiteList>()
        .owns::<Deployment>()
        .writes::<Deployment>([Verb::Create, Verb::Patch, Verb::Update])
        .writes_subresource::<WhiteList>("status", [Verb::Patch])
}

/// Keeps the Deployment of each WhiteList as it is meant to be.
#[derive(Debug, Default)]
pub struct WhiteListReconciler {
    /// So that a fight with another writer does not flood the cluster with Events.
    events: Mutex<SpamFilter<Key>>,
}

impl Reconciler for WhiteListReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(whitelist) = ctx.get::<WhiteList>(key) else {
            self.spam_filter(|events| events.forget(key));
            return Ok(Outcome::Done); // its Deployment goes with it: the garbage collector's work
        };
        if whitelist.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        let child = Key { namespace: key.namespace.clone(), name: deployment_name(&key.name) };
        let found = ctx.get::<Deployment>(&child);
        let plan = plan(&whitelist, found.as_deref(), ctx.world().clock.now());

        let outcome = match &plan.step {
            Step::LeaveToItsOwner => Outcome::RequeueAfter(LOOK_AGAIN),
            _ => Outcome::Done,
        };
        self.act(ctx, &whitelist, &child, plan.step).await?;
        report(ctx, key, &whitelist, &plan.status).await?;
        Ok(outcome)
    }
}

impl WhiteListReconciler {
    /// Takes the step for the Deployment `child`, and tells of it.
    async fn act(&self, ctx: &Context, whitelist: &WhiteList, child: &Key, step: Step) -> Result<(), Error> {
        match step {
            Step::Leave | Step::LeaveToItsOwner => Ok(()),
            Step::Create(deployment) => {
                tracing::info!("Creating Deployment {child}");
                ctx.create(&*deployment).await?;
                self.record_events(ctx, whitelist, "Created", format!("Created Deployment {}", child.name))
                    .await;
                Ok(())
            }
            Step::Apply { deployment, differences } => {
                let what = differences.join(", ");
                tracing::info!("Applying Deployment {child}: {what}");
                ctx.apply(&*deployment).owned_by(whitelist).forced().await?;
                self.record_events(
                    ctx,
                    whitelist,
                    "Restored",
                    format!("Restored Deployment {}: {what}", child.name),
                )
                .await;
                Ok(())
            }
            Step::Restore { deployment, differences } => {
                let what = differences.join(", ");
                tracing::info!("Updating Deployment {child}: {what}");
                ctx.update(&*deployment).await?;
                self.record_events(
                    ctx,
                    whitelist,
                    "Restored",
                    format!("Restored Deployment {}: {what}", child.name),
                )
                .await;
                Ok(())
            }
        }
    }

    /// Records an Event, unless there were too many.
    async fn record_events(&self, ctx: &Context, whitelist: &WhiteList, reason: &str, note: String) {
        let (key, now) = (Key::of(whitelist), ctx.world().clock.now());
        if self.spam_filter(|events| events.take(key, now)) {
            ctx.event(whitelist, EventType::Normal, reason, &note).await;
        }
    }

    fn spam_filter<T>(&self, with: impl FnOnce(&mut SpamFilter<Key>) -> T) -> T {
        with(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Writes the status if it is another than the one there is.
async fn report(
    ctx: &Context,
    key: &Key,
    whitelist: &WhiteList,
    status: &WhiteListStatus,
) -> Result<(), Error> {
    if whitelist.status.as_ref() != Some(status) {
        ctx.patch_status::<WhiteList>(key, json!({ "status": status })).await?;
    }
    Ok(())
}
