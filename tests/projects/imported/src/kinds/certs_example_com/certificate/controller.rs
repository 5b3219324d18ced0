// SPDX-License-Identifier: MIT

//! What happens with each Certificate, which is somebody else's.

use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler};

use super::Certificate;

/// When to reconcile, and with which rights: it may read, and what else it needs is added here.
pub fn controller() -> Controller {
    Controller::new("certificate", CertificateReconciler).for_kind::<Certificate>()
}

struct CertificateReconciler;

impl Reconciler for CertificateReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // What is gone needs nothing.
        let Some(_object) = ctx.get::<Certificate>(key) else {
            return Ok(Outcome::Done);
        };
        // Here: look at it, and do what is to be done.
        Ok(Outcome::Done)
    }
}
