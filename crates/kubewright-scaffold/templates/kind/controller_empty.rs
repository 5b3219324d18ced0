//! What happens with each @Kind@.

use kubewright::conditions::NewCondition;
use kubewright::{Context, Controller, Error, ErrorPolicy, Key, Outcome, Reconciler};

use super::@Kind@;

/// When to reconcile, and with which rights.
pub fn controller() -> Controller {
    Controller::new("@controller@", @Kind@Reconciler)
        .for_kind::<@Kind@>()
        .writes_status::<@Kind@>()
        // An error that lasts is shown on the object: Ready is False with its reason, and there is an Event.
        .on_error(ErrorPolicy::default().sets_false("Ready"))
}

struct @Kind@Reconciler;

impl Reconciler for @Kind@Reconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // What is gone needs nothing: what it owned goes with it.
        let Some(object) = ctx.get::<@Kind@>(key) else {
            return Ok(Outcome::Done);
        };
        // Here: look at what there is (ctx.get), make it so (ctx.apply), and tell of it (tracing::info!, ctx.event).

        let condition = NewCondition::new("Ready", true.into(), "Reconciled");
        // With the generation that it is about; asks for nothing when the status says so already.
        ctx.status(&*object).condition(condition).await?;
        Ok(Outcome::Done)
    }
}
