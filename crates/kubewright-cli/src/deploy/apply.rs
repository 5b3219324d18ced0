//! Applies objects in their order, and waits for what has to be there before others are of use.

use std::time::Duration;

use anyhow::bail;
use kube::{ResourceExt, api::DynamicObject};
use tokio::time::{Instant, sleep};

use super::{
    MANAGER,
    plan::{MANAGED_BY, Manifest, Plan, Role},
};
use crate::access::{Objects, Others, refused};

/// How long between two looks.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Applies the manifests of a plan.
pub(super) struct Applier<'a> {
    pub(super) objects: &'a mut Objects,
    /// What becomes of fields that others manage.
    pub(super) others: Others,
    pub(super) deadline: Instant,
}

impl Applier<'_> {
    /// Applies all, and waits for kinds before what may be of them.
    pub(super) async fn apply(
        &mut self,
        plan: &Plan,
        report: &mut (dyn FnMut(&str) + Send),
    ) -> anyhow::Result<()> {
        let mut established = false;
        for manifest in plan.manifests() {
            if manifest.role != Role::Kind && !established {
                for kind in plan.of(Role::Kind) {
                    self.objects.established(&kind.object, self.deadline).await?;
                }
                established = true;
            }
            let what = match self.is_of_others(manifest).await? {
                true => "was there before, and is left as it is",
                false => self.objects.apply(&manifest.object, self.others).await?.word(),
            };
            report(&format!("{} {what}", manifest.called()));
        }
        Ok(())
    }

    /// Whether it is a namespace that we did not make: what else lives there must not go with the operator one day.
    async fn is_of_others(&mut self, manifest: &Manifest) -> anyhow::Result<bool> {
        if manifest.role != Role::Namespace {
            return Ok(false);
        }
        let found = self.objects.api(&manifest.object).await?.get_opt(&manifest.name).await;
        let found = found.map_err(|error| refused(&manifest.unread(), &error))?;
        Ok(found.is_some_and(|found| !is_ours(&found)))
    }
}

/// Waits until webhooks are trusted: the operator, or cert-manager, writes their authority into their configurations.
///
/// # Errors
/// When nobody has in time.
pub(super) async fn trusted(
    objects: &mut Objects,
    plan: &Plan,
    deadline: Instant,
    report: &mut (dyn FnMut(&str) + Send),
) -> anyhow::Result<()> {
    for manifest in plan.of(Role::Kind).chain(plan.of(Role::Webhook)) {
        let api = objects.api(&manifest.object).await?;
        let mut waited = false;
        loop {
            let found = api.get(&manifest.name).await.map_err(|error| refused(&manifest.unread(), &error))?;
            if is_trusted(&found) {
                break;
            }
            if Instant::now() >= deadline {
                bail!(
                    "{} has no caBundle, so the API server does not trust the operator's webhooks: it, or cert-manager, \
                     was to write one; look at `kubectl logs` of the operator",
                    manifest.called()
                );
            }
            if !waited {
                report(&format!("{} waits for its caBundle", manifest.called()));
                waited = true;
            }
            sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Whether all webhooks of a configuration, or the one that converts a kind, are reached through an authority that is known.
/// Policies call nobody.
fn is_trusted(object: &DynamicObject) -> bool {
    let webhooks = object.data["webhooks"].as_array().into_iter().flatten();
    let conversion = object.data.pointer("/spec/conversion/webhook");
    webhooks.chain(conversion).all(|webhook| {
        let client = &webhook["clientConfig"];
        client["service"].is_null() || client["caBundle"].as_str().is_some_and(|bundle| !bundle.is_empty())
    })
}

/// Whether we installed an object.
pub(super) fn is_ours(object: &DynamicObject) -> bool {
    let labelled = object.labels().get(MANAGED_BY).is_some_and(|value| value == MANAGER);
    let applied = object.managed_fields().iter().any(|fields| {
        fields.manager.as_deref() == Some(MANAGER) && fields.operation.as_deref() == Some("Apply")
    });
    labelled && applied
}
