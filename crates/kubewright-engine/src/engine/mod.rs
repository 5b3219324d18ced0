//! The engine: the objects of a cluster and what holds for all verbs on them. What is done with an object stands in
//! [`crate::verbs`], one file for each.

pub(crate) mod allocate;
mod api_services;
mod commit;
pub(crate) mod convert;
pub(crate) mod definitions;
pub(crate) mod epochs;
mod node_ports;
mod past;
mod served;
mod settings;
mod waiting;

use std::sync::{Arc, LazyLock};

use kubewright_identity::authn::User;
use kubewright_identity::authz::{Authorizer, Mode};
use kubewright_identity::webhook;
use kubewright_kinds::{Kinds, Summary, unreadable};
use kubewright_meta::ApiError;
use kubewright_store::{Entry, Revision, Snapshot, Store};
use kubewright_world::World;
use parking_lot::Mutex;

pub use api_services::ApiServices;
pub use node_ports::NodePorts;
pub use settings::Settings;

use self::allocate::Allocator;
use self::api_services::Registry;
use self::definitions::Definitions;
use self::epochs::{Epoch, Epochs};
use self::past::Past;
use self::served::Served;
use crate::admission::Admission;
use crate::request::Call;

/// Who writes what nobody has asked for: the API server itself.
pub(crate) static SERVER: LazyLock<User> =
    LazyLock::new(|| User::new("system:apiserver", ["system:masters"]));

/// The manager of what the server writes by itself, as field ownership tells it.
pub(crate) const MANAGER: &str = "kube-apiserver";

/// The objects of a cluster and what holds for all verbs on them.
pub struct Engine {
    world: World,
    settings: Settings,
    store: Arc<dyn Store<Summary>>,
    served: Served,
    authorizer: Authorizer,
    admission: Admission,
    allocator: Allocator,
    definitions: Definitions,
    epochs: Epochs,
    registry: Registry,
    past: Mutex<Past>,
}

impl Engine {
    /// Over a store, with the built-in kinds and those that the stored definitions make.
    #[must_use]
    pub fn new(world: World, store: Arc<dyn Store<Summary>>) -> Self {
        Self::with(world, store, Settings::default())
    }

    /// As [`Self::new`], with other settings.
    #[must_use]
    pub fn with(world: World, store: Arc<dyn Store<Summary>>, settings: Settings) -> Self {
        let clock = world.clock;
        let engine = Self {
            admission: Admission::new(&settings.admission, &world),
            world,
            store,
            served: Served::new(settings.runtime_config.kinds(settings.kubernetes)),
            settings,
            authorizer: Authorizer::new(vec![Mode::Rbac], clock),
            allocator: Allocator::default(),
            definitions: Definitions::default(),
            epochs: Epochs::default(),
            registry: Registry::default(),
            past: Mutex::new(Past::starting(clock.now())),
        };
        definitions::reload(&engine, &engine.snapshot());
        engine
    }

    /// Who may do what is decided by these modes, not by RBAC alone.
    #[must_use]
    pub fn with_authorization(mut self, modes: Vec<Mode>) -> Self {
        self.authorizer = Authorizer::new(modes, self.world.clock);
        self
    }

    /// The kinds that are served now.
    #[must_use]
    pub fn kinds(&self) -> Arc<Kinds> {
        self.served.kinds()
    }

    /// The objects as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<Summary> {
        self.store.snapshot()
    }

    /// The store behind the objects.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store<Summary>> {
        &self.store
    }

    /// What was decided once.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Who may do what.
    #[must_use]
    pub fn authorizer(&self) -> &Authorizer {
        &self.authorizer
    }

    /// What admission keeps between requests.
    #[must_use]
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// The client that calls webhooks.
    #[must_use]
    pub fn webhooks(&self) -> &webhook::Client {
        self.admission.webhooks().client()
    }

    /// The clock and the dice.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// When resets and writes happen.
    pub(crate) fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// The time between two resets that it is now.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epochs.now()
    }

    /// Notes the version of the cluster when five minutes have passed. Called before each commit, so that what was written
    /// before and after them is told apart.
    pub(crate) fn let_time_pass(&self) {
        self.past.lock().pass(self.world.clock.now(), || self.store.revision());
    }

    /// Whether the objects of an older version can still be listed, as far as time goes.
    pub(crate) fn remembers(&self, version: Revision) -> bool {
        self.let_time_pass();
        self.past.lock().reaches(version)
    }

    /// What is known of definitions beside their objects.
    pub(crate) fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// The stored object.
    ///
    /// # Errors
    /// 404; 500 when it is stored in a version that its definition no longer has.
    pub fn entry(&self, call: Call<'_>) -> Result<Arc<Entry<Summary>>, ApiError> {
        let entry = self.stored(call)?;
        unreadable::check(call.kind, &entry)?;
        Ok(entry)
    }

    /// The stored object, whether it can be read or not.
    ///
    /// # Errors
    /// 404.
    pub(crate) fn stored(&self, call: Call<'_>) -> Result<Arc<Entry<Summary>>, ApiError> {
        let entry = self.store.snapshot().get(&call.kind.collection, &call.key()).cloned();
        entry.ok_or_else(|| ApiError::not_found(call.kind, call.name))
    }
}
