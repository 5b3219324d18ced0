//! Cleaning up before an object may go.

use crate::{
    Context, Error, EventType, Object, Written,
    conditions::{NewCondition, Status},
    finalizer,
};

/// With the name of a finalizer as its value (or `"*"` for all), on an object that is being deleted, its cleanup is given up:
/// the way out when what is to be cleaned up is gone for good. Who may edit the object may do so; an Event tells of it.
pub const SKIP_CLEANUP: &str = "kubewright.dev/skip-cleanup";

/// The type of the condition that tells of a cleanup that fails.
pub const CLEANUP_FAILED: &str = "CleanupFailed";

/// State of an object that is [guarded](Context::guard) by a finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarded {
    /// It lives, and carries the finalizer: what needs cleaning up may be made now.
    Alive,
    /// It is being deleted, and there is nothing (more) to clean up here.
    Cleaned,
}

impl Context {
    /// Guards an object with a finalizer: `cleanup` happens before it goes. To be called at the beginning of a reconcile, and
    /// to be gone on from with [`Guarded::Alive`] only.
    ///
    /// What is guaranteed:
    /// - While the object lives, the finalizer is on the server before this returns: nothing that is made afterwards is
    ///   left behind, whenever the operator dies.
    /// - Once it is being deleted, `cleanup` runs until it succeeds once, and again if the operator died, or somebody else wrote,
    ///   before the finalizer was taken away. So it has to be fit to run twice, and to find nothing.
    /// - A cleanup that fails fails the reconcile, which is tried again with back-off; people see a Warning Event
    ///   (`CleanupFailed`) and, where the kind has `status.conditions`, a condition of that type with the error.
    /// - An object to which the finalizer was never added is not cleaned up.
    /// - The way out: the annotation [`SKIP_CLEANUP`].
    /// - That the finalizer was added makes no later write of the same reconcile a conflict: [`Context::status`], `apply` and the
    ///   finalizers begin with what is in the cache, which has it. For [`Context::update`] read the object again.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Error, Guarded, Key, Outcome};
    /// # async fn delete_bucket() -> Result<(), Error> { Ok(()) }
    /// # async fn create_bucket() -> Result<(), Error> { Ok(()) }
    /// # async fn example(ctx: &Context, key: &Key) -> Result<Outcome, Error> {
    /// let Some(bucket) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
    /// match ctx.guard(&*bucket, "example.com/bucket", || async { delete_bucket().await }).await? {
    ///     Guarded::Cleaned => Ok(Outcome::Done),
    ///     Guarded::Alive => {
    ///         create_bucket().await?;
    ///         Ok(Outcome::Done)
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// What `cleanup` fails with; what the server refuses when the finalizer is added or taken away.
    pub async fn guard<K, F>(
        &self,
        object: &K,
        finalizer: &str,
        cleanup: impl FnOnce() -> F + Send,
    ) -> Result<Guarded, Error>
    where
        K: Object,
        F: Future<Output = Result<(), Error>> + Send,
    {
        if object.meta().deletion_timestamp.is_none() {
            self.add_finalizer(object, finalizer).await?;
            return Ok(Guarded::Alive);
        }
        if !finalizer::has(object, finalizer) {
            return Ok(Guarded::Cleaned);
        }
        if is_skipped(object, finalizer) {
            let note =
                format!("the cleanup of {finalizer} is given up, as the annotation {SKIP_CLEANUP} says");
            self.event(object, EventType::Warning, "CleanupSkipped", &note);
        } else if let Err(error) = cleanup().await {
            self.record_failure(object, finalizer, &error).await;
            return Err(error);
        }
        match self.remove_finalizer(object, finalizer).await {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(Guarded::Cleaned),
        }
    }

    async fn record_failure<K: Object>(&self, object: &K, finalizer: &str, error: &Error) {
        let note = format!("{finalizer}: {error}");
        self.event(object, EventType::Warning, CLEANUP_FAILED, &note);
        let wanted =
            NewCondition::new(CLEANUP_FAILED, Status::True, "CleanupFailed").message(note).of(object);
        if let Err(error) = self.set_condition(object, &wanted).await {
            tracing::debug!(controller = self.controller(), %error, "cannot set a condition");
        }
    }

    /// Makes a condition in `status.conditions` say what is wanted, whatever the kind's type looks like; writes nothing when it
    /// does. For several, or more of the status, there is [`Context::status`].
    ///
    /// # Errors
    /// What the server refuses: [`Error::is_conflict`] when somebody else wrote since, as conditions are one list; and a kind
    /// without a status.
    pub async fn set_condition<K: Object>(
        &self,
        object: &K,
        wanted: &NewCondition,
    ) -> Result<Written<K>, Error> {
        self.status(object).condition(wanted.clone()).silent().await
    }
}

fn is_skipped<K: Object>(object: &K, finalizer: &str) -> bool {
    let value = object.meta().annotations.as_ref().and_then(|all| all.get(SKIP_CLEANUP));
    value.is_some_and(|value| value == finalizer || value == "*")
}
