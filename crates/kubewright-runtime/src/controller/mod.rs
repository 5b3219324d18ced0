//! A controller: which events lead to which keys, and what is done about a key.

mod rights;
mod scope;
mod settings;
mod sources;

use std::{sync::Arc, time::Duration};

use futures::stream::BoxStream;
use kube::Client;

use crate::{
    Key, Reconciler,
    events::EventApi,
    orphan_guard::OrphanGuard,
    pause::{self, PAUSED, Pause},
    rbac::{ResourceAttributes, Rights},
    reconciler::DynReconciler,
    source::KindSource,
    workqueue::RateLimit,
};

/// A controller, put together by chaining and handed to [`crate::Manager::add`].
///
/// ```
/// use k8s_openapi::api::{apps::v1::{Deployment, ReplicaSet}, core::v1::Pod};
/// use kubewright_runtime::{Controller, Key, predicate};
/// # use kubewright_runtime::{Context, Error, Outcome, Reconciler};
/// # struct Rollout;
/// # impl Reconciler for Rollout {
/// #     async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> { Ok(Outcome::Done) }
/// # }
/// let controller = Controller::new("rollout", Rollout)
///     .for_kind::<Deployment>().predicate(predicate::generation_changed())
///     .owns::<ReplicaSet>()
///     .watches(|pod: &Pod| vec![Key::namespaced(pod.metadata.namespace.clone().unwrap_or_default(), "web")])
///     .concurrency(2);
/// ```
///
/// Mistakes (two own kinds, `owns` before `for_kind`, a predicate of another kind) are an error of
/// [`crate::Manager::run`].
pub struct Controller {
    pub(crate) name: String,
    pub(crate) reconciler: Arc<dyn DynReconciler>,
    pub(crate) kinds: Vec<Box<dyn KindSource>>,
    pub(crate) streams: Vec<BoxStream<'static, Key>>,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Option<Duration>,
    pub(crate) client: Option<Client>,
    pub(crate) mistakes: Vec<String>,
    pub(crate) events: EventApi,
    pub(crate) event_source: Option<String>,
    pub(crate) on_every_replica: bool,
    pub(crate) rate_limit: RateLimit,
    pub(crate) resync: Option<Duration>,
    /// Whether what a reconcile writes wakes its own key.
    pub(crate) own_events: bool,
    pause_annotation: Option<Arc<str>>,
    own: Option<OwnKind>,
    owns_kinds: bool,
    writes: Rights,
    last: Last,
}

/// What has to be known of the own kind when its type is forgotten.
struct OwnKind {
    group: String,
    kind: String,
    attributes: ResourceAttributes,
    /// The part of it that a controller of others needs a right to.
    finalizers: ResourceAttributes,
    /// Finds the key of the object that controls an object with this metadata.
    owner_key: fn(&kube::api::ObjectMeta) -> Option<Key>,
    is_paused: pause::HasAnnotation,
    orphan_guard: OrphanGuard,
}

/// What a predicate would restrict.
enum Last {
    None,
    Kind,
    Stream,
}

impl Controller {
    /// A controller named `name` (for logs, counts and events; unique in a manager) that looks at nothing yet.
    pub fn new(name: impl Into<String>, reconciler: impl Reconciler) -> Self {
        Self {
            name: name.into(),
            reconciler: Arc::new(reconciler),
            kinds: Vec::new(),
            streams: Vec::new(),
            concurrency: 1,
            timeout: None,
            client: None,
            mistakes: Vec::new(),
            events: EventApi::Series,
            event_source: None,
            on_every_replica: false,
            rate_limit: RateLimit::default(),
            resync: None,
            own_events: false,
            pause_annotation: Some(PAUSED.into()),
            own: None,
            owns_kinds: false,
            writes: Rights::default(),
            last: Last::None,
        }
    }

    /// Group and kind of the own kind.
    pub(crate) fn own_kind(&self) -> Option<(String, String)> {
        self.own.as_ref().map(|own| (own.group.clone(), own.kind.clone()))
    }

    /// The own kind's objects that lose what they control.
    pub(crate) fn orphan_guard(&self) -> Option<OrphanGuard> {
        self.own.as_ref().map(|own| own.orphan_guard.clone())
    }

    pub(crate) fn pause(&self) -> Option<Pause> {
        let (annotation, own) = (self.pause_annotation.clone()?, self.own.as_ref()?);
        Some(Pause { annotation, look: own.is_paused })
    }
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controller").field("name", &self.name).finish_non_exhaustive()
    }
}
