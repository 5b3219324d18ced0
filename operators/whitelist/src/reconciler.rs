//! Observe, plan, act.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kubewright::{Context, Controller, Error, EventType, Key, Outcome, Reconciler, Written, rbac::Verb};

use crate::{
    WhiteList,
    desired::deployment_name,
    plan::{Step, plan},
};

/// How long until a Deployment that is somebody else's is looked at again: its deletion tells this operator nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The WhiteList controller: a WhiteList is reconciled when it or the Deployment that it controls changes.
#[must_use]
pub fn controller() -> Controller {
    Controller::new("whitelist", WhiteListReconciler)
        .for_kind::<WhiteList>()
        .owns::<Deployment>()
        .writes::<Deployment>([Verb::Create, Verb::Patch, Verb::Update])
        .writes_status::<WhiteList>()
}

/// Keeps the Deployment of each WhiteList as it is meant to be.
#[derive(Debug, Default)]
pub struct WhiteListReconciler;

impl Reconciler for WhiteListReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(whitelist) = ctx.get::<WhiteList>(key) else {
            return Ok(Outcome::Done); // its Deployment goes with it: the garbage collector's work
        };
        if whitelist.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        let child = key.sibling(deployment_name(&key.name));
        let found = ctx.get::<Deployment>(&child);
        let plan = plan(&whitelist, found.as_deref(), ctx.world().clock.now());

        let outcome = match &plan.step {
            Step::LeaveToItsOwner => Outcome::RequeueAfter(LOOK_AGAIN),
            _ => Outcome::Done,
        };
        act(ctx, &whitelist, &child, plan.step).await?;
        ctx.status(&*whitelist).set(|status| *status = plan.status).await?;
        Ok(outcome)
    }
}

/// Takes the step for the Deployment `child`, and tells of it.
async fn act(ctx: &Context, whitelist: &WhiteList, child: &Key, step: Step) -> Result<(), Error> {
    match step {
        Step::Leave | Step::LeaveToItsOwner => Ok(()),
        Step::Create(deployment) => {
            tracing::info!("Creating Deployment {child}");
            ctx.create(&*deployment).await?;
            let note = format!("Created Deployment {}", child.name);
            ctx.event(whitelist, EventType::Normal, "Created", &note);
            Ok(())
        }
        Step::Apply(deployment) => {
            if let Written::Updated { changed, .. } = ctx.apply(&*deployment).owned_by(whitelist).await? {
                tracing::info!("Applied Deployment {child}: {changed}");
                let note = format!("Restored Deployment {}: {changed}", child.name);
                ctx.event(whitelist, EventType::Normal, "Restored", &note);
            }
            Ok(())
        }
        Step::Restore { deployment, differences } => {
            let what = differences.join(", ");
            tracing::info!("Updating Deployment {child}: {what}");
            ctx.update(&*deployment).await?;
            let note = format!("Restored Deployment {}: {what}", child.name);
            ctx.event(whitelist, EventType::Normal, "Restored", &note);
            Ok(())
        }
    }
}
