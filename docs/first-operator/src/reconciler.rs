use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kubewright::{Context, Controller, Desired, Error, Key, Outcome, Reconciler};

use crate::{
    plan::{Plan, plan},
    types::Website,
};

/// Keeps each website as it is wanted.
struct Websites;

impl Reconciler for Websites {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // From the cache: no request. What is gone needs nothing: what it owned goes with it.
        let Some(website) = ctx.get::<Website>(key) else { return Ok(Outcome::Done) };

        // Creates what is missing, puts right what differs, deletes what the plan no longer has; when all is so, it asks for nothing.
        let Plan { page, servers } = plan(&website);
        ctx.apply_all(&*website, Desired::new().with(page).with(servers)).await?;

        let servers = ctx.get::<Deployment>(key);
        let status = servers.as_ref().and_then(|servers| servers.status.as_ref());
        let ready = status.and_then(|status| status.ready_replicas).unwrap_or(0);
        ctx.status(&*website).set(|status| status.ready = ready).await?;
        Ok(Outcome::Done)
    }
}

/// When to reconcile, and with which rights.
pub fn controller() -> Controller {
    Controller::new("website", Websites)
        .for_kind::<Website>()
        .applies::<ConfigMap>()
        .applies::<Deployment>()
        .writes_status::<Website>()
}
