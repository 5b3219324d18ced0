//! Observe, plan, act.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::{DeleteParams, Preconditions},
};
use kubewright::{Context, Controller, Error, EventType, Key, Outcome, Reconciler, owner, rbac::Verb};

use crate::{
    AppService,
    check::Checks,
    desired,
    plan::{Observed, Step, plan},
};

/// How long until a pod that is somebody else's is looked at again: its deletion tells this operator nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The AppService controller, which asks pods by `checks`.
#[must_use]
pub fn controller(checks: Checks) -> Controller {
    let answers = checks.keys();
    Controller::new("app-service", AppServiceReconciler { checks })
        .for_kind::<AppService>()
        .owns::<Pod>()
        .source(answers)
        .writes::<Pod>([Verb::Create, Verb::Delete])
        .writes_subresource::<Pod>("exec", [Verb::Create, Verb::Get])
        .writes_status::<AppService>()
}

/// Keeps the pods of each AppService as they are meant to be.
#[derive(Debug)]
pub struct AppServiceReconciler {
    checks: Checks,
}

impl Reconciler for AppServiceReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let Some(app) = ctx.get::<AppService>(key) else {
            self.checks.forget(key);
            return Ok(Outcome::Done); // its pods go with it: the garbage collector's work
        };
        if app.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::Done);
        }
        tracing::debug!(%key, "Reconciling AppService");
        let observed = self.observe(ctx, key, app);
        let plan = plan(&observed)?;
        match plan.ask {
            Some(question) => self.checks.observe(key, question),
            None => self.checks.forget(key),
        }
        for step in plan.steps {
            act(ctx, &observed.app, step).await?;
        }
        let conflict = (plan.status.phase == "Conflict").then(|| observed.taken.join(", "));
        let was = observed.app.status.as_ref().map(|status| status.phase.as_str());
        if let (Some(names), true) = (&conflict, was != Some("Conflict")) {
            let note = format!("Pod {names} is not this AppService's: it is left alone");
            ctx.event(&*observed.app, EventType::Warning, "Conflict", &note);
        }
        ctx.status(&*observed.app).set(|status| *status = plan.status).await?;
        Ok(if conflict.is_some() { Outcome::RequeueAfter(LOOK_AGAIN) } else { Outcome::Done })
    }
}

impl AppServiceReconciler {
    fn observe(&self, ctx: &Context, key: &Key, app: Arc<AppService>) -> Observed {
        let uid = app.uid().unwrap_or_default();
        let owned = ctx.owned_by::<Pod>(&uid).into_iter();
        let pods = owned.filter(|pod| owner::is_controlled_by(&**pod, &*app)).collect();
        let is_taken = |name: &String| {
            let pod = key.sibling(name);
            ctx.get::<Pod>(&pod).is_some_and(|pod| !owner::is_controlled_by(&*pod, &*app))
        };
        let taken = desired::names(&app).into_iter().filter(is_taken).collect();
        Observed { pods, taken, report: self.checks.report(key), now: ctx.world().clock.now(), app }
    }
}

/// Takes a step, and tells of it. That a pod was made in the meantime, or is gone, or is another, is seen by its event.
async fn act(ctx: &Context, app: &AppService, step: Step) -> Result<(), Error> {
    let done = match step {
        Step::Create(pod) => {
            let key = Key::of(&*pod);
            tracing::info!(Pod.Namespace = key.namespace, Pod.Name = key.name, "Creating a new Pod");
            ctx.create(&*pod).await.map(|_| ("Created", format!("Created Pod {}", key.name)))
        }
        Step::Delete { pod, why } => {
            let key = Key::of(&*pod);
            let preconditions = Preconditions { uid: pod.uid(), resource_version: None };
            let parameters = DeleteParams::default().preconditions(preconditions);
            ctx.delete::<Pod>(&key, parameters)
                .await
                .map(|_| ("Deleted", format!("Deleted Pod {}: {why}", key.name)))
        }
    };
    match done {
        Ok((reason, note)) => {
            ctx.event(app, EventType::Normal, reason, &note);
            Ok(())
        }
        Err(error) => Err(error),
    }
}
