//! Writes of objects, which the cache sees before their caller does.

use std::{borrow::Cow, future::IntoFuture, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use json_patch::Patch as JsonPatch;
use kube::api::{ObjectMeta, Patch};
use serde_json::Value;

use super::{Context, answer::Answer};
use crate::{
    Apply, Cached, Error, Key, Object,
    cache::Intent,
    endpoint::{Action, WriteOptions, encode, write_options},
    kind::KindOf,
};

/// A write that is about to happen: it does when it is awaited, and gives the object as the server stored it, without its managed fields. Made by
/// [`Context::create`], [`Context::update`], [`Context::patch`] and their siblings.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kubewright_runtime::{Context, Error, ValidationDirective};
/// # async fn example(ctx: &Context, map: &ConfigMap) -> Result<(), Error> {
/// let would_be = ctx.create(map).dry_run().validation(ValidationDirective::Strict).await?;
/// let stored = ctx.create(map).field_owner("shop-import").await?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is written until it is awaited"]
pub struct Write<'a, K: Cached> {
    context: &'a Context,
    /// What is to be sent, or what is wrong with it.
    body: Result<Body, Error>,
    key: Key,
    subresource: Option<Cow<'a, str>>,
    options: WriteOptions,
    kind: KindOf<K>,
}

/// What is sent.
enum Body {
    /// An object that is made, with what its metadata says of its owners.
    Create(Vec<u8>, Box<ObjectMeta>),
    Replace(Vec<u8>),
    Merge(Value),
    Strategic(Value),
    Json(JsonPatch),
}

impl Body {
    fn action(&self) -> Action<'_> {
        match self {
            Self::Create(body, _) => Action::Create(body),
            Self::Replace(body) => Action::Replace(body),
            Self::Merge(patch) => Action::Patch(Patch::Merge(patch)),
            Self::Strategic(patch) => Action::Patch(Patch::Strategic(patch)),
            Self::Json(patch) => Action::Patch(Patch::Json(patch.clone())),
        }
    }

    fn intent(&self) -> Intent<'_> {
        match self {
            Self::Create(body, _) | Self::Replace(body) => Intent::Text(body),
            Self::Merge(patch) => Intent::Fields(patch),
            Self::Strategic(_) | Self::Json(_) => Intent::Opaque,
        }
    }
}

impl<'a, K: Cached> Write<'a, K> {
    fn new(context: &'a Context, kind: KindOf<K>, key: Key, body: Result<Body, Error>) -> Self {
        let (subresource, options) = (None, WriteOptions::default());
        Self { context, body, key, subresource, options, kind }
    }

    pub(super) fn create(context: &'a Context, kind: KindOf<K>, object: &K) -> Self {
        let body = || {
            expect_namespace(&kind, object)?;
            let meta = object.meta();
            let (namespace, owner_references) = (meta.namespace.clone(), meta.owner_references.clone());
            let meta = ObjectMeta { namespace, owner_references, ..ObjectMeta::default() };
            Ok(Body::Create(encode(object)?, Box::new(meta)))
        };
        let (key, body) = (key_of(&kind, object), body());
        Self::new(context, kind, key, body)
    }

    pub(super) fn update(context: &'a Context, kind: KindOf<K>, object: &K) -> Self {
        let body = || {
            context.expect_whole::<K>(&kind.kind, "an update")?;
            expect_namespace(&kind, object)?;
            Ok(Body::Replace(encode(object)?))
        };
        let (key, body) = (key_of(&kind, object), body());
        Self::new(context, kind, key, body)
    }

    pub(super) fn merge(context: &'a Context, kind: KindOf<K>, key: &Key, patch: Value) -> Self {
        Self::new(context, kind, key.clone(), Ok(Body::Merge(patch)))
    }

    pub(super) fn json(context: &'a Context, kind: KindOf<K>, key: &Key, patch: JsonPatch) -> Self {
        Self::new(context, kind, key.clone(), Ok(Body::Json(patch)))
    }

    /// Done with these options.
    pub(super) fn with(mut self, options: WriteOptions) -> Self {
        self.options = options;
        self
    }

    write_options!();

    /// Writes a subresource that is written as the object itself, such as `status`, `ephemeralcontainers` or `resize`. Those that are kinds of
    /// their own are written by [`Context::subresource`].
    pub fn subresource(mut self, name: impl Into<Cow<'a, str>>) -> Self {
        self.subresource = Some(name.into());
        self
    }

    async fn send(self) -> Result<K, Error> {
        let (context, body) = (self.context, self.body?);
        context.expect_here(&self.key)?;
        if let Body::Create(_, meta) = &body {
            context.look_for_owner(meta).await?;
        }
        let answer = context
            .send_write(
                &self.kind.kind,
                &self.key,
                self.subresource.as_deref(),
                &self.options,
                body.action(),
                body.intent(),
            )
            .await?;
        Ok(Arc::unwrap_or_clone(answer.object))
    }
}

impl<'a, K: Cached> IntoFuture for Write<'a, K> {
    type Output = Result<K, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}

impl Context {
    /// Creates `object`; awaited, it gives what the server stored.
    ///
    /// # Errors
    /// What the server refuses ([`Error::is_already_exists`] among it), or an object of a namespaced kind without
    /// namespace; an owner that is gone ([`Error::OwnerGone`]), although the cache has it still: before an owner of the
    /// own kind gets a child again that lost one which the controller did not delete itself, the server is asked for it.
    pub fn create<K: Object>(&self, object: &K) -> Write<'_, K> {
        Write::create(self, KindOf::typed(), object)
    }

    /// Replaces the object with `object`; the server refuses when somebody changed it since it was read.
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it; a kind of which only a part is cached
    /// ([`Controller::projected`](crate::Controller::projected), metadata alone).
    pub fn update<K: Object>(&self, object: &K) -> Write<'_, K> {
        Write::update(self, KindOf::typed(), object)
    }

    /// Replaces the object's status with that of `object`, as [`Context::update`].
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it.
    pub fn update_status<K: Object>(&self, object: &K) -> Write<'_, K> {
        self.update(object).subresource("status")
    }

    /// Applies a JSON merge patch (RFC 7386) to the object named `key`. With `metadata.resourceVersion` in the patch
    /// the server refuses it when somebody changed the object since. [`Context::merge_from`] makes one from two states of an object.
    ///
    /// # Errors
    /// What the server refuses.
    pub fn patch<K: Object>(&self, key: &Key, patch: Value) -> Write<'_, K> {
        Write::merge(self, KindOf::typed(), key, patch)
    }

    /// Applies a strategic merge patch to the object named `key`, which must be of a built-in kind. Its directives change
    /// one item of a list whatever the others are by now, such as `$deleteFromPrimitiveList/finalizers`.
    ///
    /// # Errors
    /// What the server refuses.
    pub fn patch_strategically<K: Object>(&self, key: &Key, patch: Value) -> Write<'_, K> {
        Write::new(self, KindOf::typed(), key.clone(), Ok(Body::Strategic(patch)))
    }

    /// Applies a JSON patch (RFC 6902) to the object named `key`: operations one after the other, of which `test` makes the server refuse
    /// all where the object has another value.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Error, Key, JsonPatch};
    /// # async fn example(ctx: &Context, key: &Key) -> Result<(), Error> {
    /// let patch: JsonPatch = serde_json::from_str(
    ///     r#"[{"op": "test", "path": "/data/turn", "value": "mine"}, {"op": "replace", "path": "/data/turn", "value": "yours"}]"#,
    /// )?;
    /// ctx.patch_json::<ConfigMap>(key, patch).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the server refuses.
    pub fn patch_json<K: Object>(&self, key: &Key, patch: JsonPatch) -> Write<'_, K> {
        Write::json(self, KindOf::typed(), key, patch)
    }

    /// Applies a JSON merge patch to the status of the object named `key`: `{"status": {...}}`.
    ///
    /// # Errors
    /// What the server refuses.
    pub fn patch_status<K: Object>(&self, key: &Key, patch: Value) -> Write<'_, K> {
        self.patch(key, patch).subresource("status")
    }

    /// Makes an object be as `desired` says, by server-side apply as the field manager that is called like the controller: the one
    /// way to write what is desired. Awaited, it tells what came of it, with the object as it is now.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Error, owner::Owner};
    /// # async fn example(ctx: &Context, map: &ConfigMap, widget: &(dyn Owner + Sync)) -> Result<(), Error> {
    /// let written = ctx.apply(map).owned_by(widget).await?;
    /// if written.is_changed() {
    ///     println!("{:?}", written.object().metadata.name);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// What is guaranteed:
    /// - The object has the fields that `desired` has, and is created if it is not there. A field that somebody else changed is put
    ///   back ([`Apply::unforced`] leaves it to them).
    /// - A field, a key of a map, or an item of a list that an earlier apply named and this one leaves out is taken away, unless
    ///   somebody else applies it, too. Leave out what you do not care about: what the server defaults, admission adds (a sidecar, a
    ///   toleration, the volume of a token) and others set stays. Which lists have items of several owners is the server's
    ///   business; others are one field.
    /// - When nothing would change, no request is sent, however the server spells what was asked for (`1000m` is stored as `1`) and
    ///   whatever webhooks make of it. That is known of kinds that the manager caches whole; of others each apply is sent. After a
    ///   start it may take one request for an object.
    ///
    /// Apply what you want to have, never what you have read: whatever is in `desired` is the controller's from then on. And let apply
    /// create: what [`Context::create`] or a patch wrote counts as another's, and does not go when an apply leaves it out. `status` is not
    /// sent ([`Apply::status`] sends nothing else), nor is a `resourceVersion`; a `uid` is, and refuses another object of the same
    /// name. It takes the rights to create and to patch ([`Controller::applies`](crate::Controller::applies)).
    ///
    /// # Errors
    /// What the server refuses; an object that another owner controls; an owner in another namespace, or one that is gone (as
    /// [`Context::create`]).
    pub fn apply<'a, K: Object>(&'a self, desired: &'a K) -> Apply<'a, K> {
        Apply::new(self, KindOf::typed(), desired)
    }

    /// Whether the owner of an object that is to be made is there, where that is in doubt.
    pub(crate) async fn look_for_owner(&self, child: &ObjectMeta) -> Result<(), Error> {
        match &self.0.sink.orphan_guard {
            Some(orphan_guard) => orphan_guard.look_for_owner(&self.0.client, child).await,
            None => Ok(()),
        }
    }

    /// Sends a write, and tells the cache what came of it unless it is a dry run.
    pub(crate) async fn send_write<K: Cached>(
        &self,
        kind: &K::DynamicType,
        key: &Key,
        part: Option<&str>,
        options: &WriteOptions,
        action: Action<'_>,
        intent: Intent<'_>,
    ) -> Result<Answer<K>, Error> {
        let request = async {
            self.endpoint_of::<K>(kind, key.namespace.as_deref())
                .write(&key.name, part, options, action)
                .await
        };
        if options.dry_run || self.is_dry_run() {
            let answer = request.await?;
            return Ok(Answer { object: Arc::new(answer.object), is_new: answer.is_new, owned: Vec::new() });
        }
        self.write_answered(kind, (!key.name.is_empty()).then(|| key.clone()), intent, request).await
    }
}

/// The key of an object; without its namespace, if its kind has none.
fn key_of<K: Cached>(kind: &KindOf<K>, object: &K) -> Key {
    let mut key = Key::of(object);
    if !kind.is_namespaced {
        key.namespace = None;
    }
    key
}

fn expect_namespace<K: Cached>(kind: &KindOf<K>, object: &K) -> Result<(), Error> {
    if kind.is_namespaced && object.meta().namespace.is_none() {
        return Err(Error::new(format!("a {} needs metadata.namespace", K::kind(&kind.kind))));
    }
    Ok(())
}
