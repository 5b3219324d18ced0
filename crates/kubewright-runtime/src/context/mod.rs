//! What a reconcile works with: reads from the cache, writes that the cache sees at once.

mod answer;
mod clusters;
mod delete;
mod desired;
mod dynamic;
mod list;
mod merge_from;
mod subresource;
mod watching;
mod write;

use std::{any::TypeId, collections::BTreeSet, sync::Arc};

use kube::Client;
use kubewright_world::World;

pub(crate) use self::{answer::Answer, clusters::ClusterContexts};
pub use self::{
    delete::Deletion, dynamic::DynamicContext, list::ListOptions, merge_from::MergeFrom,
    subresource::Subresource, watching::Watching, write::Write,
};
use crate::{
    Cache, Cached, Error, Key, Object,
    apply::AppliedKind,
    cache::{ActiveReconcile, ActiveReconcileGuard, Author},
    dynamic_watches::DynamicWatches,
    endpoint::Endpoint,
    events::{EventQueue, EventType, Happened, NewEvent},
    rbac::Rights,
    reason::Reasons,
    source::{KindSource, Sink},
};

/// The surroundings of a controller's reconciles, in one cluster. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Context(Arc<Inner>, Option<Arc<ActiveReconcile>>, Arc<Reasons>, Arc<ClusterContexts>);

pub(crate) struct Inner {
    /// Of a cluster beside the manager's own: what it is called.
    cluster: Option<Arc<str>>,
    /// Where keys go.
    sink: Sink,
    client: Client,
    world: World,
    cache: Cache,
    kinds: Kinds,
    events: Arc<EventQueue>,
    /// What the manager's code declares.
    rights: Arc<Rights>,
}

/// The kinds of a controller.
pub(crate) struct Kinds {
    /// Which it may read.
    pub(crate) declared: BTreeSet<TypeId>,
    /// Of which it applies all that its owners have.
    pub(crate) applied: Vec<AppliedKind>,
}

impl Kinds {
    /// Those that these sources are of.
    pub(crate) fn of(kinds: &[Box<dyn KindSource>], applied: &[AppliedKind]) -> Self {
        let declared = kinds.iter().filter_map(|kind| kind.read_from_context()).collect();
        Self { declared, applied: applied.to_vec() }
    }
}

impl Context {
    pub(crate) fn new(
        sink: Sink,
        cache: Cache,
        client: Client,
        world: World,
        kinds: Kinds,
        events: Arc<EventQueue>,
        rights: Arc<Rights>,
    ) -> Self {
        let home = Inner { cluster: None, sink, client, world, cache, kinds, events, rights };
        let home = Arc::new(home);
        Self(home.clone(), None, Arc::default(), Arc::new(ClusterContexts::new(home)))
    }

    /// This context for a reconcile of `key` for these reasons, whose writes are the reconcile's as long as the guard is held. There is none for a
    /// controller that is woken by its own writes.
    pub(crate) fn active(&self, key: &Key, reasons: Arc<Reasons>) -> (Self, Option<ActiveReconcileGuard>) {
        let sink = &self.0.sink;
        let (active, guard) = (!sink.own_events)
            .then(|| ActiveReconcile::begin(Author { controller: sink.controller.clone(), key: key.clone() }))
            .unzip();
        (Self(self.0.clone(), active, reasons, self.3.clone()), guard)
    }

    /// Whether the controller does not work in the namespace of this key now.
    pub(crate) fn is_closed_to(&self, key: &Key) -> bool {
        self.0.sink.open.namespaces.has(key)
    }

    /// The controller's name.
    #[must_use]
    pub fn controller(&self) -> &str {
        &self.0.sink.controller
    }

    /// Why this reconcile is: which objects, failures, times or sources led to its key since the one before, and how long it waited.
    /// For logs and traces; what is to be done does not depend on it, as reasons may be merged or lost. Empty outside of a
    /// reconcile.
    #[must_use]
    pub fn reasons(&self) -> &Reasons {
        &self.2
    }

    /// Whether nothing comes of what is written ([`Controller::dry_run`](crate::Controller::dry_run)): for what a reconciler does beside that.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.0.sink.is_dry_run
    }

    /// The client, for what the cache does not hold. Its writes are not merged into the cache.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The clock and the dice.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.0.world
    }

    /// The caches of the manager.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.0.cache
    }

    /// The object named `key`, from the cache; never older than what this manager last wrote.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kubewright_runtime::{Context, Error, Key, Outcome};
    /// # async fn reconcile(ctx: &Context, key: &Key) -> Result<Outcome, Error> {
    /// let Some(map) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
    /// let all = ctx.list::<ConfigMap>(key.namespace.as_deref());
    /// let owned = ctx.owned_by::<Secret>(map.metadata.uid.as_deref().unwrap_or_default());
    /// # Ok(Outcome::Done)
    /// # }
    /// ```
    ///
    /// # Panics
    /// When the controller does not declare the kind (`for_kind`, `owns`, `watches`, `reads`): the answer would be
    /// "not there" whatever is there; and when the key is of another cluster. The panic is the reconcile's: it is logged, counted
    /// and retried.
    #[must_use]
    pub fn get<K: Object>(&self, key: &Key) -> Option<Arc<K>> {
        self.expect_declared::<K>();
        if let Err(error) = self.expect_here(key) {
            panic!("{error}");
        }
        self.0.cache.get(key)
    }

    /// All objects of a kind, or those of one namespace, from the cache, sorted by key.
    ///
    /// # Panics
    /// As [`Context::get`].
    #[must_use]
    pub fn list<K: Object>(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.expect_declared::<K>();
        self.0.cache.list(namespace)
    }

    /// The objects of a kind that have an owner reference to `owner_uid`, controlling or not, sorted by key.
    ///
    /// # Panics
    /// As [`Context::get`].
    #[must_use]
    pub fn owned_by<K: Object>(&self, owner_uid: &str) -> Vec<Arc<K>> {
        self.expect_declared::<K>();
        self.0.cache.informer::<K>().map(|informer| informer.owned_by(owner_uid)).unwrap_or_default()
    }

    /// Records an Event about `object` for people to read (`kubectl describe`, `kubectl events`): the short form of
    /// [`Context::record`].
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, EventType};
    /// # fn example(ctx: &Context, map: &ConfigMap) {
    /// ctx.event(map, EventType::Warning, "TooLarge", "more than 100 entries: the rest is left out");
    /// # }
    /// ```
    pub fn event<K: Object>(&self, object: &K, event_type: EventType, reason: &str, note: &str) {
        self.record(object, NewEvent::new(event_type, reason, note));
    }

    /// Records an Event about `object`. It returns at once: the Event is queued, and a task of the manager writes it, before a
    /// graceful shutdown ends. One that cannot be written is logged: it is no reason for a reconcile to fail.
    ///
    /// What is told is limited as client-go's `EventCorrelator` does it, so that a reconcile may tell the same in every pass:
    /// - What happens again is counted in the Event that is there.
    /// - From the tenth on within ten minutes, Events of one object that differ in their note alone become one.
    /// - Of each object, and each type, there are 25 writes, and one more every five minutes.
    /// - While the API server is slower than what is told, 1000 wait. Then the oldest that is told again later is dropped, or the
    ///   oldest; `kubewright_controller_events_dropped_total` counts them, and those of a controller that is not at work (any more).
    pub fn record<K: Object>(&self, object: &K, event: NewEvent) {
        self.0
            .events
            .add(Happened::to(object, event, self.0.world.clock.now()).in_cluster(self.0.cluster.clone()));
    }

    /// Logs that an Event could not be written: as a warning unless nobody has to do anything, or the one before was lost `again` for the
    /// same cause.
    pub(crate) fn lost_event(&self, reason: &str, error: &Error, again: bool) {
        let controller = self.controller();
        if again || error.is_namespace_ending() || error.fenced().is_some() {
            tracing::debug!(controller, reason, %error, "cannot record an event");
        } else {
            tracing::warn!(controller, reason, %error, remedy = self.remedy(error), "cannot record an event");
        }
    }

    /// The Events that wait to be written.
    pub(crate) fn events(&self) -> &Arc<EventQueue> {
        &self.0.events
    }

    /// The watches that reconciles began.
    pub(crate) fn dynamic_watches(&self) -> &DynamicWatches {
        &self.0.sink.dynamic_watches
    }

    /// The kinds of which the controller applies all that its owners have.
    pub(crate) fn applied_kinds(&self) -> &[AppliedKind] {
        &self.0.kinds.applied
    }

    /// The field managers that the controller replaces.
    pub(crate) fn predecessors(&self) -> &[String] {
        &self.0.sink.predecessors
    }

    /// What to do about a missing right, if that is what went wrong: whether code or cluster lacks it.
    pub(crate) fn remedy(&self, error: &Error) -> Option<String> {
        error.missing_right().map(|missing| missing.remedy(&self.0.rights))
    }

    fn expect_declared<K: Object>(&self) {
        assert!(
            self.0.kinds.declared.contains(&TypeId::of::<K>()),
            "the controller {} reads {} but does not watch them: add .reads::<{}>()",
            self.0.sink.controller,
            K::plural(&()),
            K::kind(&()),
        );
    }

    pub(crate) fn endpoint<K: Object>(&self, namespace: Option<&str>) -> Endpoint<'_, K> {
        self.endpoint_of(&(), namespace)
    }

    pub(crate) fn endpoint_of<K: Cached>(
        &self,
        kind: &K::DynamicType,
        namespace: Option<&str>,
    ) -> Endpoint<'_, K> {
        Endpoint::new(&self.0.client, kind, namespace)
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("controller", &self.0.sink.controller).finish_non_exhaustive()
    }
}
