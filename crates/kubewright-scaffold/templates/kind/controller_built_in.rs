//! What happens with each @Kind@, which is Kubernetes' own.

use k8s_openapi::@k8s_module@::@Kind@;
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler};

/// When to reconcile, and with which rights: it may read, and what else it needs is added here.
pub fn controller() -> Controller {
    Controller::new("@controller@", @Kind@Reconciler).for_kind::<@Kind@>()
}

struct @Kind@Reconciler;

impl Reconciler for @Kind@Reconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // What is gone needs nothing.
        let Some(_object) = ctx.get::<@Kind@>(key) else {
            return Ok(Outcome::Done);
        };
        // Here: look at it, and do what is to be done. A @Kind@ that this makes comes here, too.
        Ok(Outcome::Done)
    }
}
