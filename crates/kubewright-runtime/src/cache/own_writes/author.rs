//! Who wrote: a reconcile of a controller's key.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::Key;

/// A controller, and the key that it was working on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) controller: Arc<str>,
    pub(crate) key: Key,
}

/// One reconcile, as the author of its writes.
#[derive(Debug)]
pub(crate) struct ActiveReconcile {
    author: Arc<Author>,
    is_over: AtomicBool,
}

/// Ends an [`ActiveReconcile`] when it is dropped.
pub(crate) struct ActiveReconcileGuard(Arc<ActiveReconcile>);

impl ActiveReconcile {
    /// It lasts as long as the guard is held.
    pub(crate) fn begin(author: Author) -> (Arc<Self>, ActiveReconcileGuard) {
        let active = Arc::new(Self { author: Arc::new(author), is_over: AtomicBool::new(false) });
        (active.clone(), ActiveReconcileGuard(active))
    }

    /// The author, as long as the reconcile goes on: one that is over cannot have seen the answer, when a task that it left
    /// behind writes.
    pub(crate) fn author(&self) -> Option<&Arc<Author>> {
        (!self.is_over.load(Ordering::SeqCst)).then_some(&self.author)
    }
}

impl Drop for ActiveReconcileGuard {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}
