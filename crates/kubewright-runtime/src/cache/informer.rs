//! What is known of the objects of one kind, with their type.

use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use kube::{
    Client,
    api::{ApiResource, ObjectMeta},
};
use kubewright_world::Dice;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Connection,
    applied::{Applied, Applier, Appliers, LastApply, Owned},
    decoder::Decoder,
    deliveries::Handler,
    outage::ServerOutage,
    own_writes::ActiveReconcile,
    scope::{Reach, Scope},
    state::Change,
    store::Store,
    usage::Usage,
    watch::Watch,
    write::Write,
};
use crate::{
    Cached, Key, accesses,
    object::{Kept, typed},
};

/// The objects of one kind, kept up to date by one watch (client-go's shared informer). Clones share it; the watch
/// ends when the last clone is dropped, or with the manager.
pub struct Informer<K: Cached>(Arc<AnyInformer>, PhantomData<fn() -> K>);

/// An informer whose kind's type is forgotten.
pub(crate) struct AnyInformer {
    store: Arc<Store>,
    decoder: Arc<Decoder>,
    appliers: Appliers,
    kind: ApiResource,
    is_metadata: bool,
    scope: Scope,
    /// Whether a controller cannot work without it.
    is_needed: AtomicBool,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl<K: Cached> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<K: Cached> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Informer").field(&self.0.kind.plural).finish()
    }
}

impl<K: Cached> Informer<K> {
    /// An informer of the objects in a scope, which knows nothing until [`AnyInformer::start`]; it ends with `stop` at the
    /// latest.
    pub(super) fn new(
        kind: &K::DynamicType,
        scope: Scope,
        decoder: Decoder,
        appliers: &Appliers,
        stop: &CancellationToken,
    ) -> Self {
        let stop = stop.child_token();
        let kind = ApiResource::erase::<K>(kind);
        let informer = AnyInformer {
            store: Arc::new(Store::new(&kind.plural, scope.reach.parts())),
            decoder: Arc::new(decoder),
            appliers: appliers.clone(),
            kind,
            is_metadata: K::metadata_api(),
            scope,
            is_needed: AtomicBool::new(false),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
        };
        Self(Arc::new(informer), PhantomData)
    }

    /// The object named `key`, as far as is known.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.0.get(key)
    }

    /// All objects, or those of one namespace, sorted by key.
    #[must_use]
    pub fn list(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.0.list_of(namespace)
    }

    /// The objects that have an owner reference to `owner_uid`, controlling or not, sorted by key.
    #[must_use]
    pub fn owned_by(&self, owner_uid: &str) -> Vec<Arc<K>> {
        let owned: Vec<_> =
            self.0.store.owned_by(owner_uid).into_iter().filter_map(|kept| typed(kept.value())).collect();
        accesses::listed(&self.0.kind.group, &self.0.kind.plural, None, owned.len());
        owned
    }

    /// Tells `handler` of every object that is known, as created, and then of every change, in order. It is called
    /// from a task that makes changes and must not block; it may read and write caches. A panic in it is logged.
    pub fn subscribe(&self, handler: impl Fn(&Change<K>) + Send + Sync + 'static) {
        self.0.subscribe(Box::new(move |delivery| {
            if !delivery.is_repeated()
                && let Some(change) = delivery.change.typed()
            {
                handler(&change);
            }
        }));
    }

    /// Whether the API server serves the kind, as far as is known: a CustomResourceDefinition may come later, or go. When
    /// it goes, its objects have ended.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.0.is_served()
    }

    /// Waits until it is known what there is: the first list is complete, or the kind is not served.
    pub async fn known(&self) {
        self.0.known().await;
    }

    /// Whether the first list is complete: from then on an object that is not found is not there.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.0.is_synced()
    }

    /// Waits until the first list is complete, or until it never will be because the manager stops.
    pub async fn synced(&self) {
        self.0.synced().await;
    }

    /// Whether another informer is a clone of this one.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Says that a write begins, as [`Write::begin`].
    pub(crate) fn write(&self, key: Option<Key>, active: Option<Arc<ActiveReconcile>>) -> Write {
        Write::begin(&self.0.store, key, active)
    }

    /// What is kept of an object.
    pub(crate) fn transform(&self, object: K) -> Arc<dyn Kept> {
        self.0.decoder.transform(object)
    }

    /// What is kept of an object that was read from this JSON.
    pub(crate) fn keep(&self, object: &Arc<K>, text: &str) -> Arc<dyn Kept> {
        self.0.decoder.keep(object, text)
    }

    /// What the appliers own of an object that a write answered with.
    pub(crate) fn owned(&self, meta: &ObjectMeta) -> Vec<Owned> {
        if self.0.is_partial() {
            return Vec::new();
        }
        self.0.appliers.in_entries(meta.managed_fields.as_deref().unwrap_or_default())
    }

    /// As [`Informer::owned`], of managed fields as JSON.
    pub(crate) fn owned_in(&self, managed_fields: Option<&str>) -> Vec<Owned> {
        let managed_fields = managed_fields.filter(|_| !self.0.is_partial());
        managed_fields.map(|fields| self.0.appliers.in_text(fields)).unwrap_or_default()
    }

    /// What an applier owns of the object `key` in this version, if it is the one that is known.
    pub(crate) fn applied(&self, key: &Key, version: Option<&str>, applier: &Applier) -> Option<Applied> {
        self.0.store.applied(key, version, applier)
    }

    /// Remembers what an apply left.
    pub(crate) fn remember(&self, key: &Key, applier: &Applier, last: LastApply) {
        self.0.store.remember(key, applier, last);
    }

    /// Whether an object belongs in it, as far as its labels say.
    pub(crate) fn selects(&self, object: &K) -> bool {
        self.0.scope.selects(object.meta())
    }

    /// Forgets the type; [`Informer::restore`] finds it again.
    pub(crate) fn erase(&self) -> &Arc<AnyInformer> {
        &self.0
    }

    /// The informer of kind `K` whose type was forgotten, if it is one.
    pub(super) fn restore(erased: Arc<AnyInformer>) -> Option<Self> {
        erased.decoder.is_of::<K>().then_some(Self(erased, PhantomData))
    }
}

impl AnyInformer {
    /// All objects, sorted by key.
    pub(crate) fn list(&self) -> Vec<Arc<dyn Kept>> {
        self.store.list(None)
    }

    /// The object named `key`, of the kind's type.
    pub(super) fn get<K: Cached>(&self, key: &Key) -> Option<Arc<K>> {
        let object = self.store.get(key).and_then(|kept| typed::<K>(kept.value()));
        let version = object.as_ref().and_then(|object| object.meta().resource_version.as_deref());
        accesses::looked_up(&self.kind.group, &self.kind.plural, key, version);
        object
    }

    /// All objects, or those of one namespace, of the kind's type.
    pub(super) fn list_of<K: Cached>(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        let objects: Vec<_> =
            self.store.list(namespace).into_iter().filter_map(|kept| typed(kept.value())).collect();
        accesses::listed(&self.kind.group, &self.kind.plural, namespace, objects.len());
        objects
    }

    /// As [`Informer::subscribe`]; also for changes that were withheld from an author at first.
    pub(crate) fn subscribe(&self, handler: Handler) {
        self.store.subscribe(handler);
    }

    /// As [`AnyInformer::subscribe`], as long as `alive` is held.
    pub(crate) fn subscribe_while(&self, alive: &Arc<()>, handler: Handler) {
        self.store.subscribe_while(Arc::downgrade(alive), handler);
    }

    pub(crate) fn is_served(&self) -> bool {
        self.store.is_served()
    }

    pub(crate) async fn known(&self) {
        tokio::select! {
            biased;
            () = self.store.known() => {}
            () = self.stop.cancelled() => {}
        }
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.store.is_synced()
    }

    /// Why its watch does not work, if it does not.
    pub(crate) fn failure(&self) -> Option<String> {
        self.store.failure()
    }

    pub(crate) async fn synced(&self) {
        tokio::select! {
            biased;
            () = self.store.synced() => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// A controller cannot work without it: it is not filled before its first list is complete.
    pub(crate) fn need(&self) {
        self.is_needed.store(true, Ordering::SeqCst);
    }

    /// Whether those who declared it need not wait any more.
    pub(super) fn is_filled(&self) -> bool {
        self.is_synced() || !self.is_needed.load(Ordering::SeqCst) && !self.is_served()
    }

    pub(super) async fn filled(&self) {
        if self.is_needed.load(Ordering::SeqCst) { self.synced().await } else { self.known().await }
    }

    /// Whether it looks at namespaces that come and go.
    pub(crate) fn is_following(&self) -> bool {
        matches!(self.scope.reach, Reach::Following(_))
    }

    /// Looks at one more namespace.
    pub(super) fn join(&self, namespace: &str) {
        self.store.join(namespace);
    }

    /// Does not look at a namespace any more, unless it is there again.
    pub(super) fn leave(&self, namespace: &str) {
        if let Reach::Following(namespaces) = &self.scope.reach {
            self.store.leave(namespace, || namespaces.has(namespace));
        }
    }

    /// Whether a namespace that came is listed, or has gone.
    pub(crate) fn is_listed_in(&self, namespace: &str) -> bool {
        self.store.part(Some(namespace)).is_none_or(|part| part.is_listed())
    }

    /// Waits until a namespace that came is listed, until it is not looked at any more, or until the manager stops.
    pub(crate) async fn listed_in(&self, namespace: &str) {
        if let Some(part) = self.store.part(Some(namespace)) {
            self.stop.run_until_cancelled(part.listed()).await;
        }
    }

    /// As [`AnyInformer::listed_in`], or until it is known that the kind is not served.
    pub(crate) async fn known_in(&self, namespace: &str) {
        if let Some(part) = self.store.part(Some(namespace)) {
            self.stop.run_until_cancelled(part.known()).await;
        }
    }

    /// Which objects it watches.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The kind's name, such as `Deployment`.
    pub(crate) fn kind(&self) -> &str {
        &self.kind.kind
    }

    /// The kind's plural.
    pub(crate) fn plural(&self) -> &str {
        &self.kind.plural
    }

    /// The kind, as `<plural>.<group>`.
    pub(super) fn resource(&self) -> String {
        let dot = if self.kind.group.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.kind.plural, self.kind.group)
    }

    /// What it takes.
    pub(super) fn usage(&self) -> Usage {
        Usage::of(self.resource(), &self.scope, &self.list())
    }

    /// Whether it keeps only a part of each object.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_metadata || self.decoder.is_projected()
    }

    /// Starts the watch in a task of its own, on the current tokio runtime.
    pub(super) fn start(&self, client: Client, connection: Connection, dice: Dice, server: ServerOutage) {
        let watch = Watch {
            client,
            connection,
            dice,
            kind: self.kind.clone(),
            is_metadata: self.is_metadata,
            scope: self.scope.clone(),
            decoder: self.decoder.clone(),
            appliers: (!self.is_partial()).then(|| self.appliers.clone()),
            store: self.store.clone(),
            server,
        };
        let stop = self.stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = watch.run() => {}
            }
        });
    }
}
