//! Writes of what is desired: none, when it is there.

use std::sync::Arc;

use serde_json::json;

use super::Context;
use crate::{
    Error, Key, Object,
    ensure::{self, Ensured},
    finalizer,
    owner::Owner,
};

impl Context {
    /// Makes the stored object have every field that `desired` has; fields that `desired` leaves out are not looked
    /// at, so what the server defaulted or another controller set does not count as a difference. `owner` becomes its
    /// controller. A pass that finds nothing to change writes nothing.
    ///
    /// Maps are compared key by key, lists as a whole, element by element; finalizers and owners are added to those that
    /// the object has; `status` is left alone. A Secret's `stringData` is compared with the data that is made of it. A
    /// change is written as a merge patch of what differs, which the server refuses when the cache is behind. Values that
    /// the server writes in another way than `desired` (a quantity of `1000m`, stored as `1`) differ for ever: desire them
    /// as the server writes them.
    ///
    /// A Pod and a ServiceAccount share their lists with others: admission gives a Pod volumes, mounts, tolerations and
    /// sidecars, and other controllers a ServiceAccount secrets. Elements that can be told apart (volumes by their name,
    /// mounts by their path, tolerations by key, operator, value and effect) are wanted there one by one, and those of others stay.
    /// (A Pod's `schedulingGates` are wanted as a whole: one that is not wanted is lifted.)
    /// What was wanted before is not remembered: an element that `desired` no longer has counts as somebody else's there,
    /// and a key of a map that it no longer has does so everywhere. Take it out yourself.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kubewright_runtime::{Context, Ensured, Error, Key};
    /// # async fn example(ctx: &Context, owner: &ConfigMap, wanted: &Secret) -> Result<(), Error> {
    /// match ctx.ensure(wanted, Some(owner)).await? {
    ///     Ensured::Created(_) => println!("it was not there"),
    ///     Ensured::Updated { changed, .. } => println!("{changed}"), // metadata.labels.app: "other" -> "web"
    ///     Ensured::Unchanged(_) => {}                                // nothing was written
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the server refuses; an object that another owner controls; an owner in another namespace, or one that is gone
    /// (as [`Context::create`]).
    ///
    /// # Panics
    /// As [`Context::get`].
    pub async fn ensure<K: Object>(
        &self,
        desired: &K,
        owner: Option<&(dyn Owner + Sync)>,
    ) -> Result<Ensured<K>, Error> {
        self.expect_whole::<K>("ensure")?;
        let key = Key::of(desired);
        let reference = owner.map(|owner| ensure::reference(desired, owner)).transpose()?;
        match self.get::<K>(&key) {
            None => {
                let mut object = desired.clone();
                if let Some(reference) = reference {
                    let owners = object.meta_mut().owner_references.get_or_insert_default();
                    owners.retain(|owner| owner.uid != reference.uid);
                    owners.push(reference);
                }
                let created = self.create(&object).await?;
                tracing::debug!(controller = %self.0.sink.controller, kind = %K::kind(&()), %key, "created");
                Ok(Ensured::Created(Arc::new(created)))
            }
            Some(current) => match ensure::difference(desired, &*current, reference.as_ref())? {
                None => Ok(Ensured::Unchanged(current)),
                Some(difference) => {
                    let updated = self.patch(&key, difference.patch).await?;
                    tracing::debug!(
                        controller = %self.0.sink.controller, kind = %K::kind(&()), %key, changed = %difference.text,
                        "updated"
                    );
                    Ok(Ensured::Updated { object: Arc::new(updated), changed: difference.text })
                }
            },
        }
    }

    /// An error if what is read of a kind is only a part of each object, which must not be written as the whole.
    pub(crate) fn expect_whole<K: Object>(&self, verb: &str) -> Result<(), Error> {
        if K::metadata_api()
            || self.0.cache.informer::<K>().is_some_and(|informer| informer.erase().is_partial())
        {
            return Err(Error::terminal(format!(
                "the cache keeps only a part of each {}, and {verb} would take the rest for not there: patch or apply what \
                 changes",
                K::kind(&()),
            )));
        }
        Ok(())
    }

    /// Adds the finalizer `name`, if it is not there.
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it.
    pub async fn add_finalizer<K: Object>(&self, object: &K, name: &str) -> Result<(), Error> {
        let mut changed = object.clone();
        if finalizer::add(&mut changed, name) { self.write_finalizers(&changed).await } else { Ok(()) }
    }

    /// Takes the finalizer `name` away, if it is there.
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it.
    pub async fn remove_finalizer<K: Object>(&self, object: &K, name: &str) -> Result<(), Error> {
        let mut changed = object.clone();
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
