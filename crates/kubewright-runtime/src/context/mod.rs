//! What a reconcile works with: reads from the cache, writes that the cache sees at once.

mod desired;
mod watching;
mod write;

use std::{any::TypeId, collections::BTreeSet, sync::Arc};

use kube::Client;
use kubewright_world::World;

pub use self::{watching::Watching, write::Deletion};
use crate::{
    Cache, Error, Key, Object,
    cache::{ActiveReconcile, ActiveReconcileGuard, Author},
    dynamic_watches::DynamicWatches,
    endpoint::Endpoint,
    events::{EventType, Recorder},
    rbac::Rights,
    source::Sink,
};

/// The surroundings of a controller's reconciles. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Context(Arc<Inner>, Option<Arc<ActiveReconcile>>);

struct Inner {
    /// Where keys go.
    sink: Sink,
    client: Client,
    world: World,
    cache: Cache,
    declared: BTreeSet<TypeId>,
    recorder: Recorder,
    /// What the manager's code declares.
    rights: Arc<Rights>,
}

impl Context {
    pub(crate) fn new(
        sink: Sink,
        cache: Cache,
        client: Client,
        world: World,
        declared: BTreeSet<TypeId>,
        recorder: Recorder,
        rights: Arc<Rights>,
    ) -> Self {
        Self(Arc::new(Inner { sink, client, world, cache, declared, recorder, rights }), None)
    }

    /// This context for a reconcile of `key`, whose writes are the reconcile's as long as the guard is held. There is none for a
    /// controller that is woken by its own writes.
    pub(crate) fn active(&self, key: &Key) -> (Self, Option<ActiveReconcileGuard>) {
        let sink = &self.0.sink;
        let (active, guard) = (!sink.own_events)
            .then(|| ActiveReconcile::begin(Author { controller: sink.controller.clone(), key: key.clone() }))
            .unzip();
        (Self(self.0.clone(), active), guard)
    }

    /// The controller's name.
    #[must_use]
    pub fn controller(&self) -> &str {
        &self.0.sink.controller
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
    /// "not there" whatever is there. The panic is the reconcile's: it is logged, counted and retried.
    #[must_use]
    pub fn get<K: Object>(&self, key: &Key) -> Option<Arc<K>> {
        self.expect_declared::<K>();
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

    /// Records an event about `object` for people to read (`kubectl describe`, `kubectl events`). An event that cannot
    /// be recorded is logged: it is no reason for a reconcile to fail.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, EventType};
    /// # async fn example(ctx: &Context, map: &ConfigMap) {
    /// ctx.event(map, EventType::Warning, "TooLarge", "more than 100 entries: the rest is left out").await;
    /// # }
    /// ```
    pub async fn event<K: Object>(&self, object: &K, event_type: EventType, reason: &str, note: &str) {
        if let Err(error) = self.0.recorder.record(object, event_type, reason, note).await {
            let (controller, remedy) = (&self.0.sink.controller, self.remedy(&error));
            tracing::warn!(%controller, reason, %error, remedy, "cannot record an event");
        }
    }

    /// The watches that reconciles began.
    pub(crate) fn dynamic_watches(&self) -> &DynamicWatches {
        &self.0.sink.dynamic_watches
    }

    /// What to do about a missing right, if that is what went wrong: whether code or cluster lacks it.
    pub(crate) fn remedy(&self, error: &Error) -> Option<String> {
        error.missing_right().map(|missing| missing.remedy(&self.0.rights))
    }

    fn expect_declared<K: Object>(&self) {
        assert!(
            self.0.declared.contains(&TypeId::of::<K>()),
            "the controller {} reads {} but does not watch them: add .reads::<{}>()",
            self.0.sink.controller,
            K::plural(&()),
            K::kind(&()),
        );
    }

    pub(crate) fn endpoint<K: Object>(&self, namespace: Option<&str>) -> Endpoint<'_, K> {
        Endpoint::new(&self.0.client, &(), namespace)
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("controller", &self.0.sink.controller).finish_non_exhaustive()
    }
}
