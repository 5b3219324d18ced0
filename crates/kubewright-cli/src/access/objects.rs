//! Objects of a cluster, of whatever kinds: where they are, and how they come to be as they should.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, anyhow, bail};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
    discovery::{self, Scope},
};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{MANAGER, refused};

/// How long between two looks at a definition.
const PAUSE: Duration = Duration::from_millis(100);

/// The objects of a cluster. Each kind is asked for once.
pub(crate) struct Objects {
    client: Client,
    kinds: BTreeMap<String, (ApiResource, Scope)>,
}

/// What becomes of fields that others manage and we set otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// They are ours then.
    TakenOver,
    /// They stay, and the whole is refused.
    Respected,
}

/// What became of an object that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    Created,
    Configured,
    Unchanged,
}

impl Applied {
    /// As kubectl says it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
        }
    }
}

impl Objects {
    /// Those that a client sees. Nothing is asked yet.
    pub(crate) fn new(client: &Client) -> Self {
        Self { client: client.clone(), kinds: BTreeMap::new() }
    }

    /// Who asks.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Where an object is, or is to be: in `default` where it is to be in a namespace and says none.
    ///
    /// # Errors
    /// When it says no kind, or one that the cluster does not have.
    pub(crate) async fn api(&mut self, object: &DynamicObject) -> anyhow::Result<Api<DynamicObject>> {
        let types = object.types.as_ref().context("an object has no kind")?;
        let (resource, scope) = self.kind(&GroupVersionKind::try_from(types)?).await?;
        let namespace = object.metadata.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        Ok(match scope {
            Scope::Namespaced => {
                Api::namespaced_with(self.client.clone(), namespace.unwrap_or("default"), &resource)
            }
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
        })
    }

    async fn kind(&mut self, kind: &GroupVersionKind) -> anyhow::Result<(ApiResource, Scope)> {
        let key = format!("{}/{}", kind.api_version(), kind.kind);
        if let Some(known) = self.kinds.get(&key) {
            return Ok(known.clone());
        }
        let name = format!("kind {} in {}", kind.kind, kind.api_version());
        let found = discovery::pinned_kind(&self.client, kind).await;
        let (resource, capabilities) = found.map_err(|error| match &error {
            kube::Error::Discovery(_) => anyhow!("the cluster has no {name}"),
            kube::Error::Api(status) if status.code == 404 => anyhow!("the cluster has no {name}"),
            error => refused(&format!("the cluster does not say whether it has the {name}"), error),
        })?;
        let found = (resource, capabilities.scope);
        self.kinds.insert(key, found.clone());
        Ok(found)
    }

    /// Applies an object server-side, as [`MANAGER`]: there is no limit to its size but the server's, and what others manage in
    /// it stays, unless it is said otherwise here.
    ///
    /// # Errors
    /// When the server refuses it.
    pub(crate) async fn apply(&mut self, object: &DynamicObject, others: Others) -> anyhow::Result<Applied> {
        let what = format!("{} cannot be applied", called(object));
        let api = self.api(object).await.with_context(|| what.clone())?;
        let name = object.name_any();
        let before = api.get_opt(&name).await.map_err(|error| refused(&what, &error))?;
        let params = PatchParams { force: others == Others::TakenOver, ..PatchParams::apply(MANAGER) };
        let after = api.patch(&name, &params, &Patch::Apply(object)).await.map_err(|error| match &error {
            kube::Error::Api(status) if status.code == 409 && others == Others::Respected => {
                anyhow!("{what}: {}; --force-conflicts takes these fields over", status.message)
            }
            error => refused(&what, error),
        })?;
        Ok(match before {
            None => Applied::Created,
            Some(before) if before.resource_version() == after.resource_version() => Applied::Unchanged,
            Some(_) => Applied::Configured,
        })
    }

    /// Waits until a CustomResourceDefinition is served.
    ///
    /// # Errors
    /// When it never will be, or is not in time; with what the server says against it.
    pub(crate) async fn established(
        &mut self,
        definition: &DynamicObject,
        deadline: Instant,
    ) -> anyhow::Result<()> {
        let name = called(definition);
        let api = self.api(definition).await?;
        loop {
            let found = api.get_opt(&definition.name_any()).await;
            let found = found.map_err(|error| refused(&format!("{name} cannot be read"), &error))?;
            let said = |type_| found.as_ref().and_then(|found| condition(found, type_));
            if said("Established").is_some_and(|(status, _)| status == "True") {
                return Ok(());
            }
            if let Some(("False", message)) = said("NamesAccepted") {
                bail!("{name} cannot be served: {message}; remove the other kind of that name first");
            }
            if Instant::now() >= deadline {
                let why = said("Established").map_or("it says nothing of itself", |(_, message)| message);
                bail!("{name} is not served in time: {why}");
            }
            sleep(PAUSE).await;
        }
    }
}

/// An object of JSON, such as an operator's `manifests` prints.
///
/// # Errors
/// When it is none.
pub(crate) fn object(json: Value) -> anyhow::Result<DynamicObject> {
    kubewright_objects::from_value(json).context("this is no object")
}

/// `customresourcedefinition.apiextensions.k8s.io/x`, as kubectl calls it.
pub(crate) fn called(object: &DynamicObject) -> String {
    let kind = object.types.as_ref().map(|types| types.kind.to_lowercase()).unwrap_or_default();
    let version = object.types.as_ref().map_or("", |types| &*types.api_version);
    match version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{}", object.name_any()),
        None => format!("{kind}/{}", object.name_any()),
    }
}

/// The status and the message of a condition.
fn condition<'a>(object: &'a DynamicObject, type_: &str) -> Option<(&'a str, &'a str)> {
    let conditions = object.data.pointer("/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == type_)?;
    Some((found["status"].as_str().unwrap_or_default(), found["message"].as_str().unwrap_or_default()))
}
