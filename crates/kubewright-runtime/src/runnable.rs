//! What else a manager runs beside its controllers.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::Error;

/// Phase in which a runnable runs. In this order things are started, and stopped the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Phase {
    /// Before any cache is filled, on every replica: what the API server may have to ask before it answers a list, such as a
    /// server of webhooks.
    Server,
    /// Once the caches are filled, on every replica.
    EveryReplica,
    /// Once the caches are filled, on the leader, for as long as it leads: again whenever it does. In a manager that elects
    /// nobody, always.
    Leader,
}

/// Something that runs as long as its manager, or as long as its replica leads. Every function from a token to a future is
/// one:
///
/// ```
/// # use kubewright_runtime::{CancellationToken, Error, Manager, Phase};
/// # fn example(manager: &mut Manager) {
/// manager.run_also("housekeeping", Phase::Leader, |stop: CancellationToken| async move {
///     while stop.run_until_cancelled(tokio::time::sleep(std::time::Duration::from_secs(60))).await.is_some() {
///         // ...
///     }
///     Ok::<(), Error>(())
/// });
/// # }
/// ```
pub trait Runnable: Send + Sync + 'static {
    /// Runs until it has nothing more to do, or soon after `stop`. A lost lease drops it where it waits.
    ///
    /// # Errors
    /// Any error ends the manager, with that error.
    fn run(&self, stop: CancellationToken) -> impl Future<Output = Result<(), Error>> + Send;
}

impl<F, R> Runnable for F
where
    F: Fn(CancellationToken) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), Error>> + Send,
{
    fn run(&self, stop: CancellationToken) -> impl Future<Output = Result<(), Error>> + Send {
        self(stop)
    }
}

/// A [`Runnable`] whose type is forgotten.
pub(crate) trait DynRunnable: Send + Sync {
    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), Error>>;
}

impl<R: Runnable> DynRunnable for R {
    fn run(&self, stop: CancellationToken) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(Runnable::run(self, stop))
    }
}

/// A runnable of a manager.
#[derive(Clone)]
pub(crate) struct Extra {
    pub(crate) name: String,
    pub(crate) phase: Phase,
    pub(crate) work: Arc<dyn DynRunnable>,
}
