//! The object engine: one way through create, read, update, patch and delete for every kind, built-in or custom.
//!
//! A kind is only asked for its data and its pure functions ([`kubewright_kinds`]); what is done with an object stands here,
//! one file for each verb.

mod allocate;
mod bind;
pub mod body;
mod commit;
mod continue_token;
mod convert;
mod create;
mod custom;
mod definitions;
mod delete;
mod evict;
mod flows;
mod list_options;
mod member;
mod node_ports;
mod options;
mod ownership;
pub mod part;
mod policies;
mod read;
mod reset;
mod scale;
mod select;
mod settings;
mod tags;
mod type_of_body;
mod update;
mod used_secrets;
mod waiting;

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::StatusCode;
use kubewright_identity::authn::User;
use kubewright_identity::authz::{Authorizer, Mode};
use kubewright_identity::webhook;
use kubewright_kinds::{Kind, Kinds, Role, Summary, encode};
use kubewright_meta::ApiError;
use kubewright_store::{Entry, Name, Snapshot, Store};
use kubewright_world::World;

pub use body::FieldValidation;
pub use body::review_of;
pub use list_options::{ListOptions, VersionMatch};
pub use member::Member;
pub use node_ports::NodePorts;
pub use options::{DeleteOptions, Propagation, WriteOptions};
pub use part::part_of;
pub(crate) use read::too_old;
pub use read::{List, expired_page};
pub use scale::paths as scale_paths;
pub use settings::Settings;
pub use tags::{tags, tags_of};
pub use update::Part;

use crate::admission::Dynamic;

/// The objects of a cluster and the rules for changing them.
pub struct Registry {
    world: World,
    settings: Settings,
    store: Arc<dyn Store<Summary>>,
    kinds: ArcSwap<Kinds>,
    authorizer: Authorizer,
    dynamic: Dynamic,
    converted: convert::Converted,
    /// Held while something that is unique in the cluster (a cluster IP, a node port) is chosen and committed.
    allocating: tokio::sync::Mutex<()>,
    /// The definitions that lack a name.
    waiting: parking_lot::Mutex<waiting::Waiting>,
    /// Held while a definition and what follows from it change.
    defining: tokio::sync::Mutex<()>,
    /// Held while a definition is committed, and with it the set of kinds changes.
    serving: tokio::sync::Mutex<()>,
    /// What resets and writes know of each other.
    epochs: reset::Epochs,
}

/// One object (or, with an empty name, one place) of a kind, and who asks.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The kind, in the version asked for.
    pub kind: &'a Arc<Kind>,
    /// Empty for cluster-wide kinds, and for all namespaces.
    pub namespace: &'a str,
    /// Empty where no single object is meant.
    pub name: &'a str,
    /// Who asks.
    pub user: &'a User,
}

impl Call<'_> {
    /// The key of the object in its collection.
    fn key(&self) -> Name {
        key(self.namespace, self.name)
    }
}

/// The key of an object: `namespace/name`, or the name alone.
fn key(namespace: &str, name: &str) -> Name {
    if namespace.is_empty() { name.into() } else { format!("{namespace}/{name}").into() }
}

/// What a write gives back.
#[derive(Debug)]
pub struct Written {
    /// 201 for what was created, else 200.
    pub code: StatusCode,
    /// What it came to.
    pub result: WriteResult,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

/// The result of a write, as JSON.
#[derive(Debug)]
pub enum WriteResult {
    /// An object of the kind or a list of such, in whatever shape the client wants; of a subresource, its view of the object.
    Object(Bytes),
    /// A Status, which stays one whatever shape is wanted.
    Status(Bytes),
}

impl WriteResult {
    /// Its bytes, whatever it is.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Object(bytes) | Self::Status(bytes) => bytes,
        }
    }
}

impl From<Bytes> for WriteResult {
    fn from(object: Bytes) -> Self {
        Self::Object(object)
    }
}

impl Written {
    /// The outcome of a write: warnings are told of one that failed, too.
    fn new(
        code: StatusCode,
        outcome: Result<impl Into<WriteResult>, ApiError>,
        warnings: Vec<String>,
    ) -> Result<Self, ApiError> {
        match outcome {
            Ok(result) => Ok(Self { code, result: result.into(), warnings }),
            Err(error) => Err(error.with_warnings(warnings)),
        }
    }
}

impl Registry {
    /// Over a store, with the built-in kinds and those that the stored definitions make.
    #[must_use]
    pub fn new(world: World, store: Arc<dyn Store<Summary>>) -> Self {
        Self::with(world, store, Settings::default())
    }

    /// As [`Self::new`], with other settings.
    #[must_use]
    pub fn with(world: World, store: Arc<dyn Store<Summary>>, settings: Settings) -> Self {
        let clock = world.clock;
        let registry = Self {
            dynamic: Dynamic::new(&world),
            converted: convert::Converted::default(),
            world,
            store,
            kinds: ArcSwap::from_pointee(settings.runtime_config.kinds()),
            settings,
            authorizer: Authorizer::new(vec![Mode::Rbac], clock),
            allocating: tokio::sync::Mutex::new(()),
            waiting: parking_lot::Mutex::default(),
            defining: tokio::sync::Mutex::new(()),
            serving: tokio::sync::Mutex::new(()),
            epochs: reset::Epochs::default(),
        };
        registry.reload_definitions(&registry.snapshot());
        registry
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
        self.kinds.load_full()
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

    /// Webhooks and policies.
    pub fn dynamic(&self) -> &Dynamic {
        &self.dynamic
    }

    /// The client that calls webhooks.
    #[must_use]
    pub fn webhooks(&self) -> &webhook::Client {
        self.dynamic.webhooks.client()
    }

    /// The clock and the dice.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
    }

    /// What the server does by itself after a commit of an object, where its kind asks for that.
    async fn follow_up(&self, kind: &Arc<Kind>, name: &str) {
        match kind.behaviour.role {
            Role::Definition => self.definition_changed(kind, name).await,
            Role::ValidatingPolicy => self.policy_changed(kind, name).await,
            Role::FlowSchema => self.flow_schema_changed(kind, name).await,
            Role::PriorityLevel => self.priority_level_changed(name).await,
            Role::Ordinary
            | Role::Namespace
            | Role::Service
            | Role::Pod
            | Role::MutatingPolicy
            | Role::ValidatingPolicyBinding
            | Role::MutatingPolicyBinding
            | Role::WebhookConfiguration
            | Role::SigningRequest
            | Role::Binding
            | Role::TokenReview
            | Role::SelfSubjectReview
            | Role::AccessReview(_) => {}
        }
    }

    /// The stored object.
    ///
    /// # Errors
    /// 404; 500 when it is stored in a version that its definition no longer has.
    pub fn entry(&self, call: Call<'_>) -> Result<Arc<Entry<Summary>>, ApiError> {
        let entry = self
            .store
            .snapshot()
            .get(&call.kind.collection, &call.key())
            .cloned()
            .ok_or_else(|| ApiError::not_found(call.kind, call.name))?;
        encode::readable(call.kind, &entry)?;
        Ok(entry)
    }
}

/// Whether the server does something by itself after a commit of an object of that kind, where kube-apiserver has controllers of
/// its own: brings a status up to date, lets a definition go with its last object, notes the addresses of a Service.
pub fn has_follow_up(kind: &Kind) -> bool {
    match kind.behaviour.role {
        Role::Definition
        | Role::ValidatingPolicy
        | Role::FlowSchema
        | Role::PriorityLevel
        | Role::Service => true,
        Role::Ordinary
        | Role::Namespace
        | Role::Pod
        | Role::MutatingPolicy
        | Role::ValidatingPolicyBinding
        | Role::MutatingPolicyBinding
        | Role::WebhookConfiguration
        | Role::SigningRequest
        | Role::Binding
        | Role::TokenReview
        | Role::SelfSubjectReview
        | Role::AccessReview(_) => kind.custom.as_ref().is_some_and(|custom| custom.terminating),
    }
}
