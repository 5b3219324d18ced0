//! A store in memory with a hook of the test's around its commits.

use std::sync::Arc;

use futures::future::BoxFuture;
use kubewright_kinds::Summary;
use kubewright_store::{
    Change, Commit, Cursor, Expect, Gone, Memory, Name, NoRoom, Revision, Snapshot, Store,
};

/// What a test does around commits.
pub trait Hook: Send + Sync + 'static {
    /// Before the commit of a key, on the thread that commits.
    ///
    /// # Errors
    /// What there is in place of the commit.
    fn before(&self, _key: &Name) -> Result<(), NoRoom> {
        Ok(())
    }

    /// After a commit, before its writer goes on.
    fn after(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Whether the store is well.
    ///
    /// # Errors
    /// What is wrong with it.
    fn health(&self) -> Result<(), Arc<str>> {
        Ok(())
    }
}

pub struct Hooked<H> {
    store: Memory<Summary>,
    hook: H,
}

impl<H> Hooked<H> {
    pub fn new(hook: H) -> Arc<Self> {
        Arc::new(Self { store: Memory::new(), hook })
    }
}

impl<H: Hook> Store<Summary> for Hooked<H> {
    fn commit(
        &self,
        collection: &Name,
        key: &Name,
        expect: Expect,
        change: Change<Summary>,
    ) -> Commit<'_, Summary> {
        if let Err(refused) = self.hook.before(key) {
            return Box::pin(async { Err(refused.into()) });
        }
        let commit = self.store.commit(collection, key, expect, change);
        Box::pin(async move {
            let outcome = commit.await;
            self.hook.after().await;
            outcome
        })
    }

    fn snapshot(&self) -> Snapshot<Summary> {
        self.store.snapshot()
    }

    fn snapshot_at(&self, collection: &Name, revision: Revision) -> Result<Snapshot<Summary>, Gone> {
        self.store.snapshot_at(collection, revision)
    }

    fn watch(&self, collection: &Name, after: Revision) -> Result<Cursor<Summary>, Gone> {
        self.store.watch(collection, after)
    }

    fn compact(&self, revision: Revision) {
        self.store.compact(revision);
    }

    fn health(&self) -> Result<(), Arc<str>> {
        self.hook.health()
    }
}
