//! The objects that are stored of the kinds that definitions define: which there are, and which would go with them.

use anyhow::{anyhow, bail};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams},
};
use serde_json::Value;

use super::refused;

/// How many objects are named that would be lost.
const NAMED: usize = 5;
/// How many objects are held at once.
const PAGE: u32 = 100;

/// The objects of a kind in all namespaces, page by page.
pub(crate) struct Pages {
    api: Api<DynamicObject>,
    next: Option<ListParams>,
}

impl Pages {
    /// Those of a resource. Nothing is asked yet.
    pub(crate) fn of(client: &Client, resource: &ApiResource) -> Self {
        let api = Api::all_with(client.clone(), resource);
        Self { api, next: Some(ListParams::default().limit(PAGE)) }
    }

    /// The next of them; `None` behind the last, and where the resource is not served (yet, or any more).
    ///
    /// # Errors
    /// When the API server does not say.
    pub(crate) async fn next(&mut self) -> kube::Result<Option<Vec<DynamicObject>>> {
        let Some(params) = self.next.take() else { return Ok(None) };
        let list = match self.api.list(&params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            list => list?,
        };
        let token = list.metadata.continue_.filter(|token| !token.is_empty());
        self.next = token.map(|token| ListParams::default().limit(PAGE).continue_token(&token));
        Ok(Some(list.items))
    }
}

/// Objects that would be lost with their definitions.
#[derive(Debug, Default)]
pub(crate) struct LostObjects {
    count: usize,
    named: Vec<String>,
}

impl LostObjects {
    /// Counts the objects of a definition as it is in the cluster.
    ///
    /// # Errors
    /// When nobody can tell which there are.
    pub(crate) async fn add(&mut self, client: &Client, definition: &DynamicObject) -> anyhow::Result<()> {
        let name = definition.name_any();
        let what = format!("cannot tell which objects would be lost with {name}");
        let Some(resource) = resource(definition) else {
            bail!("{what}: no version of it is served; serve one, or remove it without looking, with --yes");
        };
        let mut pages = Pages::of(client, &resource);
        loop {
            let page = pages.next().await.map_err(|error| refused(&what, &error));
            let page = page.map_err(|error| anyhow!("{error:#}; --yes removes it without looking"))?;
            let Some(objects) = page else { return Ok(()) };
            self.count += objects.len();
            let room = NAMED.saturating_sub(self.named.len());
            self.named.extend(objects.iter().take(room).map(|object| qualified(&name, object)));
        }
    }

    /// Refuses to lose any.
    ///
    /// # Errors
    /// When there are some: how many, the first of them, and the remedy.
    pub(crate) fn check(&self, remedy: &str) -> anyhow::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let more = if self.count > self.named.len() { ", …" } else { "" };
        bail!(
            "{} objects of its kinds would be lost: {}{more}; nothing was removed. {remedy}",
            self.count,
            self.named.join(", ")
        )
    }
}

/// An object as people write it: `webs default/front`.
pub(crate) fn qualified(definition: &str, object: &DynamicObject) -> String {
    let plural = definition.split('.').next().unwrap_or(definition);
    format!("{plural} {}", placed(object))
}

/// `default/front`; of what is in no namespace, its name alone.
pub(super) fn placed(object: &DynamicObject) -> String {
    let namespace = object.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{namespace}{}", object.name_any())
}

/// The resource of a CustomResourceDefinition in a version that is served, the stored one if it is.
pub(crate) fn resource(definition: &DynamicObject) -> Option<ApiResource> {
    let versions = definition.data["spec"]["versions"].as_array()?;
    let mut served = versions.iter().filter(|version| version["served"] == true);
    let chosen = served.clone().find(|version| version["storage"] == true).or_else(|| served.next())?;
    resource_in(definition, chosen["name"].as_str()?)
}

/// The resource of a CustomResourceDefinition in a version.
pub(super) fn resource_in(definition: &DynamicObject, version: &str) -> Option<ApiResource> {
    let text = |pointer: &str| definition.data["spec"].pointer(pointer).and_then(Value::as_str);
    let kind = GroupVersionKind::gvk(text("/group")?, version, text("/names/kind")?);
    Some(ApiResource::from_gvk_with_plural(&kind, text("/names/plural")?))
}
