//! What a reconcile works with: reads from the cache, writes that the cache sees at once.

use std::{any::TypeId, collections::BTreeSet, ops::Deref, sync::Arc};

use kube::{
    Client,
    api::{ApiResource, DeleteParams, Patch, PatchParams},
};
use kubewright_world::World;
use serde_json::{Value, json};

use crate::{
    Apply, Cache, Cached, Error, Informer, Key, Object,
    author::{Attempt, Author},
    cache::Write,
    endpoint::{Deleted, Endpoint},
    ensure::{self, Ensured},
    events::{EventType, Recorder},
    finalizer,
    owner::Owner,
    source::{Delivery, Sink},
    wish::Wish,
};

/// The surroundings of a controller's reconciles. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Context(Arc<Inner>, Option<Arc<Attempt>>);

/// The context of one reconcile; its writes are no longer the reconcile's when this is dropped.
pub(crate) struct InReconcile(Context);

impl Deref for InReconcile {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.0
    }
}

impl Drop for InReconcile {
    fn drop(&mut self) {
        self.0.1.iter().for_each(|attempt| attempt.end());
    }
}

struct Inner {
    /// Where keys go.
    sink: Sink,
    client: Client,
    world: World,
    cache: Cache,
    declared: BTreeSet<TypeId>,
    recorder: Recorder,
}

/// What became of an object that was to be deleted.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion<K> {
    /// It is gone.
    Gone,
    /// It is on its way: finalizers or a grace period hold it. This is what it looks like now.
    Terminating(Box<K>),
    /// It was not there.
    Absent,
}

/// A watch that a reconcile began; it ends when this is dropped. It reads as the [`Informer`] that it is.
#[derive(Debug)]
pub struct Watching<K: Cached> {
    informer: Informer<K>,
    _alive: Arc<()>,
}

impl<K: Cached> Deref for Watching<K> {
    type Target = Informer<K>;

    fn deref(&self) -> &Informer<K> {
        &self.informer
    }
}

impl Context {
    pub(crate) fn new(
        sink: Sink,
        cache: Cache,
        client: Client,
        world: World,
        declared: BTreeSet<TypeId>,
        recorder: Recorder,
    ) -> Self {
        Self(Arc::new(Inner { sink, client, world, cache, declared, recorder }), None)
    }

    /// This context for a reconcile of `key`.
    pub(crate) fn attempt(&self, key: &Key) -> InReconcile {
        let sink = &self.0.sink;
        let attempt = (!sink.hears_own)
            .then(|| Attempt::begin(Author { controller: sink.controller.clone(), key: key.clone() }));
        InReconcile(Self(self.0.clone(), attempt))
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

    /// Watches a kind that the controller did not declare, from now on until what is returned is dropped: every object that
    /// is there, and every change, leads to the keys that `mapping` finds. Whoever watches a kind shares the watch.
    ///
    /// The kind need not be there: while the API server does not serve it, there are no objects of it
    /// ([`Informer::is_served`]). When its CustomResourceDefinition comes, or comes back, the watch begins within seconds.
    ///
    /// Keep what is returned in the reconciler. When another replica becomes the leader, it watches when its reconciler
    /// says so.
    pub fn watch<K: Object>(&self, mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static) -> Watching<K> {
        self.begin_watch(self.0.cache.watch_typed(), mapping)
    }

    /// As [`Context::watch`], for a kind that is known only at run time: as whole objects
    /// ([`kube::api::DynamicObject`]) or their metadata ([`kube::api::PartialObjectMeta`]).
    pub fn watch_dynamic<K: Cached<DynamicType = ApiResource>>(
        &self,
        kind: &ApiResource,
        mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
    ) -> Watching<K> {
        self.begin_watch(self.0.cache.watch(kind), mapping)
    }

    fn begin_watch<K: Cached>(
        &self,
        informer: Informer<K>,
        mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
    ) -> Watching<K> {
        let alive = Arc::new(());
        Delivery::mapped(mapping, self.0.sink.clone()).subscribe(&informer, &alive);
        Watching { informer, _alive: alive }
    }

    /// Creates `object` and returns what the server stored.
    ///
    /// # Errors
    /// What the server refuses ([`Error::is_already_exists`] among it), or an object of a namespaced kind without
    /// namespace.
    pub async fn create<K: Object>(&self, object: &K) -> Result<K, Error> {
        let (namespace, key) = (namespace_of(object)?, Key::of(object));
        let request = async { self.endpoint::<K>(namespace).create(object).await };
        self.write((!key.name.is_empty()).then_some(key), Wish::Whole(object), request).await
    }

    /// Replaces the object with `object`; the server refuses when somebody changed it since it was read.
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it; a kind of which only a part is cached
    /// ([`Controller::projected`](crate::Controller::projected), metadata alone).
    pub async fn update<K: Object>(&self, object: &K) -> Result<K, Error> {
        self.replace(object, None).await
    }

    /// Replaces the object's status with that of `object`, as [`Context::update`].
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it.
    pub async fn update_status<K: Object>(&self, object: &K) -> Result<K, Error> {
        self.replace(object, Some("status")).await
    }

    /// Applies a JSON merge patch (RFC 7386) to the object named `key`. With `metadata.resourceVersion` in the patch
    /// the server refuses it when somebody changed the object since.
    ///
    /// # Errors
    /// What the server refuses.
    pub async fn patch<K: Object>(&self, key: &Key, patch: Value) -> Result<K, Error> {
        self.patch_part(key, None, Wish::Part(&patch), &Patch::Merge(&patch)).await
    }

    /// Applies a strategic merge patch to the object named `key`, which must be of a built-in kind. Its directives change
    /// one item of a list whatever the others are by now, such as `$deleteFromPrimitiveList/finalizers`.
    ///
    /// # Errors
    /// What the server refuses.
    pub async fn patch_strategically<K: Object>(&self, key: &Key, patch: Value) -> Result<K, Error> {
        self.patch_part(key, None, Wish::Unsaid, &Patch::Strategic(&patch)).await
    }

    /// Applies a JSON merge patch to the status of the object named `key`: `{"status": {...}}`.
    ///
    /// # Errors
    /// What the server refuses.
    pub async fn patch_status<K: Object>(&self, key: &Key, patch: Value) -> Result<K, Error> {
        self.patch_part(key, Some("status"), Wish::Part(&patch), &Patch::Merge(&patch)).await
    }

    /// Applies `desired` (server-side apply) as the field manager that is called like the controller: the object gets these
    /// fields, loses those that an earlier apply named and this one leaves out, and keeps all others. It is created if
    /// it is not there. Awaited, it gives what the server stored.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Error, owner::Owner};
    /// # async fn example(ctx: &Context, map: &ConfigMap, widget: &(dyn Owner + Sync)) -> Result<(), Error> {
    /// let stored = ctx.apply(map).owned_by(widget).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// It writes each time, as the cache does not know who owns which fields: [`Context::ensure`] compares first. A
    /// `resourceVersion` in `desired` is not sent; a `uid` is, and refuses another object of the same name.
    ///
    /// # Errors
    /// What the server refuses, fields that others own among it ([`Error::is_conflict`]); an owner in another namespace.
    pub fn apply<'a, K: Object>(&'a self, desired: &'a K) -> Apply<'a, K> {
        Apply::new(self, desired)
    }

    /// Deletes the object named `key`. That it is not there is no error.
    ///
    /// # Errors
    /// What the server refuses, an unfulfilled precondition ([`Error::is_conflict`]) among it.
    pub async fn delete<K: Object>(&self, key: &Key, params: DeleteParams) -> Result<Deletion<K>, Error> {
        let write = if params.dry_run { None } else { self.begin::<K>(None, None) };
        let answer = match self.endpoint::<K>(key.namespace.as_deref()).delete(&key.name, &params).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(Deletion::Absent),
            answer => answer?,
        };
        self.0.sink.metrics.writes.inc();
        let uid = match answer {
            Deleted::Object(object) if stays_after_delete(&*object) => {
                if let Some(write) = write {
                    write.returned((*object).clone(), false);
                }
                return Ok(Deletion::Terminating(object));
            }
            Deleted::Object(object) => object.meta().uid.clone(),
            Deleted::Gone { uid } => uid,
        };
        if let Some(write) = write {
            write.ended(key, uid.as_deref());
        }
        Ok(Deletion::Gone)
    }

    /// Makes the stored object have every field that `desired` has; fields that `desired` leaves out are not looked
    /// at, so what the server defaulted or another controller set does not count as a difference. `owner` becomes its
    /// controller. A pass that finds nothing to change writes nothing.
    ///
    /// Maps are compared key by key, lists as a whole, element by element; finalizers and owners are added to those that
    /// the object has; `status` is left alone. A change is written as a merge patch of what differs, which the server
    /// refuses when the cache is behind. Values that the server writes in another way than `desired` (a quantity of
    /// `1000m`, stored as `1`) differ for ever: desire them as the server writes them.
    ///
    /// # Errors
    /// What the server refuses; an object that another owner controls; an owner in another namespace.
    ///
    /// # Panics
    /// As [`Context::get`].
    pub async fn ensure<K: Object>(
        &self,
        desired: &K,
        owner: Option<&(dyn Owner + Sync)>,
    ) -> Result<Ensured<K>, Error> {
        self.expect_whole::<K>("ensure")?;
        let key = Key::of(desired);
        let reference = owner.map(|owner| ensure::reference(desired, owner)).transpose()?;
        match self.get::<K>(&key) {
            None => {
                let mut object = desired.clone();
                if let Some(reference) = reference {
                    let owners = object.meta_mut().owner_references.get_or_insert_default();
                    owners.retain(|owner| owner.uid != reference.uid);
                    owners.push(reference);
                }
                let created = self.create(&object).await?;
                tracing::debug!(controller = %self.0.sink.controller, kind = %K::kind(&()), %key, "created");
                Ok(Ensured::Created(Arc::new(created)))
            }
            Some(current) => match ensure::difference(desired, &*current, reference.as_ref())? {
                None => Ok(Ensured::Unchanged(current)),
                Some(difference) => {
                    let updated = self.patch(&key, difference.patch).await?;
                    tracing::debug!(
                        controller = %self.0.sink.controller, kind = %K::kind(&()), %key, changed = %difference.text,
                        "updated"
                    );
                    Ok(Ensured::Updated { object: Arc::new(updated), changed: difference.text })
                }
            },
        }
    }

    /// Adds the finalizer `name`, if it is not there.
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it.
    pub async fn add_finalizer<K: Object>(&self, object: &K, name: &str) -> Result<(), Error> {
        let mut changed = object.clone();
        if finalizer::add(&mut changed, name) { self.write_finalizers(&changed).await } else { Ok(()) }
    }

    /// Takes the finalizer `name` away, if it is there.
    ///
    /// # Errors
    /// What the server refuses, [`Error::is_conflict`] among it.
    pub async fn remove_finalizer<K: Object>(&self, object: &K, name: &str) -> Result<(), Error> {
        let mut changed = object.clone();
        if finalizer::remove(&mut changed, name) { self.write_finalizers(&changed).await } else { Ok(()) }
    }

    /// Records an event about `object` for people to read (`kubectl describe`, `kubectl events`). An event that cannot
    /// be recorded is logged: it is no reason for a reconcile to fail.
    pub async fn event<K: Object>(&self, object: &K, event_type: EventType, reason: &str, note: &str) {
        if let Err(error) = self.0.recorder.record(object, event_type, reason, note).await {
            tracing::warn!(controller = %self.0.sink.controller, reason, %error, "cannot record an event");
        }
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

    fn begin<K: Object>(&self, key: Option<Key>, attempt: Option<Arc<Attempt>>) -> Option<Write<K>> {
        self.0.cache.informer::<K>().map(|informer| informer.store().write(key, attempt))
    }

    /// An error if what is read of a kind is only a part of each object, which must not be written as the whole.
    pub(crate) fn expect_whole<K: Object>(&self, verb: &str) -> Result<(), Error> {
        if K::metadata_api() || self.0.cache.informer::<K>().is_some_and(|informer| informer.is_partial()) {
            return Err(Error::terminal(format!(
                "the cache keeps only a part of each {}, and {verb} would take the rest for not there: patch or apply what \
                 changes",
                K::kind(&()),
            )));
        }
        Ok(())
    }

    async fn replace<K: Object>(&self, object: &K, subresource: Option<&str>) -> Result<K, Error> {
        self.expect_whole::<K>("an update")?;
        let (namespace, key) = (namespace_of(object)?, Key::of(object));
        let name = key.name.clone();
        let request = async { self.endpoint::<K>(namespace).replace(&name, subresource, object).await };
        self.write(Some(key), Wish::Whole(object), request).await
    }

    async fn patch_part<K: Object>(
        &self,
        key: &Key,
        subresource: Option<&str>,
        wish: Wish<'_, K>,
        patch: &Patch<&Value>,
    ) -> Result<K, Error> {
        self.patch_with(key, subresource, &PatchParams::default(), wish, patch).await
    }

    pub(crate) async fn patch_with<K: Object>(
        &self,
        key: &Key,
        subresource: Option<&str>,
        params: &PatchParams,
        wish: Wish<'_, K>,
        patch: &Patch<&Value>,
    ) -> Result<K, Error> {
        self.write(Some(key.clone()), wish, async {
            self.endpoint::<K>(key.namespace.as_deref()).patch(&key.name, subresource, params, patch).await
        })
        .await
    }

    async fn write_finalizers<K: Object>(&self, object: &K) -> Result<(), Error> {
        let meta = object.meta();
        let patch = json!({"metadata": {
            "finalizers": meta.finalizers,
            "resourceVersion": meta.resource_version,
        }});
        self.patch::<K>(&Key::of(object), patch).await.map(|_| ())
    }

    /// Sends a write and tells the cache what came of it before the caller knows. It is one of the object of this key, if that
    /// is known before.
    pub(crate) async fn write<K: Object>(
        &self,
        key: Option<Key>,
        wish: Wish<'_, K>,
        request: impl Future<Output = kube::Result<K>>,
    ) -> Result<K, Error> {
        let write = self.begin::<K>(key, self.1.clone());
        let object = request.await?;
        self.0.sink.metrics.writes.inc();
        if let Some(write) = write {
            if ended_by_update(&object) {
                write.ended(&Key::of(&object), object.meta().uid.as_deref());
            } else if self.0.cache.informer::<K>().is_some_and(|informer| informer.selects(&object)) {
                let is_as_asked = write.is_own() && wish.is_fulfilled(&object);
                write.returned(object.clone(), is_as_asked);
            }
        }
        Ok(object)
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("controller", &self.0.sink.controller).finish_non_exhaustive()
    }
}

fn namespace_of<K: Object>(object: &K) -> Result<Option<&str>, Error> {
    match (K::is_namespaced(), object.meta().namespace.as_deref()) {
        (false, _) => Ok(None),
        (true, Some(namespace)) => Ok(Some(namespace)),
        (true, None) => Err(Error::new(format!("a {} needs metadata.namespace", K::kind(&())))),
    }
}

/// Whether an update took the last thing away that held a deleted object: it is answered with the object, which is
/// gone (`ShouldDeleteDuringUpdate` in `k8s.io/apiserver/pkg/registry/generic/registry/store.go`). A namespace is held
/// by `spec.finalizers` besides; the watch tells of its end.
fn ended_by_update<K: Object>(object: &K) -> bool {
    let meta = object.meta();
    let is_namespace = K::group(&()).is_empty() && K::kind(&()) == "Namespace";
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
        && meta.deletion_grace_period_seconds == Some(0)
        && !is_namespace
}

/// Whether the object that a deletion answered with is still there: some kinds answer with the object that was
/// removed (`ReturnDeletedObject`), all do so with one that a finalizer or a grace period holds.
fn stays_after_delete<K: Object>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some() && !ended_by_update(object)
}
