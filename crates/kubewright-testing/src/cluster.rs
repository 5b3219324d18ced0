//! The cluster of a test.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::Client;
use kubewright_cluster::{Builder, StartError};
use kubewright_world::World;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use crate::faults::FaultInjector;
use crate::history::ObjectId;
use crate::ledger;
use crate::operator;
use crate::real::Real;

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
    backend: Backend,
    operators: Mutex<Vec<Arc<operator::State>>>,
    /// What the test has looked at last.
    looked: Mutex<Vec<ObjectId>>,
    injector: FaultInjector,
    ledger: Arc<Mutex<ledger::Entries>>,
    /// What operators come to may depend on what was before.
    has_history: AtomicBool,
}

/// Where the cluster is.
enum Backend {
    /// In this process, in virtual time.
    Simulated(kubewright_cluster::Cluster),
    /// Elsewhere, in real time.
    Real(Box<Real>),
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
        let inner = Inner {
            backend: Backend::Simulated(cluster),
            operators: Mutex::default(),
            looked: Mutex::default(),
            injector: FaultInjector::default(),
            ledger: Arc::default(),
            has_history: AtomicBool::default(),
        };
        Ok(Self { inner: Arc::new(inner), namespace: "default".into() })
    }

    pub(crate) fn real(real: Real, namespace: &str) -> Self {
        let inner = Inner {
            backend: Backend::Real(Box::new(real)),
            operators: Mutex::default(),
            looked: Mutex::default(),
            injector: FaultInjector::default(),
            ledger: Arc::default(),
            has_history: AtomicBool::default(),
        };
        Self { inner: Arc::new(inner), namespace: namespace.into() }
    }

    /// The control plane, where it is in this process.
    pub(crate) fn simulated(&self) -> Option<&kubewright_cluster::Cluster> {
        match &self.inner.backend {
            Backend::Simulated(cluster) => Some(cluster),
            Backend::Real(_) => None,
        }
    }

    /// Whether it is the cluster of a kubeconfig (`real = true`), where an hour takes an hour.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.simulated().is_none()
    }

    /// A client that may do everything.
    #[must_use]
    pub fn client(&self) -> Client {
        match &self.inner.backend {
            Backend::Simulated(cluster) => cluster.client(),
            Backend::Real(real) => real.client.clone(),
        }
    }

    /// The clock and the dice of the cluster.
    #[must_use]
    pub fn world(&self) -> &World {
        match &self.inner.backend {
            Backend::Simulated(cluster) => cluster.world(),
            Backend::Real(real) => &real.world,
        }
    }

    /// Cancelled when the cluster, or the test in it, ends.
    #[must_use]
    pub fn shutdown(&self) -> CancellationToken {
        match &self.inner.backend {
            Backend::Simulated(cluster) => cluster.shutdown(),
            Backend::Real(real) => real.stop.child_token(),
        }
    }

    /// A client for an operator: as its service account, called `program`.
    pub(crate) fn operator_client(
        &self,
        namespace: &str,
        account: &str,
        program: &str,
    ) -> Result<Client, String> {
        match &self.inner.backend {
            Backend::Simulated(cluster) => {
                cluster.client_of_operator(namespace, account, program).map_err(|error| error.to_string())
            }
            Backend::Real(real) => real.client_of(namespace, account).map_err(|error| error.to_string()),
        }
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

    pub(crate) fn states_of_operators(&self) -> MutexGuard<'_, Vec<Arc<operator::State>>> {
        self.inner.operators.lock()
    }

    /// What goes wrong in it by itself.
    pub(crate) fn injector(&self) -> &FaultInjector {
        &self.inner.injector
    }

    /// Effects that the test's fakes have noted.
    pub(crate) fn entries(&self) -> &Arc<Mutex<ledger::Entries>> {
        &self.inner.ledger
    }

    /// Says that what operators of this test come to may depend on what was before, and not only on what is asked for: such as on
    /// what is kept when something shrinks. It is not compared then with what they make of the same objects from scratch.
    pub fn may_depend_on_history(&self) {
        self.inner.has_history.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_history(&self) -> bool {
        self.inner.has_history.load(Ordering::Relaxed)
    }

    pub(crate) fn looked(&self) -> MutexGuard<'_, Vec<ObjectId>> {
        self.inner.looked.lock()
    }
}

/// # Panics
/// In the real cluster of a test with `real = true`.
impl Deref for Cluster {
    type Target = kubewright_cluster::Cluster;

    fn deref(&self) -> &Self::Target {
        let Backend::Simulated(cluster) = &self.inner.backend else {
            panic!("this test runs in a real cluster: there is no control plane in this process to be asked");
        };
        cluster
    }
}
