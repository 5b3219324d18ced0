//! Writes of what is desired: none, when it is there.

use std::sync::Arc;

use serde_json::json;

use super::Context;
use crate::{Cached, Error, Key, Object, Written, cache::is_newer, finalizer, object::Head, owner::Owner};

impl Context {
    /// [`Context::apply`] with an owner, if there is one, for kinds that are cached whole: the same guarantees, the same answer.
    ///
    /// # Errors
    /// As [`Context::apply`]; a kind of which only a part is cached, so that what is read of it is not what there is.
    pub async fn ensure<K: Object>(
        &self,
        desired: &K,
        owner: Option<&(dyn Owner + Sync)>,
    ) -> Result<Written<K>, Error> {
        self.expect_whole::<K>(&(), "ensure")?;
        self.apply(desired).owned_by_any(owner).await
    }

    /// An error if what is read of a kind is only a part of each object, which must not be written as the whole.
    pub(crate) fn expect_whole<K: Cached>(&self, kind: &K::DynamicType, verb: &str) -> Result<(), Error> {
        if K::metadata_api()
            || self.0.cache.informer_of::<K>(kind).is_some_and(|informer| informer.erase().is_partial())
        {
            return Err(Error::terminal(format!(
                "the cache keeps only a part of each {}, and {verb} would take the rest for not there: patch or apply what \
                 changes",
                K::kind(kind),
            )));
        }
        Ok(())
    }

    /// What is known of an object, if that is later than `object` and whole: it has what the manager wrote since.
    pub(crate) fn later<K: Object>(&self, object: &K) -> Option<Arc<K>> {
        let informer = self.0.cache.informer::<K>().filter(|informer| !informer.erase().is_partial())?;
        let known = informer.get(&Key::of(object))?;
        let (known_meta, meta) = (known.meta(), object.meta());
        (known_meta.uid == meta.uid && is_newer(Head::of(known_meta), Head::of(meta))).then_some(known)
    }

    /// Adds the finalizer `name`, if it is not there. What the manager wrote to the object since `object` was read is no conflict.
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it.
    pub async fn add_finalizer<K: Object>(&self, object: &K, name: &str) -> Result<(), Error> {
        // One that is being deleted takes no more finalizers.
        let later = self.later(object).filter(|later| later.meta().deletion_timestamp.is_none());
        let mut changed = later.as_deref().unwrap_or(object).clone();
        if finalizer::add(&mut changed, name) { self.write_finalizers(&changed).await } else { Ok(()) }
    }

    /// Takes the finalizer `name` away, if it is there. What the manager wrote to the object since `object` was read is no conflict.
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it.
    pub async fn remove_finalizer<K: Object>(&self, object: &K, name: &str) -> Result<(), Error> {
        let later = self.later(object);
        let mut changed = later.as_deref().unwrap_or(object).clone();
        if finalizer::remove(&mut changed, name) { self.write_finalizers(&changed).await } else { Ok(()) }
    }

    async fn write_finalizers<K: Object>(&self, object: &K) -> Result<(), Error> {
        let meta = object.meta();
        let patch = json!({"metadata": {
            "finalizers": meta.finalizers,
            "resourceVersion": meta.resource_version,
        }});
        self.patch::<K>(&Key::of(object), patch).await.map(|_| ())
    }
}
