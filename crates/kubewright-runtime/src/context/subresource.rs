//! Parts of objects that are kinds of their own: `scale`, `eviction`, `token`, `binding`.

use std::borrow::Cow;

use k8s_openapi::api::autoscaling::v1::Scale;
use kube::api::Patch;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::Context;
use crate::{
    Cached, Error, Key, Object,
    cache::Intent,
    endpoint::{Action, WriteOptions, encode, write_options},
    kind::KindOf,
};

/// A subresource of the object named by a key. Made by [`Context::subresource`].
///
/// A write of it may change the object, or end it. Of a kind that is cached, the object is read again behind each write, which takes the right to
/// `get` it: what the reconcile reads then is what it has written.
#[must_use]
pub struct Subresource<'a, K: Cached> {
    context: &'a Context,
    key: &'a Key,
    name: Cow<'a, str>,
    options: WriteOptions,
    kind: KindOf<K>,
}

impl<'a, K: Cached> Subresource<'a, K> {
    pub(super) fn new(context: &'a Context, kind: KindOf<K>, key: &'a Key, name: Cow<'a, str>) -> Self {
        Self { context, key, name, options: WriteOptions::default(), kind }
    }

    write_options!();

    /// Reads it.
    ///
    /// # Errors
    /// What the server refuses, that the object or the subresource is not there ([`Error::is_not_found`]) among it; an answer that is no `P`.
    pub async fn get<P: DeserializeOwned>(&self) -> Result<P, Error> {
        self.context.expect_here(self.key)?;
        let objects = self.context.endpoint_of::<K>(&self.kind.kind, self.key.namespace.as_deref());
        Ok(objects.read_part(&self.key.name, &self.name).await?)
    }

    /// Creates it, as an Eviction or a TokenRequest is; what is answered may be of another kind, such as a Status.
    ///
    /// # Errors
    /// What the server refuses; an answer that is no `A`.
    pub async fn create<A: DeserializeOwned>(&self, body: &impl Serialize) -> Result<A, Error> {
        self.write(Action::Create(&encode(body)?)).await
    }

    /// Replaces it.
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it; an answer that is no `P`.
    pub async fn update<P: Serialize + DeserializeOwned>(&self, part: &P) -> Result<P, Error> {
        self.write(Action::Replace(&encode(part)?)).await
    }

    /// Applies a JSON merge patch (RFC 7386) to it.
    ///
    /// # Errors
    /// What the server refuses; an answer that is no `P`.
    pub async fn patch<P: DeserializeOwned>(&self, patch: &Value) -> Result<P, Error> {
        self.write(Action::Patch(Patch::Merge(patch))).await
    }

    async fn write<A: DeserializeOwned>(&self, action: Action<'_>) -> Result<A, Error> {
        self.context.expect_here(self.key)?;
        let objects = self.context.endpoint_of::<K>(&self.kind.kind, self.key.namespace.as_deref());
        let (name, part) = (&self.key.name, &self.name);
        let request = objects.write_part(name, part, &self.options, action);
        let is_dry_run = self.options.dry_run || self.context.is_dry_run();
        let informer = self.context.cache().informer_of::<K>(&self.kind.kind).filter(|_| !is_dry_run);
        let Some(informer) = informer else { return Ok(request.await?) };
        let mut answer = None;
        // What that makes of the object is for its kind to say.
        let read = self.context.write_answered::<K>(
            &self.kind.kind,
            Some(self.key.clone()),
            Intent::Opaque,
            async {
                answer = Some(request.await?);
                objects.read_again(name).await
            },
        );
        match read.await {
            Err(error) if answer.is_none() => return Err(error),
            Err(error) if error.is_not_found() => {
                informer.write(None, None).ended(self.key, None);
            }
            result => drop(result?),
        }
        answer.ok_or_else(|| Error::new("a subresource was written without an answer"))
    }
}

impl Context {
    /// The subresource `name` of the object named `key`, to be read and written as a kind of its own.
    ///
    /// ```
    /// # use k8s_openapi::api::{authentication::v1::TokenRequest, core::v1::{Pod, ServiceAccount}, policy::v1::Eviction};
    /// # use kubewright_runtime::{Context, Error, Key};
    /// # async fn example(ctx: &Context, pod: &Key, account: &Key) -> Result<(), Error> {
    /// let token: TokenRequest =
    ///     ctx.subresource::<ServiceAccount>(account, "token").create(&TokenRequest::default()).await?;
    /// let eviction = serde_json::json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name}});
    /// let _: serde_json::Value = ctx.subresource::<Pod>(pod, "eviction").create(&eviction).await?;
    /// # Ok(()) }
    /// ```
    pub fn subresource<'a, K: Object>(
        &'a self,
        key: &'a Key,
        name: impl Into<Cow<'a, str>>,
    ) -> Subresource<'a, K> {
        Subresource::new(self, KindOf::typed(), key, name.into())
    }

    /// Scales the object named `key` by its `scale` part, whatever its kind calls its replicas; needs no right to the object
    /// but `get`. Writes nothing when that many are asked for already; tells whether it wrote. The cache has it at once.
    ///
    /// # Errors
    /// What the server refuses; a kind that cannot be scaled ([`Error::is_not_found`]).
    pub async fn scale<K: Object>(&self, key: &Key, replicas: i32) -> Result<bool, Error> {
        let part = self.subresource::<K>(key, "scale");
        let scale: Scale = part.get().await?;
        if scale.spec.as_ref().and_then(|spec| spec.replicas) == Some(replicas) {
            return Ok(false);
        }
        let _: Scale = part.patch(&json!({"spec": {"replicas": replicas}})).await?;
        Ok(true)
    }
}
