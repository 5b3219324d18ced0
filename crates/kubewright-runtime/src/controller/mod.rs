//! A controller: which events lead to which keys, and what is done about a key.

mod defaults;
mod rights;
mod scope;
mod settings;
mod sources;

use std::{sync::Arc, time::Duration};

use futures::stream::BoxStream;
use kube::Client;

pub use self::defaults::Defaults;
use crate::{
    ClientLayer, Key, Reconciler,
    apply::AppliedKind,
    error_policy::{ErrorPolicy, OnKind, ShowFailures},
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
    /// What the manager's [`Defaults`] say, if it says nothing itself.
    pub(crate) concurrency: Option<usize>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) cache_sync_timeout: Option<Duration>,
    pub(crate) client: Option<Client>,
    /// What is done to its requests, the first of them last.
    pub(crate) client_layers: Vec<ClientLayer>,
    pub(crate) mistakes: Vec<String>,
    pub(crate) events: EventApi,
    pub(crate) event_source: Option<String>,
    pub(crate) on_every_replica: bool,
    pub(crate) rate_limit: Option<RateLimit>,
    pub(crate) resync: Option<Duration>,
    /// How failures are shown; none for not at all.
    error_policy: Option<ErrorPolicy>,
    /// Whether what a reconcile writes wakes its own key.
    pub(crate) own_events: bool,
    pause_annotation: Option<Arc<str>>,
    own: Option<OwnKind>,
    owns_kinds: bool,
    /// The kinds of which it applies all that its owners have.
    pub(crate) applied: Vec<AppliedKind>,
    /// The field managers that it replaces.
    pub(crate) predecessors: Vec<String>,
    writes: Rights,
    /// What it does in each further cluster.
    writes_in_each: Rights,
    /// Whether it works in each further cluster instead of the manager's own.
    pub(crate) in_each_cluster: bool,
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
    /// The part of it that says how it is.
    status: ResourceAttributes,
    failures: OnKind,
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
            concurrency: None,
            timeout: None,
            cache_sync_timeout: None,
            client: None,
            client_layers: Vec::new(),
            mistakes: Vec::new(),
            events: EventApi::Series,
            event_source: None,
            on_every_replica: false,
            rate_limit: None,
            resync: None,
            error_policy: None,
            own_events: false,
            pause_annotation: Some(PAUSED.into()),
            own: None,
            owns_kinds: false,
            applied: Vec::new(),
            predecessors: Vec::new(),
            writes: Rights::default(),
            writes_in_each: Rights::default(),
            in_each_cluster: false,
            last: Last::None,
        }
    }

    /// How many keys it works on at the same time.
    pub(crate) fn workers(&self) -> usize {
        self.concurrency.unwrap_or(1)
    }

    /// Group and kind of the own kind.
    pub(crate) fn own_kind(&self) -> Option<(String, String)> {
        self.own.as_ref().map(|own| (own.group.clone(), own.kind.clone()))
    }

    /// The own kind's objects that lose what they control.
    pub(crate) fn orphan_guard(&self) -> Option<OrphanGuard> {
        self.own.as_ref().map(|own| own.orphan_guard.clone())
    }

    /// What shows its failures.
    pub(crate) fn show_failures(&self) -> Option<ShowFailures> {
        Some(self.own.as_ref()?.failures.by(self.error_policy.clone()?))
    }

    /// Moves what it looks at to where it works.
    pub(crate) fn settle_in_clusters(&mut self) {
        if self.in_each_cluster {
            let moved = self.kinds.iter_mut().map(|kind| kind.move_to_members());
            self.mistakes.extend(moved.filter_map(Result::err));
        }
    }

    /// What is only known to be wrong when all was declared.
    pub(crate) fn late_mistakes(&self) -> Vec<String> {
        let Some(policy) = &self.error_policy else { return Vec::new() };
        let is_lost = self.own.is_none();
        let lost =
            is_lost.then(|| "on_error without for_kind: there is no object to show errors on".to_owned());
        lost.into_iter().chain(policy.mistake()).collect()
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
