// SPDX-License-Identifier: MIT

//! What happens with each Postgresql, which is somebody else's.

use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler};

use super::Postgresql;

/// When to reconcile, and with which rights: it may read, and what else it needs is added here.
pub fn controller() -> Controller {
    Controller::new("postgresql", PostgresqlReconciler).for_kind::<Postgresql>()
}

struct PostgresqlReconciler;

impl Reconciler for PostgresqlReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // What is gone needs nothing.
        let Some(_object) = ctx.get::<Postgresql>(key) else {
            return Ok(Outcome::Done);
        };
        // Here: look at it, and do what is to be done.
        Ok(Outcome::Done)
    }
}
