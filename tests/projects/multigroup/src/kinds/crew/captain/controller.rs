// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! What happens with each Captain.

use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler, rbac::Verb};

use super::{Captain, CaptainStatus};

/// When to reconcile, and with which rights.
pub fn controller() -> Controller {
    Controller::new("captain", CaptainReconciler)
        .for_kind::<Captain>()
        .writes_subresource::<Captain>("status", [Verb::Patch])
}

struct CaptainReconciler;

impl Reconciler for CaptainReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // What is gone needs nothing: what it owned goes with it.
        let Some(object) = ctx.get::<Captain>(key) else {
            return Ok(Outcome::Done);
        };
        // Here: look at what there is (ctx.get), and make it so (ctx.ensure).

        let mut object = (*object).clone();
        object.status = Some(CaptainStatus { ready: true });
        ctx.ensure_status(&object).await?;
        Ok(Outcome::Done)
    }
}
