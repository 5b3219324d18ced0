// SPDX-License-Identifier: MIT

//! What happens with each Deployment, which is Kubernetes' own.

use k8s_openapi::api::apps::v1::Deployment;
use kubewright::{Context, Controller, Error, Key, Outcome, Reconciler};

/// When to reconcile, and with which rights: it may read, and what else it needs is added here.
pub fn controller() -> Controller {
    Controller::new("deployment", DeploymentReconciler).for_kind::<Deployment>()
}

struct DeploymentReconciler;

impl Reconciler for DeploymentReconciler {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        // What is gone needs nothing.
        let Some(_object) = ctx.get::<Deployment>(key) else {
            return Ok(Outcome::Done);
        };
        // Here: look at it, and do what is to be done. A Deployment that this makes comes here, too.
        Ok(Outcome::Done)
    }
}
