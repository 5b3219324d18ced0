//! The way to the store.

use std::sync::Arc;

use kubewright_store::{Change, CommitError, Entry, Expect, Name};

use super::{Registry, Summary};
use crate::error::ApiError;
use crate::kinds::Kind;

impl Registry {
    /// One compare-and-swap of an object of `kind`; `None` when what is there is not what was expected.
    ///
    /// # Errors
    /// 500 when the store has failed: whether the write has happened is then not known, as after any other 500.
    pub(super) async fn commit(
        &self,
        kind: &Kind,
        key: &Name,
        expect: Expect,
        change: Change<Summary>,
    ) -> Result<Option<Arc<Entry<Summary>>>, ApiError> {
        match self.store.commit(&kind.collection, key, expect, change).await {
            Ok(entry) => Ok(Some(entry)),
            Err(CommitError::Conflict(_)) => Ok(None),
            Err(CommitError::Unavailable(why)) => Err(ApiError::internal(&why.to_string())),
        }
    }
}
