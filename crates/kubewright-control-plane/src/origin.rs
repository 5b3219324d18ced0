//! What simulated clusters begin with: made once in a process, and shared.
//!
//! The first objects of a cluster are a hundred and more, most of them roles, and each is a write with all that belongs to
//! it. A simulated cluster of default settings has the same ones whatever its seed, so that a process makes them for the
//! first of its clusters, in a world of their own, and the store of each begins with a snapshot of that.

use std::sync::{Arc, OnceLock};

use kubewright_engine::bootstrap::bootstrap;
use kubewright_engine::{Engine, Settings};
use kubewright_identity::authn::published;
use kubewright_kinds::Summary;
use kubewright_spec::Version;
use kubewright_store::{Memory, Snapshot, Store};
use kubewright_world::World;

use crate::StartError;
use crate::front_proxy::OwnProxy;
use crate::journal::{Journal, Journaled, Written};

/// The first objects of a cluster, and how they were written.
pub(crate) struct Origin {
    snapshot: Snapshot<Summary>,
    pub(crate) written: Vec<Written>,
    /// What is shown to API servers behind each of these clusters.
    pub(crate) proxy: OwnProxy,
}

impl Origin {
    /// That of simulated clusters of default settings, of a version of Kubernetes.
    ///
    /// # Errors
    /// When one of the objects is refused, which would be a defect of their table, or the machine gives no entropy.
    pub(crate) async fn shared(version: Version) -> Result<&'static Self, StartError> {
        static SHARED: [OnceLock<Origin>; Version::ALL.len()] =
            [const { OnceLock::new() }; Version::ALL.len()];
        let shared = &SHARED[version as usize];
        if let Some(made) = shared.get() {
            return Ok(made);
        }
        // Whoever makes it at the same time makes the same.
        let made = Self::make(version).await?;
        Ok(shared.get_or_init(|| made))
    }

    async fn make(version: Version) -> Result<Self, StartError> {
        let world = World::simulated(0);
        let proxy = OwnProxy::new(&world)?;
        let authentication = published(None, Some(&proxy.trust));
        let settings = Settings { kubernetes: version, authentication, ..Settings::default() };
        let journal = Journal::new(world.clock, usize::MAX, &[]);
        let store = Arc::new(Journaled { store: Arc::new(Memory::new()), journal: journal.clone() });
        bootstrap(&Engine::with(world, Arc::clone(&store) as _, settings)).await?;
        Ok(Self { snapshot: store.snapshot(), written: journal.written(|_| true), proxy })
    }

    /// A store that begins with it.
    pub(crate) fn store(&self) -> Memory<Summary> {
        Memory::starting_from(&self.snapshot)
    }
}
