// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! What happens with each Captain.

use kubewright::conditions::NewCondition;
use kubewright::{Context, Controller, Error, ErrorPolicy, Key, Outcome, Reconciler};

use super::Captain;

/// When to reconcile, and with which rights.
pub fn controller() -> Controller {
    Controller::new("captain", CaptainReconciler)
        .for_kind::<Captain>()
        .writes_status::<Captain>()
        // An error that lasts is shown on the object: Ready is False with its reason, and there is an Event.
        .on_error(ErrorPolicy::default().sets_false("Ready"))
}

struct CaptainReconciler;

impl Reconciler for CaptainReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // What is gone needs nothing: what it owned goes with it.
        let Some(object) = ctx.get::<Captain>(key) else {
            return Ok(Outcome::Done);
        };
        // Here: look at what there is (ctx.get), make it so (ctx.apply), and tell of it (tracing::info!, ctx.event).

        let condition = NewCondition::new("Ready", true.into(), "Reconciled");
        // With the generation that it is about; asks for nothing when the status says so already.
        ctx.status(&*object).condition(condition).await?;
        Ok(Outcome::Done)
    }
}
