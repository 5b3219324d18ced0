//! Writes, which the cache sees before their caller does.

use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams};
use serde_json::Value;

use super::Context;
use crate::{
    Apply, Error, Key, Object,
    cache::Intent,
    endpoint::{ApiResponse, Deleted, encode},
};

/// Deletion of an object: what became of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion<K> {
    /// It is gone.
    Gone,
    /// It is on its way: finalizers or a grace period hold it. This is what it looks like now.
    Terminating(Box<K>),
    /// It was not there.
    Absent,
}

impl Context {
    /// Creates `object` and returns what the server stored.
    ///
    /// # Errors
    /// What the server refuses ([`Error::is_already_exists`] among it), or an object of a namespaced kind without
    /// namespace; an owner that is gone ([`Error::OwnerGone`]), although the cache has it still: before an owner of the
    /// own kind gets a child again that lost one which the controller did not delete itself, the server is asked for it.
    pub async fn create<K: Object>(&self, object: &K) -> Result<K, Error> {
        let (namespace, key) = (namespace_of(object)?, Key::of(object));
        self.look_for_owner(object.meta()).await?;
        let body = encode(object)?;
        let request = async { self.endpoint::<K>(namespace).create(body.clone()).await };
        self.write((!key.name.is_empty()).then_some(key), Intent::Text(&body), request).await
    }

    /// Replaces the object with `object`; the server refuses when somebody changed it since it was read.
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it; a kind of which only a part is cached
    /// ([`Controller::projected`](crate::Controller::projected), metadata alone).
    pub async fn update<K: Object>(&self, object: &K) -> Result<K, Error> {
        self.replace(object, None).await
    }

    /// Replaces the object's status with that of `object`, as [`Context::update`].
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it.
    pub async fn update_status<K: Object>(&self, object: &K) -> Result<K, Error> {
        self.replace(object, Some("status")).await
    }

    /// Applies a JSON merge patch (RFC 7386) to the object named `key`. With `metadata.resourceVersion` in the patch
    /// the server refuses it when somebody changed the object since.
    ///
    /// # Errors
    /// What the server refuses.
    pub async fn patch<K: Object>(&self, key: &Key, patch: Value) -> Result<K, Error> {
        self.patch_part(key, None, Intent::Fields(&patch), &Patch::Merge(&patch)).await
    }

    /// Applies a strategic merge patch to the object named `key`, which must be of a built-in kind. Its directives change
    /// one item of a list whatever the others are by now, such as `$deleteFromPrimitiveList/finalizers`.
    ///
    /// # Errors
    /// What the server refuses.
    pub async fn patch_strategically<K: Object>(&self, key: &Key, patch: Value) -> Result<K, Error> {
        self.patch_part(key, None, Intent::Opaque, &Patch::Strategic(&patch)).await
    }

    /// Applies a JSON merge patch to the status of the object named `key`: `{"status": {...}}`.
    ///
    /// # Errors
    /// What the server refuses.
    pub async fn patch_status<K: Object>(&self, key: &Key, patch: Value) -> Result<K, Error> {
        self.patch_part(key, Some("status"), Intent::Fields(&patch), &Patch::Merge(&patch)).await
    }

    /// Applies `desired` (server-side apply) as the field manager that is called like the controller: the object gets these
    /// fields, loses those that an earlier apply named and this one leaves out, and keeps all others. It is created if
    /// it is not there. Awaited, it gives what the server stored.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Error, owner::Owner};
    /// # async fn example(ctx: &Context, map: &ConfigMap, widget: &(dyn Owner + Sync)) -> Result<(), Error> {
    /// let stored = ctx.apply(map).owned_by(widget).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// It writes each time, as the cache does not know who owns which fields: [`Context::ensure`] compares first. A
    /// `resourceVersion` in `desired` is not sent; a `uid` is, and refuses another object of the same name.
    ///
    /// # Errors
    /// What the server refuses, fields that others own among it ([`Error::is_conflict`]); an owner in another namespace, or one
    /// that is gone (as [`Context::create`]).
    pub fn apply<'a, K: Object>(&'a self, desired: &'a K) -> Apply<'a, K> {
        Apply::new(self, desired)
    }

    /// Deletes the object named `key`. That it is not there is no error.
    ///
    /// # Errors
    /// What the server refuses, an unfulfilled precondition ([`Error::is_conflict`]) among it.
    pub async fn delete<K: Object>(&self, key: &Key, params: DeleteParams) -> Result<Deletion<K>, Error> {
        let informer = if params.dry_run { None } else { self.0.cache.informer::<K>() };
        let write = informer.as_ref().map(|informer| (informer, informer.write(None, None)));
        let uid = informer.as_ref().and_then(|informer| informer.get(key)?.meta().uid.clone());
        let _own =
            self.0.sink.orphan_guard.as_ref().zip(uid).map(|(orphan_guard, uid)| orphan_guard.deleting(&uid));
        let answer = match self.endpoint::<K>(key.namespace.as_deref()).delete(&key.name, &params).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(Deletion::Absent),
            answer => answer?,
        };
        self.0.sink.metrics.writes.inc();
        let uid = match answer {
            Deleted::Object(object) if stays_after_delete(&*object) => {
                if let Some((informer, write)) = write {
                    write.returned(informer.transform((*object).clone()), false);
                }
                return Ok(Deletion::Terminating(object));
            }
            Deleted::Object(object) => object.meta().uid.clone(),
            Deleted::Gone { uid } => uid,
        };
        if let Some((_, write)) = write {
            write.ended(key, uid.as_deref());
        }
        Ok(Deletion::Gone)
    }

    /// Whether the owner of an object that is to be made is there, where that is in doubt.
    pub(crate) async fn look_for_owner(&self, child: &ObjectMeta) -> Result<(), Error> {
        match &self.0.sink.orphan_guard {
            Some(orphan_guard) => orphan_guard.look_for_owner(&self.0.client, child).await,
            None => Ok(()),
        }
    }

    async fn replace<K: Object>(&self, object: &K, subresource: Option<&str>) -> Result<K, Error> {
        self.expect_whole::<K>("an update")?;
        let (namespace, key) = (namespace_of(object)?, Key::of(object));
        let (name, body) = (key.name.clone(), encode(object)?);
        let request = async { self.endpoint::<K>(namespace).replace(&name, subresource, body.clone()).await };
        self.write(Some(key), Intent::Text(&body), request).await
    }

    async fn patch_part<K: Object>(
        &self,
        key: &Key,
        subresource: Option<&str>,
        intent: Intent<'_>,
        patch: &Patch<&Value>,
    ) -> Result<K, Error> {
        self.patch_with(key, subresource, &PatchParams::default(), intent, patch).await
    }

    pub(crate) async fn patch_with<K: Object>(
        &self,
        key: &Key,
        subresource: Option<&str>,
        params: &PatchParams,
        intent: Intent<'_>,
        patch: &Patch<&Value>,
    ) -> Result<K, Error> {
        self.write(Some(key.clone()), intent, async {
            self.endpoint::<K>(key.namespace.as_deref()).patch(&key.name, subresource, params, patch).await
        })
        .await
    }

    /// Sends a write and tells the cache what came of it before the caller knows. It is one of the object of this key, if that
    /// is known before.
    pub(crate) async fn write<K: Object>(
        &self,
        key: Option<Key>,
        intent: Intent<'_>,
        request: impl Future<Output = kube::Result<ApiResponse<K>>>,
    ) -> Result<K, Error> {
        let informer = self.0.cache.informer::<K>();
        let write = informer.as_ref().map(|informer| (informer, informer.write(key, self.1.clone())));
        let ApiResponse { mut object, text } = request.await?;
        self.0.sink.metrics.writes.inc();
        if let Some((informer, write)) = write {
            if ended_by_update(&object) {
                write.ended(&Key::of(&object), object.meta().uid.as_deref());
            } else if informer.selects(&object) {
                // They are not kept, and most of some objects.
                let managed_fields = object.meta_mut().managed_fields.take();
                let kept = informer.transform(object.clone());
                object.meta_mut().managed_fields = managed_fields;
                write.returned(kept, write.is_own() && intent.is_met_by(&text));
            }
        }
        Ok(object)
    }
}

fn namespace_of<K: Object>(object: &K) -> Result<Option<&str>, Error> {
    match (K::is_namespaced(), object.meta().namespace.as_deref()) {
        (false, _) => Ok(None),
        (true, Some(namespace)) => Ok(Some(namespace)),
        (true, None) => Err(Error::new(format!("a {} needs metadata.namespace", K::kind(&())))),
    }
}

/// Whether an update took the last thing away that held a deleted object: it is answered with the object, which is
/// gone (`ShouldDeleteDuringUpdate` in `k8s.io/apiserver/pkg/registry/generic/registry/store.go`). A namespace is held
/// by `spec.finalizers` besides; the watch tells of its end.
fn ended_by_update<K: Object>(object: &K) -> bool {
    let meta = object.meta();
    let is_namespace = K::group(&()).is_empty() && K::kind(&()) == "Namespace";
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
        && meta.deletion_grace_period_seconds == Some(0)
        && !is_namespace
}

/// Whether the object that a deletion answered with is still there: some kinds answer with the object that was
/// removed (`ReturnDeletedObject`), all do so with one that a finalizer or a grace period holds.
fn stays_after_delete<K: Object>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some() && !ended_by_update(object)
}
