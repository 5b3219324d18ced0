//! The objects that the controllers of a manager look at: one watch per kind, shared by all of them.
//!
//! What a write through a [`crate::Context`] returned is in the cache before the write returns to its caller, so no
//! reconcile ever sees a state older than its own last write, however late the watch is.

mod applied;
mod decoder;
mod deliveries;
#[cfg(test)]
mod deliveries_tests;
mod index;
mod informer;
mod order;
mod outage;
mod own_writes;
mod packed;
mod raw;
mod scope;
mod state;
#[cfg(test)]
mod state_tests;
mod store;
mod tombstones;
mod usage;
mod version;
mod watch;
mod write;

use std::{
    any::TypeId,
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
};

use arc_swap::ArcSwap;
use futures::future::join_all;
use kube::{Client, api::ApiResource};
use kubewright_world::World;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use self::{applied::Appliers, decoder::Decoder, outage::ServerOutage};
pub(crate) use self::{
    applied::{Applier, LastApply, Owned, hash},
    decoder::Project,
    informer::AnyInformer,
    own_writes::{ActiveReconcile, ActiveReconcileGuard, Author, Delivery, Intent},
    raw::Raw,
    scope::{Reach, Scope, ScopeRequest},
    version::is_newer,
};
pub use self::{index::Index, informer::Informer, state::Change, usage::Usage};
use crate::{Cached, DynamicKind, Key, Object, namespaces::InNamespaces};

/// The caches of a manager; clones share them.
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

/// What lies between a client and the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// A network: a connection may break without a word, so that a watch that is silent for long is opened anew.
    Network,
    /// Nothing: a watch that is silent has nothing to say.
    Process,
}

struct Inner {
    client: Client,
    connection: Connection,
    world: World,
    stop: CancellationToken,
    server: ServerOutage,
    appliers: Appliers,
    /// The kinds that controllers declared; kept as long as the cache. Read for each `ctx.get`, so without a lock.
    declared: ArcSwap<BTreeMap<TypeId, Arc<AnyInformer>>>,
    /// Held while kinds are declared.
    kinds: Mutex<Kinds>,
}

/// A kind at run time: the Rust type that holds its objects, group, version and plural.
type DynamicId = (TypeId, String, String, String);

#[derive(Default)]
struct Kinds {
    /// The kinds that controllers declared, in that order.
    in_order: Vec<Arc<AnyInformer>>,
    /// All whose memory is told of as long as they are held, in that order.
    watched: Vec<Weak<AnyInformer>>,
    /// The kinds known at run time only; kept as long as somebody holds their informer.
    dynamic: BTreeMap<DynamicId, Weak<AnyInformer>>,
    /// In which namespaces kinds are watched that are declared from now on.
    reach: Reach,
    /// Whether objects of kinds that are declared from now on are values, however large.
    as_values: bool,
    stage: Stage,
}

enum Stage {
    /// What is to be started with the manager, in the order of declaration.
    Waiting(Vec<Arc<AnyInformer>>),
    Started,
}

impl Default for Stage {
    fn default() -> Self {
        Self::Waiting(Vec::new())
    }
}

impl Cache {
    /// A cache that watches nothing before [`Cache::start`] and nothing after `stop`.
    pub(crate) fn new(client: Client, connection: Connection, world: World, stop: CancellationToken) -> Self {
        let (appliers, declared, kinds) = (Appliers::default(), ArcSwap::default(), Mutex::default());
        let server = ServerOutage::default();
        Self(Arc::new(Inner { client, connection, world, stop, server, appliers, declared, kinds }))
    }

    /// Keeps what this field manager applies, and whether those that it replaces own anything, of objects that come from now on.
    pub(crate) fn add_applier(&self, manager: &str, predecessors: &[String]) {
        self.0.appliers.add(manager);
        predecessors.iter().for_each(|predecessor| self.0.appliers.add_predecessor(predecessor));
    }

    /// The client that it is filled by: that of the manager, whoever a controller acts as.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The object named `key`, as far as is known.
    ///
    /// # Panics
    /// When no controller of the manager declared the kind (`for_kind`, `owns`, `watches`, `reads`): the answer would
    /// be "not there" whatever is there.
    #[must_use]
    pub fn get<K: Object>(&self, key: &Key) -> Option<Arc<K>> {
        self.read::<K, _>(|informer| informer.get(key))
    }

    /// All objects of kind `K`, or those of one namespace, sorted by key.
    ///
    /// # Panics
    /// As [`Cache::get`].
    #[must_use]
    pub fn list<K: Object>(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.read::<K, _>(|informer| informer.list_of(namespace))
    }

    /// The informer of a kind that a controller declared.
    #[must_use]
    pub fn informer<K: Object>(&self) -> Option<Informer<K>> {
        self.informer_of(&())
    }

    /// The informer of a kind: of one that a controller declared, or of one known only at run time that is watched as objects of this
    /// type.
    pub(crate) fn informer_of<K: Cached>(&self, kind: &K::DynamicType) -> Option<Informer<K>> {
        if TypeId::of::<K::DynamicType>() == TypeId::of::<()>() {
            return self.0.declared.load().get(&TypeId::of::<K>()).cloned().and_then(Informer::restore);
        }
        let known = self.0.kinds.lock().dynamic.get(&dynamic_id::<K>(kind)).and_then(Weak::upgrade);
        known.and_then(Informer::restore)
    }

    /// Watches a kind that is known only at run time, as whole objects ([`kube::api::DynamicObject`]) or their
    /// metadata ([`kube::api::PartialObjectMeta`]), until the last clone of the informer is dropped. Those who watch
    /// one kind the same way share a watch. It starts with the manager, or at once when that runs.
    ///
    /// It looks at all namespaces, whatever the manager's are: an [`ApiResource`] does not tell whether a kind has any.
    #[must_use]
    pub fn watch<K: Cached<DynamicType = ApiResource>>(&self, kind: &ApiResource) -> Informer<K> {
        self.watch_as(dynamic_id::<K>(kind), kind.clone(), None)
    }

    /// As [`Cache::watch`], of a kind of which is known whether it lives in namespaces: in those of the manager.
    pub(crate) fn watch_kind<K: Cached<DynamicType = ApiResource>>(&self, kind: &DynamicKind) -> Informer<K> {
        let resource = kind.resource();
        self.watch_as(dynamic_id::<K>(resource), resource.clone(), Some(kind.is_namespaced()))
    }

    /// Watches a kind that no controller declared, until the last clone of the informer is dropped; the informer of one
    /// that a controller did declare. Those who watch a kind share a watch, of the manager's namespaces.
    pub(crate) fn watch_typed<K: Object>(&self) -> Informer<K> {
        if let Some(informer) = self.informer() {
            return informer;
        }
        let id = (TypeId::of::<K>(), String::new(), String::new(), String::new());
        self.watch_as(id, (), Some(K::is_namespaced()))
    }

    /// Watches in the manager's namespaces, if the kind is known to live in any.
    fn watch_as<K: Cached>(
        &self,
        id: DynamicId,
        kind: K::DynamicType,
        is_namespaced: Option<bool>,
    ) -> Informer<K> {
        let mut kinds = self.0.kinds.lock();
        kinds.dynamic.retain(|_, informer| informer.strong_count() > 0);
        let known = kinds.dynamic.get(&id).and_then(Weak::upgrade).and_then(Informer::restore);
        known.unwrap_or_else(|| {
            if is_namespaced.is_none() && kinds.reach != Reach::Everywhere {
                tracing::warn!(
                    resource = %K::plural(&kind),
                    "a cluster-wide watch, with the memory and the ClusterRole that it takes, in a manager that looks at some \
                     namespaces only: of a kind that is known at run time alone nobody knows whether it lives in any"
                );
            }
            let scope = ScopeRequest::default().scope(is_namespaced.unwrap_or_default(), &kinds.reach);
            let decoder = Decoder::of::<K>(None, kinds.as_values);
            let informer = Informer::new(&kind, scope, decoder, &self.0.appliers, &self.0.stop);
            kinds.dynamic.insert(id, Arc::downgrade(informer.erase()));
            self.start_informer(&mut kinds, informer.erase());
            informer
        })
    }

    /// The informer of kind `K`, which is watched from now on: in the part that is asked for and through what `project`
    /// leaves of objects, and as values if that is asked for; or as was asked for first.
    pub(crate) fn declare<K: Object>(
        &self,
        asked: &ScopeRequest,
        project: Option<Project<K>>,
        as_values: bool,
    ) -> Informer<K> {
        let mut kinds = self.0.kinds.lock();
        self.informer().unwrap_or_else(|| {
            let scope = asked.scope(K::is_namespaced(), &kinds.reach);
            let decoder = Decoder::of(project, as_values || kinds.as_values);
            let informer = Informer::new(&(), scope, decoder, &self.0.appliers, &self.0.stop);
            let mut declared = BTreeMap::clone(&self.0.declared.load());
            declared.insert(TypeId::of::<K>(), informer.erase().clone());
            self.0.declared.store(Arc::new(declared));
            kinds.in_order.push(informer.erase().clone());
            self.start_informer(&mut kinds, informer.erase());
            informer
        })
    }

    /// Watches kinds that are declared from now on, and live in namespaces, there only; `false` if one was declared before.
    pub(crate) fn restrict(&self, reach: Reach) -> bool {
        if let Reach::Following(namespaces) = &reach {
            let cache: Weak<Inner> = Arc::downgrade(&self.0);
            namespaces.add_cache(cache);
        }
        let mut kinds = self.0.kinds.lock();
        kinds.reach = reach;
        kinds.in_order.is_empty()
    }

    /// Keeps objects of kinds that are declared from now on as values; `false` if one was declared before.
    pub(crate) fn keep_values(&self) -> bool {
        let mut kinds = self.0.kinds.lock();
        kinds.as_values = true;
        kinds.in_order.is_empty()
    }

    /// The kinds that controllers declared and whose first list is not complete, as `<plural>.<group>`.
    #[must_use]
    pub fn unsynced(&self) -> Vec<String> {
        let kinds = self.0.kinds.lock();
        let missing = kinds.in_order.iter().filter(|informer| !informer.is_filled());
        missing.map(|informer| informer.resource()).collect()
    }

    /// Waits until the first list of every kind that controllers declared so far is complete, or until it never will be
    /// because the manager stops.
    pub async fn synced(&self) {
        let declared = self.0.kinds.lock().in_order.clone();
        join_all(declared.iter().map(|informer| informer.filled())).await;
    }

    /// Starts the watches of what was declared; from now on, a watch starts when it is declared.
    pub(crate) fn start(&self) {
        let before = std::mem::replace(&mut self.0.kinds.lock().stage, Stage::Started);
        if let Stage::Waiting(informers) = before {
            informers.iter().for_each(|informer| self.run(informer));
        }
    }

    /// What each kind takes, those that are watched at run time too.
    #[must_use]
    pub fn usage(&self) -> Vec<Usage> {
        let mut kinds = self.0.kinds.lock();
        kinds.watched.retain(|informer| informer.strong_count() > 0);
        kinds.watched.iter().filter_map(Weak::upgrade).map(|informer| informer.usage()).collect()
    }

    /// The scope that a kind would be declared with now.
    pub(crate) fn scope_of<K: Object>(&self, asked: &ScopeRequest) -> Scope {
        asked.scope(K::is_namespaced(), &self.0.kinds.lock().reach)
    }

    fn start_informer(&self, kinds: &mut Kinds, informer: &Arc<AnyInformer>) {
        kinds.watched.push(Arc::downgrade(informer));
        match &mut kinds.stage {
            Stage::Started => self.run(informer),
            Stage::Waiting(informers) => informers.push(informer.clone()),
        }
    }

    fn run(&self, informer: &AnyInformer) {
        let Inner { client, connection, world, server, .. } = &*self.0;
        informer.start(client.clone(), *connection, world.dice.clone(), server.clone());
    }

    /// Reads the informer of a kind that a controller declared.
    fn read<K: Object, T>(&self, f: impl FnOnce(&AnyInformer) -> T) -> T {
        match self.0.declared.load().get(&TypeId::of::<K>()) {
            Some(informer) => f(informer),
            None => panic!("no controller of this manager watches {}", K::plural(&())),
        }
    }
}

impl InNamespaces for Inner {
    fn joined(&self, namespace: &str) {
        self.following().iter().for_each(|informer| informer.join(namespace));
    }

    fn left(&self, namespace: &str) {
        self.following().iter().for_each(|informer| informer.leave(namespace));
    }
}

impl Inner {
    /// Those that look at namespaces that come and go.
    fn following(&self) -> Vec<Arc<AnyInformer>> {
        let kinds = self.kinds.lock();
        let watched = kinds.watched.iter().filter_map(Weak::upgrade);
        watched.filter(|informer| informer.is_following()).collect()
    }
}

/// What tells a kind at run time from others.
fn dynamic_id<K: Cached>(kind: &K::DynamicType) -> DynamicId {
    let text = |part: Cow<'_, str>| part.into_owned();
    (TypeId::of::<K>(), text(K::group(kind)), text(K::version(kind)), text(K::plural(kind)))
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}
