//! The way to the store.

use std::sync::Arc;

use kubewright_kinds::{Kind, Summary};
use kubewright_meta::ApiError;
use kubewright_store::{Change, CommitError, Entry, Expect, Name};

use super::epochs::Epoch;
use super::{Engine, definitions};

impl Engine {
    /// One compare-and-swap of an object of `kind`, decided on in `epoch`; `None` when what is there is not what was
    /// expected.
    ///
    /// # Errors
    /// 409 when the cluster was reset since; 500 when the store has no room (kube-apiserver's, too, where etcd has none), and
    /// when it has failed: whether the write has happened is then not known, as after any other 500.
    pub(crate) async fn commit(
        &self,
        epoch: Epoch,
        kind: &Kind,
        key: &Name,
        expect: Expect,
        change: Change<Summary>,
    ) -> Result<Option<Arc<Entry<Summary>>>, ApiError> {
        let _no_reset = self.epochs.enter().await;
        if self.epochs.now() != epoch {
            let name = key.rsplit('/').next().unwrap_or_default();
            return Err(ApiError::conflict(
                kind,
                name,
                "the cluster was reset while the request was under way",
            ));
        }
        self.let_time_pass();
        let outcome = if definitions::is_definition(kind) {
            definitions::commit(self, kind, key, expect, change).await
        } else {
            self.store.commit(&kind.collection, key, expect, change).await
        };
        match outcome {
            Ok(entry) => Ok(Some(entry)),
            Err(CommitError::Conflict(_)) => Ok(None),
            Err(CommitError::NoRoom(why)) => Err(ApiError::internal(&why.to_string())),
            Err(CommitError::Unavailable(why)) => Err(ApiError::internal(&why.to_string())),
        }
    }
}
