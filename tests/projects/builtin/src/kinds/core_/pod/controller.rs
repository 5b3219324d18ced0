// SPDX-License-Identifier: MIT

//! What happens with each Pod, which is Kubernetes' own.

use k8s_openapi::api::core::v1::Pod;
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler};

/// When to reconcile, and with which rights: it may read, and what else it needs is added here.
pub fn controller() -> Controller {
    Controller::new("pod", PodReconciler).for_kind::<Pod>()
}

struct PodReconciler;

impl Reconciler for PodReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // What is gone needs nothing.
        let Some(_object) = ctx.get::<Pod>(key) else {
            return Ok(Outcome::Done);
        };
        // Here: look at it, and do what is to be done. A Pod that this makes comes here, too.
        Ok(Outcome::Done)
    }
}
