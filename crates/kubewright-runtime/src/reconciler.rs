//! What an operator's author writes.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;

use crate::{Context, Error, Key};

/// Result of a reconcile that went well: whether and when its key is requeued. Its back-off starts anew in both cases.
///
/// When it did not go well there is nothing to choose: an [`Error`] brings the key back, later each time. "Failed, and in an
/// hour again" cannot be said:
///
/// ```compile_fail,E0308
/// use std::time::Duration;
/// use kubewright_runtime::{Error, Outcome};
///
/// fn wrong() -> Result<Outcome, Error> {
///     (Outcome::RequeueAfter(Duration::from_secs(3600)), Error::new("not yet"))
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing until the next event. What this reconcile wrote itself [is none](crate::Controller::own_events).
    Done,
    /// Another reconcile after this time, or sooner if an event comes first (which then decides anew).
    RequeueAfter(Duration),
}

impl Outcome {
    /// After how long another reconcile is asked for, if one is.
    #[must_use]
    pub fn requeue_after(self) -> Option<Duration> {
        match self {
            Self::Done => None,
            Self::RequeueAfter(wait) => Some(wait),
        }
    }

    /// What two parts of a reconcile ask for together: the earlier requeue, or none where neither asks for one (Cluster API's
    /// `LowestNonZeroResult`).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kubewright_runtime::Outcome;
    /// let (minute, hour) = (Outcome::RequeueAfter(Duration::from_secs(60)), Outcome::RequeueAfter(Duration::from_secs(3600)));
    /// assert_eq!(hour.sooner(minute).sooner(Outcome::Done), minute);
    /// assert_eq!(Outcome::Done.sooner(Outcome::Done), Outcome::Done);
    /// ```
    #[must_use]
    pub fn sooner(self, other: Self) -> Self {
        let waits = [self.requeue_after(), other.requeue_after()];
        waits.into_iter().flatten().min().map_or(Self::Done, Self::RequeueAfter)
    }
}

/// Brings the world in line with what one object asks for.
///
/// `reconcile` is given a key; the object may have changed many times since the event or be gone
/// (`ctx.get::<K>(key)` is `None`), and it may be called when nothing is to be done. It must not depend on what
/// happened, only on what is. Two calls for one key never overlap. A panic inside is caught, counted and retried.
///
/// Write it as a plain `async fn`:
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::{Context, Error, Key, Outcome, Reconciler};
///
/// struct Greeter;
///
/// impl Reconciler for Greeter {
///     async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
///         if let Some(config) = ctx.get::<ConfigMap>(key) {
///             println!("{key} has {} entries", config.data.as_ref().map_or(0, |data| data.len()));
///         }
///         Ok(Outcome::Done)
///     }
/// }
/// ```
pub trait Reconciler: Send + Sync + 'static {
    /// Reconciles the object named `key`.
    ///
    /// # Errors
    /// Any error is retried with the key's back-off (5 ms, doubled each time, up to 1000 s), except
    /// [`Error::Terminal`], which waits for the next event, and those that say [when](Error::retry_after).
    fn reconcile(&self, ctx: &Context, key: &Key) -> impl Future<Output = Result<Outcome, Error>> + Send;
}

/// A [`Reconciler`] whose type is forgotten.
pub(crate) trait DynReconciler: Send + Sync {
    fn reconcile<'a>(&'a self, ctx: &'a Context, key: &'a Key) -> BoxFuture<'a, Result<Outcome, Error>>;
}

impl<R: Reconciler> DynReconciler for R {
    fn reconcile<'a>(&'a self, ctx: &'a Context, key: &'a Key) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(Reconciler::reconcile(self, ctx, key))
    }
}

impl<R: Reconciler> Reconciler for Arc<R> {
    fn reconcile(&self, ctx: &Context, key: &Key) -> impl Future<Output = Result<Outcome, Error>> + Send {
        (**self).reconcile(ctx, key)
    }
}
