use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, rbac::Verb};

use crate::{
    plan::plan,
    types::{Website, WebsiteStatus},
};

/// Keeps each website as it is wanted.
struct Websites;

impl Reconciler for Websites {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // From the cache: no request. What is gone needs nothing: what it owned goes with it.
        let Some(website) = ctx.get::<Website>(key) else { return Ok(Outcome::Done) };
        let plan = plan(&website);

        // Creates it, or puts right what differs; writes nothing when nothing does.
        ctx.ensure(&plan.page, Some(&*website)).await?;
        let servers = ctx.ensure(&plan.servers, Some(&*website)).await?;

        let status = servers.object().status.as_ref();
        let ready = status.and_then(|status| status.ready_replicas).unwrap_or(0);
        let mut website = (*website).clone();
        website.status = Some(WebsiteStatus { ready });
        ctx.ensure_status(&website).await?;
        Ok(Outcome::Done)
    }
}

/// When to reconcile, and with which rights.
pub fn controller() -> Controller {
    Controller::new("website", Websites)
        .for_kind::<Website>()
        .owns::<ConfigMap>()
        .owns::<Deployment>()
        .writes::<ConfigMap>([Verb::Create, Verb::Patch])
        .writes::<Deployment>([Verb::Create, Verb::Patch])
        .writes_subresource::<Website>("status", [Verb::Patch])
}
