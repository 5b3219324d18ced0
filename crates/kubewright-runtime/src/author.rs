//! Who wrote: what keeps a controller from being woken by what it did itself.

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
pub(crate) struct Attempt {
    author: Arc<Author>,
    is_over: AtomicBool,
}

impl Attempt {
    pub(crate) fn begin(author: Author) -> Arc<Self> {
        Arc::new(Self { author: Arc::new(author), is_over: AtomicBool::new(false) })
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Who wrote, as long as the reconcile goes on: one that is over cannot have seen the answer, when a task that it left
    /// behind writes.
    pub(crate) fn author(&self) -> Option<&Arc<Author>> {
        (!self.is_over.load(Ordering::SeqCst)).then_some(&self.author)
    }
}
