//! Deletions, which the cache sees before their caller does.

use kube::api::DeleteParams;

use super::{Context, ListOptions, answer::stays_after_delete};
use crate::{Cached, Error, Key, Object, endpoint::Deleted, kind::KindOf};

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

impl<K> Deletion<K> {
    /// Whether the object was there, so that something was done.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

impl Context {
    /// Deletes the object named `key`. That it is not there is no error.
    ///
    /// # Errors
    /// What the server refuses, an unfulfilled precondition ([`Error::is_conflict`]) among it.
    pub async fn delete<K: Object>(&self, key: &Key, params: DeleteParams) -> Result<Deletion<K>, Error> {
        self.delete_of(&KindOf::typed(), key, &params).await
    }

    /// Deletes the objects that are selected, with one request: all of a kind that lives in namespaces are those of one namespace. It takes
    /// the right to `deletecollection`; and to `list`, where the kind is cached: what is left is asked for, so that the cache does not
    /// show what is gone.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kubewright_runtime::{Context, DeleteParams, Error, ListOptions};
    /// # async fn example(ctx: &Context) -> Result<(), Error> {
    /// let finished = ListOptions::in_namespace("shop").fields("status.phase=Succeeded");
    /// ctx.delete_all::<Pod>(&finished, &DeleteParams::background()).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// What the server refuses; selectors that are none; a namespaced kind without a namespace, as there is no such request.
    pub async fn delete_all<K: Object>(
        &self,
        selected: &ListOptions,
        params: &DeleteParams,
    ) -> Result<(), Error> {
        self.delete_all_of::<K>(&KindOf::typed(), selected, params).await
    }

    pub(crate) async fn delete_of<K: Cached>(
        &self,
        kind: &KindOf<K>,
        key: &Key,
        params: &DeleteParams,
    ) -> Result<Deletion<K>, Error> {
        let KindOf { kind, .. } = kind;
        self.expect_here(key)?;
        let is_dry_run = params.dry_run || self.is_dry_run();
        let informer = if is_dry_run { None } else { self.0.cache.informer_of::<K>(kind) };
        let write = informer.as_ref().map(|informer| (informer, informer.write(None, None)));
        let uid = informer.as_ref().and_then(|informer| informer.get(key)?.meta().uid.clone());
        let _own =
            self.0.sink.orphan_guard.as_ref().zip(uid).map(|(orphan_guard, uid)| orphan_guard.deleting(&uid));
        let answer =
            match self.endpoint_of::<K>(kind, key.namespace.as_deref()).delete(&key.name, params).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(Deletion::Absent),
                answer => answer?,
            };
        if !is_dry_run {
            self.0.sink.metrics.writes.inc();
        }
        let uid = match answer {
            Deleted::Object(object) if stays_after_delete(kind, &*object) => {
                if let Some((informer, write)) = write {
                    let owned = informer.owned(object.meta());
                    write.returned(&informer.transform((*object).clone()), owned, false);
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

    pub(crate) async fn delete_all_of<K: Cached>(
        &self,
        kind: &KindOf<K>,
        selected: &ListOptions,
        params: &DeleteParams,
    ) -> Result<(), Error> {
        let params_of_list = selected.params()?;
        let namespace = selected.namespace_of(kind);
        if kind.is_namespaced && namespace.is_none() {
            return Err(Error::new(format!(
                "{} are deleted in one namespace at a time: name it, ListOptions::in_namespace",
                K::plural(&kind.kind)
            )));
        }
        let objects = self.endpoint_of::<K>(&kind.kind, namespace);
        let is_dry_run = params.dry_run || self.is_dry_run();
        let informer = if is_dry_run { None } else { self.0.cache.informer_of::<K>(&kind.kind) };
        let known = match &informer {
            Some(informer) => selected.select(informer.list(namespace))?,
            None => Vec::new(),
        };
        let orphan_guard = self.0.sink.orphan_guard.as_ref();
        let _own: Vec<_> = known
            .iter()
            .filter_map(|object| orphan_guard.zip(object.meta().uid.as_deref()))
            .map(|(orphan_guard, uid)| orphan_guard.deleting(uid))
            .collect();
        let write = informer.as_ref().map(|informer| (informer, informer.write(None, None)));
        objects.delete_all(params, &params_of_list).await?;
        if !is_dry_run {
            self.0.sink.metrics.writes.inc();
        }
        let Some((informer, write)) = write.filter(|_| !known.is_empty()) else { return Ok(()) };
        let left = selected.live(&self.0.client, kind).await?;
        for before in known {
            let uid = &before.meta().uid;
            match left.iter().find(|object| object.meta().uid == *uid) {
                None => write.ended(&Key::of(&*before), uid.as_deref()),
                Some(object) => {
                    let owned = informer.owned(object.meta());
                    write.returned(&informer.transform(object.clone()), owned, false);
                }
            }
        }
        Ok(())
    }
}
