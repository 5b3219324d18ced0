//! Server-side apply: an object's owner says which fields it wants to have, and the API server keeps who owns which.

use std::future::IntoFuture;

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ObjectMeta, Patch, PatchParams};
use serde_json::{Value, json};

use crate::{Context, Error, Key, Object, cache::Intent, ensure, object::to_value, owner::Owner};

/// An apply that is about to be sent: it happens when it is awaited. Made by [`Context::apply`].
#[must_use = "nothing is applied until it is awaited"]
pub struct Apply<'a, K> {
    context: &'a Context,
    desired: &'a K,
    owner: Option<&'a (dyn Owner + Sync)>,
    force: bool,
    subresource: Option<&'static str>,
}

impl<'a, K: Object> Apply<'a, K> {
    pub(crate) fn new(context: &'a Context, desired: &'a K) -> Self {
        Self { context, desired, owner: None, force: false, subresource: None }
    }

    /// Makes `owner` the controller of the object.
    pub fn owned_by(mut self, owner: &'a (dyn Owner + Sync)) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Takes fields over that others own and that have another value there. Without it the server refuses
    /// ([`Error::is_conflict`]) and says whose they are.
    pub fn forced(mut self) -> Self {
        self.force = true;
        self
    }

    /// Applies the status alone: other fields of the object but its name are not sent.
    pub fn status(mut self) -> Self {
        self.subresource = Some("status");
        self
    }

    fn body(&self, owners: Option<&[OwnerReference]>) -> Result<Value, Error> {
        let mut body = to_value(self.desired)?;
        let meta = self.desired.meta();
        if self.subresource.is_some() {
            body = json!({"metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
                "status": body["status"].take()});
        }
        body["apiVersion"] = K::api_version(&()).into();
        body["kind"] = K::kind(&()).into();
        if let Some(meta) = body["metadata"].as_object_mut() {
            // The server refuses to be told who owns what; and what others changed since is for it to merge.
            meta.remove("managedFields");
            meta.remove("resourceVersion");
            meta.remove("creationTimestamp");
        }
        if let (Some(owners), None) = (owners, self.subresource) {
            body["metadata"]["ownerReferences"] = kubewright_objects::to_value(&owners)?;
        }
        Ok(body)
    }

    fn owners(&self) -> Result<Option<Vec<OwnerReference>>, Error> {
        let owners = self.desired.meta().owner_references.clone();
        let Some(owner) = self.owner else { return Ok(owners) };
        let reference = ensure::reference(self.desired, owner)?;
        let mut owners = owners.unwrap_or_default();
        owners.retain(|other| other.uid != reference.uid);
        owners.push(reference);
        Ok(Some(owners))
    }

    async fn send(self) -> Result<K, Error> {
        let owners = self.owners()?;
        let body = self.body(owners.as_deref())?;
        let params = PatchParams { force: self.force, ..PatchParams::apply(self.context.controller()) };
        let key = Key::of(self.desired);
        if self.subresource.is_none() {
            let namespace = key.namespace.clone();
            let child = ObjectMeta { namespace, owner_references: owners, ..ObjectMeta::default() };
            self.context.look_for_owner(&child).await?;
        }
        self.context
            .patch_with(&key, self.subresource, &params, Intent::Fields(&body), &Patch::Apply(&body))
            .await
    }
}

impl<'a, K: Object> IntoFuture for Apply<'a, K> {
    type Output = Result<K, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}
