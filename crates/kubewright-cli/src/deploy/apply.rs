//! Applies objects, server-side.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, anyhow, bail};
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
    discovery::{self, Scope},
};
use tokio::time::{Instant, sleep};

use super::{
    MANAGER,
    plan::{MANAGED_BY, Plan, Role, Step},
};

/// How long between two looks.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// Applies the steps of a plan.
pub(super) struct Applier<'a> {
    pub(super) client: &'a Client,
    /// Whether fields that others manage are taken over.
    pub(super) force: bool,
    pub(super) deadline: Instant,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Applied {
    Created,
    Configured,
    Unchanged,
    /// It is there, and not ours.
    Left,
}

impl Applier<'_> {
    /// Applies all, and waits for kinds before what may be of them.
    pub(super) async fn apply(&self, plan: &Plan, told: &mut (dyn FnMut(&str) + Send)) -> anyhow::Result<()> {
        let mut kinds = BTreeMap::new();
        let mut established = false;
        for step in plan.steps() {
            if step.role != Role::Kind && !established {
                for kind in plan.of(Role::Kind) {
                    self.established(kind).await?;
                }
                established = true;
            }
            let api = api(self.client, step, &mut kinds).await?;
            let applied =
                self.one(&api, step).await.with_context(|| format!("cannot apply {}", step.told()))?;
            let what = match applied {
                Applied::Created => "created",
                Applied::Configured => "configured",
                Applied::Unchanged => "unchanged",
                Applied::Left => "was there before, and is left as it is",
            };
            told(&format!("{} {what}", step.told()));
        }
        Ok(())
    }

    async fn one(&self, api: &Api<DynamicObject>, step: &Step) -> anyhow::Result<Applied> {
        let before = api.get_opt(&step.name).await.map_err(|error| explained(&error))?;
        // What else lives in a namespace must not go with the operator one day.
        if step.role == Role::Namespace && before.as_ref().is_some_and(|found| !is_ours(found)) {
            return Ok(Applied::Left);
        }
        let parameters = PatchParams { force: self.force, ..PatchParams::apply(MANAGER) };
        let after = api.patch(&step.name, &parameters, &Patch::Apply(&step.object)).await;
        let after = after.map_err(|error| explained(&error))?;
        Ok(match before {
            None => Applied::Created,
            Some(before) if before.resource_version() == after.resource_version() => Applied::Unchanged,
            Some(_) => Applied::Configured,
        })
    }

    /// Waits until a kind is served.
    async fn established(&self, step: &Step) -> anyhow::Result<()> {
        let api = api(self.client, step, &mut BTreeMap::new()).await?;
        loop {
            let found = api.get(&step.name).await.with_context(|| format!("cannot read {}", step.told()))?;
            if condition(&found, "Established").is_some_and(|(status, _)| status == "True") {
                return Ok(());
            }
            if let Some(("False", message)) = condition(&found, "NamesAccepted") {
                bail!(
                    "{} cannot be served: {message}; remove the other kind of that name first",
                    step.told()
                );
            }
            if Instant::now() >= self.deadline {
                bail!("{} was not established in time", step.told());
            }
            sleep(PAUSE).await;
        }
    }
}

/// Waits until webhooks are trusted: the operator, or cert-manager, writes their authority into their configurations.
///
/// # Errors
/// When nobody has in time.
pub(super) async fn trusted(
    client: &Client,
    plan: &Plan,
    deadline: Instant,
    told: &mut (dyn FnMut(&str) + Send),
) -> anyhow::Result<()> {
    for step in plan.of(Role::Kind).chain(plan.of(Role::Webhook)) {
        let api = api(client, step, &mut BTreeMap::new()).await?;
        let mut waited = false;
        loop {
            let found = api.get(&step.name).await.with_context(|| format!("cannot read {}", step.told()))?;
            if is_trusted(&found) {
                break;
            }
            if Instant::now() >= deadline {
                bail!(
                    "{} has no caBundle, so the API server does not trust the operator's webhooks: it, or cert-manager, \
                     was to write one; look at `kubectl logs` of the operator",
                    step.told()
                );
            }
            if !waited {
                told(&format!("{} waits for its caBundle", step.told()));
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

/// The status and the message of a condition.
pub(super) fn condition<'a>(object: &'a DynamicObject, type_: &str) -> Option<(&'a str, &'a str)> {
    let conditions = object.data.pointer("/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == type_)?;
    Some((found["status"].as_str().unwrap_or_default(), found["message"].as_str().unwrap_or_default()))
}

/// Where objects like that of a step are; each kind is asked for once.
///
/// # Errors
/// When the cluster does not have the kind.
pub(super) async fn api(
    client: &Client,
    step: &Step,
    kinds: &mut BTreeMap<String, (ApiResource, Scope)>,
) -> anyhow::Result<Api<DynamicObject>> {
    let (resource, scope) = kind(client, &step.kind, kinds).await?;
    Ok(match scope {
        Scope::Namespaced if step.namespace.is_empty() => {
            Api::namespaced_with(client.clone(), "default", &resource)
        }
        Scope::Namespaced => Api::namespaced_with(client.clone(), &step.namespace, &resource),
        Scope::Cluster => Api::all_with(client.clone(), &resource),
    })
}

async fn kind(
    client: &Client,
    kind: &GroupVersionKind,
    kinds: &mut BTreeMap<String, (ApiResource, Scope)>,
) -> anyhow::Result<(ApiResource, Scope)> {
    let key = format!("{}/{}", kind.api_version(), kind.kind);
    if let Some(known) = kinds.get(&key) {
        return Ok(known.clone());
    }
    let found = discovery::pinned_kind(client, kind).await;
    let (resource, capabilities) =
        found.with_context(|| format!("the cluster has no kind {} in {}", kind.kind, kind.api_version()))?;
    let found = (resource, capabilities.scope);
    kinds.insert(key, found.clone());
    Ok(found)
}

/// A refusal, with what to do about it where we know.
fn explained(error: &kube::Error) -> anyhow::Error {
    let kube::Error::Api(status) = error else { return anyhow!("{error}") };
    let remedy = match status.code {
        401 => "; the kubeconfig's credentials are not valid (any more)",
        403 => "; ask an administrator of the cluster to deploy it, or for these rights",
        409 => "; --force-conflicts takes these fields over",
        _ => "",
    };
    anyhow!("{}{remedy}", status.message)
}
