//! What happens with each @Kind@.

use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, rbac::Verb};

use super::{@Kind@, @Kind@Status};

/// When to reconcile, and with which rights.
pub fn controller() -> Controller {
    Controller::new("@controller@", @Kind@Reconciler)
        .for_kind::<@Kind@>()
        .writes_subresource::<@Kind@>("status", [Verb::Patch])
}

struct @Kind@Reconciler;

impl Reconciler for @Kind@Reconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // What is gone needs nothing: what it owned goes with it.
        let Some(object) = ctx.get::<@Kind@>(key) else {
            return Ok(Outcome::Done);
        };
        // Here: look at what there is (ctx.get), and make it so (ctx.ensure).

        let mut object = (*object).clone();
        object.status = Some(@Kind@Status { ready: true });
        ctx.ensure_status(&object).await?;
        Ok(Outcome::Done)
    }
}
