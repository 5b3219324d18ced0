//! What resets and writes know of each other.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use kubewright_kinds::Summary;
use kubewright_store::Snapshot;
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What resets and writes know of each other: no write is committed while a reset is under way, or if it began before one.
#[derive(Default)]
pub(crate) struct Epochs {
    /// Read while a write is committed, written while a reset is under way.
    gate: RwLock<()>,
    /// How many resets there were.
    passed: AtomicU64,
    /// What a reset goes back to.
    origin: OnceCell<Snapshot<Summary>>,
}

/// The time between two resets in which a write began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

impl Epochs {
    /// The current one.
    pub(crate) fn now(&self) -> Epoch {
        Epoch(self.passed.load(Ordering::Acquire))
    }

    /// Keeps resets away until the guard is dropped.
    pub(crate) async fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().await
    }

    /// Begins another one: keeps writes away until the guard is dropped, and for good those that began before.
    pub(crate) async fn next(&self) -> RwLockWriteGuard<'_, ()> {
        let alone = self.gate.write().await;
        self.passed.fetch_add(1, Ordering::AcqRel);
        alone
    }

    /// Keeps what a reset goes back to; later calls change nothing.
    pub(crate) fn keep_origin(&self, now: Snapshot<Summary>) {
        // It has been kept already.
        let _ = self.origin.set(now);
    }

    /// What a reset goes back to: what was kept, else what is `made`.
    ///
    /// # Errors
    /// Those of `made`.
    pub(crate) async fn origin<E, F: Future<Output = Result<Snapshot<Summary>, E>>>(
        &self,
        made: impl FnOnce() -> F,
    ) -> Result<Snapshot<Summary>, E> {
        self.origin.get_or_try_init(made).await.cloned()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use kubewright_store::{Memory, Revision, Store};

    use super::*;

    #[tokio::test]
    async fn a_write_waits_for_a_reset_and_is_of_an_epoch_that_is_over() {
        let epochs = Epochs::default();
        let began = epochs.now();
        let reset = epochs.next().await;
        assert!(epochs.enter().now_or_never().is_none(), "a reset is under way");
        drop(reset);
        assert!(epochs.enter().now_or_never().is_some());
        assert_ne!(epochs.now(), began);
    }

    #[tokio::test]
    async fn what_a_reset_goes_back_to_is_kept_once() {
        let epochs = Epochs::default();
        let made = async || Err::<Snapshot<Summary>, &str>("there was none");
        assert!(epochs.origin(made).await.is_err());
        epochs.keep_origin(Memory::new().snapshot());
        assert_eq!(epochs.origin(made).await.map(|origin| origin.revision()), Ok(Revision(0)));
    }
}
