//! Patches that are made from two states of an object.

use std::{borrow::Cow, future::IntoFuture, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};

use super::Context;
use crate::{
    Cached, Error, Key, Object, Write, Written,
    endpoint::{WriteOptions, write_options},
    kind::KindOf,
    object::to_value,
    status::difference,
};

/// A merge patch that is about to be sent: it is when it is awaited. Made by [`Context::merge_from`].
#[must_use = "nothing is written until it is awaited"]
pub struct MergeFrom<'a, K: Cached> {
    context: &'a Context,
    kind: KindOf<K>,
    before: &'a K,
    after: &'a K,
    options: WriteOptions,
    subresource: Option<Cow<'a, str>>,
    is_locked: bool,
}

impl<'a, K: Cached> MergeFrom<'a, K> {
    pub(super) fn new(context: &'a Context, kind: KindOf<K>, before: &'a K, after: &'a K) -> Self {
        let options = WriteOptions::default();
        Self { context, kind, before, after, options, subresource: None, is_locked: false }
    }

    /// The server refuses it ([`Error::is_conflict`]) when somebody changed the object since `before` was read
    /// (client-go's `MergeFromWithOptimisticLock`). For lists, which a merge patch takes whole.
    pub fn optimistic_lock(mut self) -> Self {
        self.is_locked = true;
        self
    }

    write_options!();

    /// Writes the subresource of this name, such as `status`, and its fields alone.
    pub fn subresource(mut self, name: impl Into<Cow<'a, str>>) -> Self {
        self.subresource = Some(name.into());
        self
    }

    async fn send(self) -> Result<Written<K>, Error> {
        let is_of = |object: &K| (Key::of(object), object.meta().uid.clone());
        if is_of(self.before) != is_of(self.after) {
            return Err(Error::terminal(
                "a patch is made from two states of one object, and these are two objects",
            ));
        }
        let (before, after) = (
            fields(self.before, self.subresource.as_deref())?,
            fields(self.after, self.subresource.as_deref())?,
        );
        let Some(mut patch) = difference(&before, &after) else {
            return Ok(Written::Unchanged(Arc::new(self.after.clone())));
        };
        let changed = patch.to_string();
        if self.is_locked {
            let meta = self.before.meta();
            let mut named = json!({"resourceVersion": meta.resource_version, "uid": meta.uid});
            if let (Some(named), Some(changed)) = (named.as_object_mut(), patch["metadata"].as_object_mut()) {
                named.append(changed);
            }
            patch["metadata"] = named;
        }
        let mut write =
            Write::merge(self.context, self.kind, &Key::of(self.before), patch).with(self.options);
        if let Some(subresource) = self.subresource {
            write = write.subresource(subresource);
        }
        let object = Arc::new(write.await?);
        Ok(Written::Updated { object, changed })
    }
}

/// What of an object a merge patch may change: without what each write changes; with the status in a patch of it alone.
fn fields<K: Cached>(object: &K, part: Option<&str>) -> Result<Value, Error> {
    let mut fields = to_value(object)?;
    if let Some(fields) = fields.as_object_mut() {
        match part {
            Some("status") => fields.retain(|field, _| field == "status"),
            _ => drop(fields.remove("status")),
        }
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
        }
    }
    Ok(fields)
}

impl<'a, K: Cached> IntoFuture for MergeFrom<'a, K> {
    type Output = Result<Written<K>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}

impl Context {
    /// Sends what differs between two states of an object, as a JSON merge patch; nothing, when nothing does (client-go's `MergeFrom`). What
    /// others changed meanwhile stays, but for lists, which are written whole. It takes the right to `patch`.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Node;
    /// # use kubewright_runtime::{Context, Error, Written};
    /// # async fn example(ctx: &Context, node: &Node) -> Result<(), Error> {
    /// let mut cordoned = node.clone();
    /// cordoned.spec.get_or_insert_default().unschedulable = Some(true);
    /// let written = ctx.merge_from(node, &cordoned).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the server refuses; two objects that are not one.
    pub fn merge_from<'a, K: Object>(&'a self, before: &'a K, after: &'a K) -> MergeFrom<'a, K> {
        MergeFrom::new(self, KindOf::typed(), before, after)
    }
}
