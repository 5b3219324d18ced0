//! Kinds that are known only at run time, in a context.

use std::borrow::Cow;

use kube::api::{ApiResource, DeleteParams, DynamicObject};
use serde_json::Value;

use super::Context;
use crate::{
    Apply, Cached, Deletion, DynamicKind, Error, JsonPatch, Key, ListOptions, MergeFrom, Subresource,
    Watching, Write,
};

/// Reads, writes and watches of a [`DynamicKind`] in a [`Context`], with the same guarantees as those of kinds that are types. Made by
/// [`Context::kind`].
#[derive(Clone, Copy, Debug)]
pub struct DynamicContext<'a> {
    context: &'a Context,
    kind: &'a DynamicKind,
}

impl Context {
    /// The kind `kind`, to read, write and watch its objects as [`DynamicObject`]s.
    ///
    /// What is read of it is [live](DynamicContext::live), or by a [watch](DynamicContext::watch) that is held: while it is, what the reconcile writes is in
    /// the watch's objects before the write returns, and an apply that would change nothing sends nothing.
    ///
    /// Rights are named by [`Rights::add_dynamic`](crate::rbac::Rights::add_dynamic).
    ///
    /// ```
    /// # use kube::api::DynamicObject;
    /// # use kubewright_runtime::{Context, DynamicKind, Error, Key};
    /// # async fn example(ctx: &Context, kind: &DynamicKind, key: &Key) -> Result<(), Error> {
    /// let things = ctx.kind(kind);
    /// let mut desired = DynamicObject::new(&key.name, kind.resource()).within("shop");
    /// desired.data = serde_json::json!({"spec": {"size": 3}});
    /// things.apply(&desired).await?;
    /// let stored = things.live(key).await?;
    /// # Ok(()) }
    /// ```
    pub fn kind<'a>(&'a self, kind: &'a DynamicKind) -> DynamicContext<'a> {
        DynamicContext { context: self, kind }
    }

    /// The kind of this name in this group and version, if the API server serves it: [`DynamicKind::discover`].
    ///
    /// # Errors
    /// As [`DynamicKind::discover`].
    pub async fn discover(&self, api_version: &str, kind: &str) -> Result<Option<DynamicKind>, Error> {
        DynamicKind::discover(self.client(), api_version, kind).await
    }
}

impl<'a> DynamicContext<'a> {
    /// As [`Context::watch`]: as whole objects ([`DynamicObject`]) or their metadata ([`kube::api::PartialObjectMeta`]).
    pub fn watch<K: Cached<DynamicType = ApiResource>>(
        &self,
        mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
    ) -> Watching<K> {
        self.context.begin_watch(self.context.cache().watch_kind(self.kind), mapping)
    }

    /// As [`Context::live`].
    ///
    /// # Errors
    /// As [`Context::live`].
    pub async fn live(&self, key: &Key) -> Result<Option<DynamicObject>, Error> {
        self.context.expect_here(key)?;
        let kind = self.kind.of_objects();
        let namespace = kind.namespace(key.namespace.as_deref());
        Ok(self.context.endpoint_of::<DynamicObject>(&kind.kind, namespace).get(&key.name).await?)
    }

    /// As [`Context::live_list`].
    ///
    /// # Errors
    /// As [`Context::live_list`].
    pub async fn live_list(&self, selected: &ListOptions) -> Result<Vec<DynamicObject>, Error> {
        selected.live(self.context.client(), &self.kind.of_objects()).await
    }

    /// As [`Context::create`].
    pub fn create(&self, object: &DynamicObject) -> Write<'a, DynamicObject> {
        Write::create(self.context, self.kind.of_objects(), object)
    }

    /// As [`Context::update`].
    pub fn update(&self, object: &DynamicObject) -> Write<'a, DynamicObject> {
        Write::update(self.context, self.kind.of_objects(), object)
    }

    /// As [`Context::patch`].
    pub fn patch(&self, key: &Key, patch: Value) -> Write<'a, DynamicObject> {
        Write::merge(self.context, self.kind.of_objects(), key, patch)
    }

    /// As [`Context::patch_json`].
    pub fn patch_json(&self, key: &Key, patch: JsonPatch) -> Write<'a, DynamicObject> {
        Write::json(self.context, self.kind.of_objects(), key, patch)
    }

    /// As [`Context::merge_from`].
    pub fn merge_from(
        &self,
        before: &'a DynamicObject,
        after: &'a DynamicObject,
    ) -> MergeFrom<'a, DynamicObject> {
        MergeFrom::new(self.context, self.kind.of_objects(), before, after)
    }

    /// As [`Context::apply`]. The API version and kind of `desired` are those of this kind, whatever it says.
    pub fn apply(&self, desired: &'a DynamicObject) -> Apply<'a, DynamicObject> {
        Apply::new(self.context, self.kind.of_objects(), desired)
    }

    /// As [`Context::delete`].
    ///
    /// # Errors
    /// As [`Context::delete`].
    pub async fn delete(&self, key: &Key, params: &DeleteParams) -> Result<Deletion<DynamicObject>, Error> {
        self.context.delete_of(&self.kind.of_objects(), key, params).await
    }

    /// As [`Context::delete_all`].
    ///
    /// # Errors
    /// As [`Context::delete_all`].
    pub async fn delete_all(&self, selected: &ListOptions, params: &DeleteParams) -> Result<(), Error> {
        self.context.delete_all_of(&self.kind.of_objects(), selected, params).await
    }

    /// As [`Context::subresource`].
    pub fn subresource(&self, key: &'a Key, name: impl Into<Cow<'a, str>>) -> Subresource<'a, DynamicObject> {
        Subresource::new(self.context, self.kind.of_objects(), key, name.into())
    }
}
