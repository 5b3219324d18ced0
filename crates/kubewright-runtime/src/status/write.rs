//! A status that is written at once: conditions, other fields, and which generation they are about.

use std::{future::IntoFuture, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::object::HasStatus;
use serde_json::{Value, json};

use super::difference;
use crate::{
    Context, Error, Key, Object, Written,
    conditions::{self, NewCondition},
    object::{fields_of, from_value, to_value},
};

type Change<'a, K> = Box<dyn FnOnce(&mut K) + Send + 'a>;

/// A write of a status that is about to happen: it does when it is awaited. Made by [`Context::status`].
#[must_use = "nothing is written until it is awaited"]
pub struct StatusWrite<'a, K> {
    context: &'a Context,
    object: &'a K,
    changes: Vec<Change<'a, K>>,
    conditions: Vec<NewCondition>,
    /// Whether status and conditions say which generation they are about.
    is_observing: bool,
}

impl<'a, K: Object> StatusWrite<'a, K> {
    fn new(context: &'a Context, object: &'a K) -> Self {
        Self { context, object, changes: Vec::new(), conditions: Vec::new(), is_observing: true }
    }

    /// Makes a condition say this, whatever the kind's type looks like. Unless it says itself of which generation it is
    /// ([`NewCondition::of`]), it is of the object's.
    pub fn condition(mut self, condition: NewCondition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Says nothing of the generation.
    pub(crate) fn silent(mut self) -> Self {
        self.is_observing = false;
        self
    }

    async fn send(self) -> Result<Written<K>, Error> {
        let later = self.context.later(self.object);
        let base = later.as_deref().unwrap_or(self.object);
        let mut before = status_of(base)?;
        let mut changed = base.clone();
        self.changes.into_iter().for_each(|change| change(&mut changed));
        let mut after = status_of(&changed)?;
        for status in [&mut before, &mut after] {
            if status.is_null() {
                *status = json!({});
            }
        }
        let generation = self.object.meta().generation;
        if !self.conditions.is_empty() {
            let mut all: Vec<Condition> = match &after["conditions"] {
                Value::Null => Vec::new(),
                conditions => from_value(conditions.clone())?,
            };
            let (now, mut is_changed) = (self.context.world().clock.now(), false);
            for condition in self.conditions {
                let condition = if self.is_observing { condition.or_of(generation) } else { condition };
                is_changed |= conditions::set(&mut all, &condition, now);
            }
            // Of some kinds the conditions have other fields: as long as none changes they stay as they are.
            if is_changed {
                after["conditions"] = to_value(&all)?;
            }
        }
        if self.is_observing
            && let Some(generation) = generation
            && (!before["observedGeneration"].is_null() || has_observed_generation(&changed, generation))
        {
            after["observedGeneration"] = generation.into();
        }
        let Some(difference) = difference(&before, &after) else {
            return Ok(Written::Unchanged(later.unwrap_or_else(|| Arc::new(self.object.clone()))));
        };
        let told = difference.to_string();
        let version = &base.meta().resource_version;
        let patch = json!({"metadata": {"resourceVersion": version}, "status": difference});
        let object = Arc::new(self.context.patch_status::<K>(&Key::of(self.object), patch).await?);
        Ok(Written::Updated { object, changed: told })
    }
}

impl<'a, K: Object + HasStatus> StatusWrite<'a, K>
where
    K::Status: Default,
{
    /// Changes the status: `set` gets the one that there is, or an empty one.
    pub fn set(mut self, set: impl FnOnce(&mut K::Status) + Send + 'a) -> Self {
        self.changes.push(Box::new(|object: &mut K| set(object.status_mut().get_or_insert_default())));
        self
    }
}

fn status_of<K: Object>(object: &K) -> Result<Value, Error> {
    Ok(fields_of(object, |field| field == "status")?.get_mut("status").map(Value::take).unwrap_or_default())
}

/// Whether the kind's status has `observedGeneration`: what its type does not know is not kept when it is read.
fn has_observed_generation<K: Object>(object: &K, generation: i64) -> bool {
    let Ok(mut with) = to_value(object) else { return false };
    if !with["status"].is_object() {
        with["status"] = json!({});
    }
    with["status"]["observedGeneration"] = generation.into();
    let read = from_value::<K>(with).ok().and_then(|object| status_of(&object).ok());
    read.is_some_and(|status| status["observedGeneration"] == generation)
}

impl<'a, K: Object> IntoFuture for StatusWrite<'a, K> {
    type Output = Result<Written<K>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}

impl Context {
    /// Writes the status of an object in one request: any number of conditions, other fields, and the generation that they are
    /// about, which is that of `object` (`status.observedGeneration`, where the kind has it). What is not named stays. When the status
    /// says all of it already, nothing is written.
    ///
    /// What the manager wrote to the object since `object` was read is no conflict: the write begins with the later of `object` and what
    /// is in the cache. What others wrote is one, as long as the cache does not have it.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kubewright_runtime::{Context, Error, conditions::{NewCondition, Status}};
    /// # async fn example(ctx: &Context, pod: &Pod) -> Result<(), Error> {
    /// ctx.status(pod)
    ///     .condition(NewCondition::new("Ready", Status::False, "Progressing").message("1 of 3"))
    ///     .condition(NewCondition::new("Available", Status::True, "MinimumAvailable"))
    ///     .await?; // of a kind of your own: .set(|status| status.ready = 1)
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it; conditions that are none; a kind without a status.
    pub fn status<'a, K: Object>(&'a self, object: &'a K) -> StatusWrite<'a, K> {
        StatusWrite::new(self, object)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};

    use super::*;

    #[test]
    fn a_kind_has_an_observed_generation_if_its_type_keeps_it() {
        assert!(has_observed_generation(&Deployment::default(), 3));
        assert!(!has_observed_generation(&k8s_openapi::api::core::v1::Namespace::default(), 3));
        assert!(status_of(&Pod::default()).is_ok_and(|status| status.is_null()));
    }
}
