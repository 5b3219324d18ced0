//! The cluster of a test.

use std::ops::Deref;
use std::sync::Arc;

use kubewright_cluster::StartError;
use parking_lot::Mutex;

use crate::Deployed;

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
        kubewright_cluster::Cluster::start().await.map(Self::from)
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

    /// The operators that [run](Self::run) in it.
    #[must_use]
    pub fn operators(&self) -> Vec<Deployed> {
        self.inner.operators.lock().clone()
    }

    pub(crate) fn add_operator(&self, operator: Deployed) {
        self.inner.operators.lock().push(operator);
    }
}

impl From<kubewright_cluster::Cluster> for Cluster {
    fn from(cluster: kubewright_cluster::Cluster) -> Self {
        let inner = Inner { cluster, operators: Mutex::default() };
        Self { inner: Arc::new(inner), namespace: "default".into() }
    }
}

impl Deref for Cluster {
    type Target = kubewright_cluster::Cluster;

    fn deref(&self) -> &Self::Target {
        &self.inner.cluster
    }
}
