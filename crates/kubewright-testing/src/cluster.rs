//! The cluster of a test.

use std::ops::Deref;
use std::sync::Arc;

use kubewright_cluster::{Builder, StartError};
use parking_lot::{Mutex, MutexGuard};

use crate::Deployed;
use crate::history::Subject;

/// How many writes are kept, to be told of.
const JOURNAL: usize = 20_000;

/// A cluster for a test: a control plane in this process, and what tests need. Clones are of the same one; it ends with
/// the last.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
    namespace: Arc<str>,
}

struct Inner {
    cluster: kubewright_cluster::Cluster,
    operators: Mutex<Vec<Deployed>>,
    /// What the test has looked at last.
    looked: Mutex<Vec<Subject>>,
}

impl Cluster {
    /// A cluster in a simulated world with all built-in controllers and one simulated node, for a test that is none of
    /// `#[kubewright::test]`.
    ///
    /// # Errors
    /// [`StartError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn start() -> Result<Self, StartError> {
        Self::of(kubewright_cluster::Cluster::builder()).await
    }

    /// A cluster of other settings, with faults to be had and writes noted.
    ///
    /// # Errors
    /// [`StartError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn of(settings: Builder) -> Result<Self, StartError> {
        let cluster = settings.admin(true).journal(JOURNAL).start().await?;
        let inner = Inner { cluster, operators: Mutex::default(), looked: Mutex::default() };
        Ok(Self { inner: Arc::new(inner), namespace: "default".into() })
    }

    /// The namespace in which the helpers act: the first that the test was given, or `default`.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The same cluster with helpers that act in another namespace, which has to be there.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self { inner: Arc::clone(&self.inner), namespace: namespace.into() }
    }

    /// The operators that [run](Self::run) in it, or did.
    #[must_use]
    pub fn operators(&self) -> Vec<Deployed> {
        self.inner.operators.lock().clone()
    }

    pub(crate) fn add_operator(&self, operator: Deployed) {
        self.inner.operators.lock().push(operator);
    }

    pub(crate) fn looked(&self) -> MutexGuard<'_, Vec<Subject>> {
        self.inner.looked.lock()
    }
}

impl Deref for Cluster {
    type Target = kubewright_cluster::Cluster;

    fn deref(&self) -> &Self::Target {
        &self.inner.cluster
    }
}
