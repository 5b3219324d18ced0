//! Where a controller's keys come from.

use std::{
    any::{Any, TypeId, type_name},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{StreamExt, future::BoxFuture, stream::BoxStream};

use crate::{
    Cached, Key, Object,
    cache::{AnyInformer, Cache, Change, Delivery, Index, Informer, Project, ScopeRequest},
    dynamic_watches::DynamicWatches,
    in_namespaces::ClosedNamespaces,
    metrics::{ControllerMetrics, Metrics, ObjectGauge},
    object::{AnyObject, Kept},
    orphan_guard::OrphanGuard,
    pause,
    predicate::{Event, Predicate},
    rbac::ResourceAttributes,
    reason::{ObjectChange, ObjectReason, Reason},
    workqueue::{Priority, Workqueue},
};

/// Maps an object to the keys that it concerns; its type is forgotten.
#[derive(Clone)]
enum Mapping {
    /// The object's own key.
    Own,
    /// What a function finds in the object.
    Found(FindKeys),
}

/// Finds keys in an object.
type FindKeys = Arc<dyn Fn(&dyn AnyObject) -> Vec<Key> + Send + Sync>;

impl Mapping {
    fn keys(&self, object: &dyn AnyObject) -> Vec<Key> {
        match self {
            Self::Own => vec![Key::at(object.head())],
            Self::Found(keys) => keys(object),
        }
    }
}

/// Forgets the type of what a mapping maps, which maps nothing else.
fn forget<K: Cached>(mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static) -> Mapping {
    Mapping::Found(Arc::new(move |object| object.any().downcast_ref().map(&mapping).unwrap_or_default()))
}

/// The end of a source: the controller's queue, and its name and counts for what goes wrong on the way.
#[derive(Clone)]
pub(crate) struct Sink {
    pub(crate) controller: Arc<str>,
    pub(crate) queue: Arc<Workqueue<Key>>,
    pub(crate) metrics: ControllerMetrics,
    /// Whether events lead to anything.
    pub(crate) open: Gates,
    /// The cluster that the source is in, where that is to be in its keys.
    pub(crate) cluster: Option<Arc<str>>,
    /// The annotation that pauses objects of the own kind.
    pub(crate) pause: Option<Arc<str>>,
    /// Whether what a reconcile wrote wakes its own key.
    pub(crate) own_events: bool,
    /// The watches that reconciles began.
    pub(crate) dynamic_watches: DynamicWatches,
    /// Whether nothing comes of what the controller writes.
    pub(crate) is_dry_run: bool,
    /// The field managers that the controller replaces.
    pub(crate) predecessors: Arc<[String]>,
    /// The own kind's objects that lost a child; none without an own kind.
    pub(crate) orphan_guard: Option<OrphanGuard>,
}

/// What has to be open for events to lead to anything.
#[derive(Clone)]
pub(crate) struct Gates {
    /// While a replica stands by it is closed: when it is its turn, everything that is there then is [replayed](Replay), and a queue of
    /// what was there once would only grow.
    pub(crate) turn: Arc<AtomicBool>,
    /// Closed as long as the caches of a cluster that came later are not filled, and when it has gone.
    pub(crate) cluster: Arc<AtomicBool>,
    /// The same of namespaces, for keys in them.
    pub(crate) namespaces: ClosedNamespaces,
}

impl Gates {
    /// Those of the manager's own cluster.
    pub(crate) fn of(turn: &Arc<AtomicBool>) -> Self {
        let cluster = Arc::new(AtomicBool::new(true));
        Self { turn: turn.clone(), cluster, namespaces: ClosedNamespaces::default() }
    }

    fn are_open(&self) -> bool {
        self.turn.load(Ordering::SeqCst) && self.cluster.load(Ordering::SeqCst)
    }
}

/// Delivers every object that is known once more, as created, for those keys that a function accepts.
pub(crate) type Replay = Box<dyn Fn(&dyn Fn(&Key) -> bool) + Send + Sync>;

/// A cache that is waited for.
pub(crate) struct Awaited {
    pub(crate) resource: String,
    pub(crate) is_ready: Box<dyn Fn() -> bool + Send + Sync>,
    /// Why the watch of the kind does not work, if it does not.
    pub(crate) failure: Box<dyn Fn() -> Option<String> + Send + Sync>,
    /// Waits until the cache of the kind is complete.
    pub(crate) synced: BoxFuture<'static, ()>,
}

/// What is waited for in a namespace that has come.
pub(crate) type InNamespace = Arc<dyn Fn(&str) -> Awaited + Send + Sync>;

/// A kind whose events go to a controller.
pub(crate) struct Connected {
    pub(crate) cache: Awaited,
    /// Whether it is the controller's own kind.
    pub(crate) is_own: bool,
    /// Of a kind in namespaces that come and go.
    pub(crate) in_namespace: Option<InNamespace>,
    /// Not there for a kind that is only read.
    pub(crate) replay: Option<Replay>,
}

/// A kind that a controller looks at.
pub(crate) trait KindSource: Send + Sync {
    /// The kind, if a [`crate::Context`] may read it.
    fn read_from_context(&self) -> Option<TypeId>;

    /// What it reads, unless it is in a cluster of its own.
    fn attributes(&self) -> Option<ResourceAttributes>;

    /// Where it is looked at.
    fn place(&self) -> &Place;

    /// Looks at it in each further cluster, instead of the manager's own; what there is that only one cluster can have.
    fn move_to_members(&mut self) -> Result<(), String>;

    /// Adds a predicate; the name of the type that it is for when that is not this source's.
    fn restrict(&mut self, predicate: Predicate) -> Result<(), &'static str>;

    /// Does not wait for the kind when the API server does not serve it.
    fn make_optional(&mut self);

    /// Lets what a reconcile wrote wake its own key.
    fn include_own_events(&mut self);

    /// Keeps its objects as values, however large their type is.
    fn keep_values(&mut self);

    /// Which of its objects are watched, to be changed.
    fn asked(&mut self) -> &mut ScopeRequest;

    /// Keeps an [`Index`] of this source's kind up to date; `false` if it is one of another kind.
    fn index(&mut self, index: &dyn Any) -> bool;

    /// Keeps what a [`Project`] of this source's kind leaves; `false` if it is one of another kind.
    fn project(&mut self, project: Box<dyn Any>) -> bool;

    /// Tells an [`ObjectGauge`] of this source's kind; `false` if it is one of another kind.
    fn measure(&mut self, gauge: Box<dyn Any>) -> bool;

    /// Makes the kind part of the cache, without events; says what is wrong when another part of it is there already, or with a metric.
    fn declare(&self, cache: &Cache, metrics: &Metrics) -> Result<(), String>;

    /// Sends keys to `sink` from now on, whenever it is open.
    fn connect(&self, cache: &Cache, sink: Sink) -> Connected;
}

/// Where a kind is looked at.
#[derive(Clone)]
pub(crate) enum Place {
    /// In the manager's own cluster.
    Home,
    /// In this one, by its caches.
    Elsewhere(Cache),
    /// In each further cluster.
    Members,
}

/// A kind and what its events lead to.
pub(crate) struct WatchedKind<K: Object> {
    mapping: Option<Mapping>,
    predicates: Vec<Predicate>,
    asked: ScopeRequest,
    project: Option<Project<K>>,
    indexes: Vec<Index<K>>,
    is_own: bool,
    is_optional: bool,
    own_events: bool,
    as_values: bool,
    gauges: Vec<ObjectGauge<K>>,
    place: Place,
}

impl<K: Object> WatchedKind<K> {
    /// Events of this kind, whose objects can be paused, lead to reconciles of their own keys.
    pub(crate) fn own() -> Self {
        Self { is_own: true, mapping: Some(Mapping::Own), ..Self::read() }
    }

    /// Events of this kind lead to reconciles of the keys that `mapping` finds.
    pub(crate) fn mapped(mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static) -> Self {
        Self { mapping: Some(forget(mapping)), ..Self::read() }
    }

    /// The kind is only read.
    pub(crate) fn read() -> Self {
        Self {
            mapping: None,
            predicates: Vec::new(),
            asked: ScopeRequest::default(),
            project: None,
            indexes: Vec::new(),
            is_own: false,
            is_optional: false,
            own_events: false,
            as_values: false,
            gauges: Vec::new(),
            place: Place::Home,
        }
    }

    /// The kind is looked at in another cluster.
    pub(crate) fn elsewhere(mut self, cache: Cache) -> Self {
        self.place = Place::Elsewhere(cache);
        self
    }

    /// The kind is looked at in each further cluster.
    pub(crate) fn in_members(mut self) -> Self {
        self.place = Place::Members;
        self
    }

    fn cache<'a>(&'a self, cache: &'a Cache) -> &'a Cache {
        match &self.place {
            Place::Elsewhere(cache) => cache,
            Place::Home | Place::Members => cache,
        }
    }
}

impl<K: Object> KindSource for WatchedKind<K> {
    fn read_from_context(&self) -> Option<TypeId> {
        (!matches!(self.place, Place::Elsewhere(_))).then(TypeId::of::<K>)
    }

    fn attributes(&self) -> Option<ResourceAttributes> {
        (!matches!(self.place, Place::Elsewhere(_))).then(|| ResourceAttributes::of::<K>(None))
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn move_to_members(&mut self) -> Result<(), String> {
        match self.place {
            Place::Home => self.place = Place::Members,
            Place::Members => {}
            Place::Elsewhere(_) => {
                return Err(format!("{} is watched in one cluster, by watches_in", type_name::<K>()));
            }
        }
        match (self.indexes.is_empty(), self.gauges.is_empty()) {
            (true, true) => Ok(()),
            (false, _) => Err(format!("an index of {} is of one cluster", type_name::<K>())),
            (_, false) => Err(format!("a gauge of {} is of one cluster", type_name::<K>())),
        }
    }

    fn restrict(&mut self, predicate: Predicate) -> Result<(), &'static str> {
        match predicate.misfit::<K>() {
            Some(other) => Err(other),
            None => {
                self.predicates.push(predicate);
                Ok(())
            }
        }
    }

    fn make_optional(&mut self) {
        self.is_optional = true;
    }

    fn include_own_events(&mut self) {
        self.own_events = true;
    }

    fn keep_values(&mut self) {
        self.as_values = true;
    }

    fn asked(&mut self) -> &mut ScopeRequest {
        &mut self.asked
    }

    fn index(&mut self, index: &dyn Any) -> bool {
        let index = index.downcast_ref::<Index<K>>();
        self.indexes.extend(index.cloned());
        index.is_some()
    }

    fn project(&mut self, project: Box<dyn Any>) -> bool {
        let project = project.downcast::<Project<K>>().ok();
        let fits = project.is_some();
        self.project = project.map(|project| *project);
        fits
    }

    fn measure(&mut self, gauge: Box<dyn Any>) -> bool {
        let gauge = gauge.downcast::<ObjectGauge<K>>().ok();
        let fits = gauge.is_some();
        self.gauges.extend(gauge.map(|gauge| *gauge));
        fits
    }

    fn declare(&self, cache: &Cache, metrics: &Metrics) -> Result<(), String> {
        let cache = self.cache(cache);
        let known = cache.informer::<K>().is_some();
        let informer: Informer<K> = cache.declare(&self.asked, self.project.clone(), self.as_values);
        if known && self.project.is_some() {
            return Err(format!(
                "{} is projected, but an earlier controller of this manager declares it already: project it there, for both",
                type_name::<K>()
            ));
        }
        if !self.is_optional {
            informer.erase().need();
        }
        for index in &self.indexes {
            index.connect(&informer)?;
        }
        for gauge in &self.gauges {
            gauge.connect(&informer, metrics.registry())?;
        }
        let wanted = cache.scope_of::<K>(&self.asked);
        let elsewhere = informer.erase().scope();
        if *elsewhere == wanted {
            return Ok(());
        }
        Err(format!(
            "{} is watched {elsewhere} elsewhere in this manager, and {wanted} here",
            type_name::<K>()
        ))
    }

    fn connect(&self, cache: &Cache, mut sink: Sink) -> Connected {
        let cache = self.cache(cache);
        let informer: Informer<K> = cache.declare(&self.asked, self.project.clone(), self.as_values);
        sink.own_events |= self.own_events;
        let pause = sink.pause.clone().filter(|_| self.is_own);
        let (predicates, kind) = (self.predicates.clone(), informer.erase().kind().into());
        let handler =
            self.mapping.clone().map(|mapping| EventHandler { kind, predicates, mapping, sink, pause });
        Connected { is_own: self.is_own, ..connected(informer.erase(), handler, self.is_optional) }
    }
}

/// Lets a kind's events go to a controller, if they lead to anything.
fn connected(informer: &Arc<AnyInformer>, handler: Option<EventHandler>, is_optional: bool) -> Connected {
    let replay = handler.map(|handler| {
        let handler = Arc::new(handler);
        let handles = handler.clone();
        informer.subscribe(Box::new(move |delivery| handles.handle(delivery)));
        let informer = informer.clone();
        let replay: Replay = Box::new(move |accepts| handler.replay(&informer, accepts));
        replay
    });
    let in_namespace = informer.is_following().then(|| {
        let informer = informer.clone();
        let part: InNamespace = Arc::new(move |namespace| awaited_in(&informer, namespace, is_optional));
        part
    });
    let (is_ready, failing, informer) = (informer.clone(), informer.clone(), informer.clone());
    let cache = Awaited {
        resource: informer.plural().to_owned(),
        is_ready: Box::new(move || is_ready.is_synced() || is_optional && !is_ready.is_served()),
        failure: Box::new(move || failing.failure()),
        synced: Box::pin(async move {
            if is_optional { informer.known().await } else { informer.synced().await }
        }),
    };
    Connected { cache, is_own: false, in_namespace, replay }
}

/// What is waited for of a kind in a namespace.
fn awaited_in(informer: &Arc<AnyInformer>, namespace: &str, is_optional: bool) -> Awaited {
    let (is_ready, failing, informer) = (informer.clone(), informer.clone(), informer.clone());
    let (looked_at, namespace) = (namespace.to_owned(), namespace.to_owned());
    Awaited {
        resource: informer.plural().to_owned(),
        is_ready: Box::new(move || is_ready.is_listed_in(&looked_at) || is_optional && !is_ready.is_served()),
        failure: Box::new(move || failing.failure()),
        synced: Box::pin(async move {
            if is_optional {
                informer.known_in(&namespace).await;
            } else {
                informer.listed_in(&namespace).await;
            }
        }),
    }
}

/// The way from a change to the keys that it concerns.
pub(crate) struct EventHandler {
    /// The kind of the objects.
    kind: Arc<str>,
    predicates: Vec<Predicate>,
    mapping: Mapping,
    sink: Sink,
    pause: Option<Arc<str>>,
}

impl EventHandler {
    /// Without predicates and pauses.
    pub(crate) fn mapped<K: Cached>(
        mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
        kind: &str,
        sink: Sink,
    ) -> Self {
        Self { kind: kind.into(), predicates: Vec::new(), mapping: forget(mapping), sink, pause: None }
    }

    /// Handles every change that an informer tells of, as long as `alive` is held.
    pub(crate) fn subscribe(self, informer: &Arc<AnyInformer>, alive: &Arc<()>) {
        let (handler, held) = (Arc::new(self), Arc::downgrade(informer));
        let replayed = handler.clone();
        let replay: Replay = Box::new(move |accepts| {
            held.upgrade().iter().for_each(|informer| replayed.replay(informer, accepts));
        });
        handler.sink.dynamic_watches.add(alive, replay);
        informer.subscribe_while(alive, Box::new(move |delivery| handler.handle(delivery)));
    }

    /// Handles every object that is known once more, as created.
    fn replay(&self, informer: &AnyInformer, accepts: &dyn Fn(&Key) -> bool) {
        for object in informer.list() {
            self.enqueue(&Change::Created(object), true, accepts);
        }
    }

    /// Wakes the keys that a change is for.
    fn handle(&self, delivery: &Delivery<dyn Kept>) {
        let change = &delivery.change;
        if let Some(orphan_guard) = &self.sink.orphan_guard {
            match change {
                Change::Created(_) => {}
                Change::Updated { old, .. } if old.head().owners.uids().next().is_none() => {}
                Change::Updated { old, new } => {
                    orphan_guard.note(old.clone().value().metadata(), Some(new.clone().value().metadata()));
                }
                Change::Deleted(last) => orphan_guard.note(last.clone().value().metadata(), None),
            }
        }
        if !self.sink.own_events {
            self.enqueue(change, delivery.is_initial, &|key| delivery.is_for(&self.sink.controller, key));
        } else if !delivery.is_repeated() {
            self.enqueue(change, delivery.is_initial, &|_| true);
        }
    }

    /// Adds the keys that a change concerns, before and after it. A panic in a predicate or mapping loses this one event
    /// for this one controller, loudly, and nothing else.
    fn enqueue(&self, change: &Change<dyn Kept>, is_listed: bool, accepts: &dyn Fn(&Key) -> bool) {
        let sink = &self.sink;
        if !sink.open.are_open() {
            return;
        }
        match catch_unwind(AssertUnwindSafe(|| self.keys_of(change))) {
            Ok(keys) => {
                let priority = if is_listed { Priority::LOW } else { Priority::NORMAL };
                let here = |key: Key| match &sink.cluster {
                    Some(cluster) if key.cluster.is_none() => key.in_cluster(cluster.clone()),
                    _ => key,
                };
                for key in keys.into_iter().map(here).filter(accepts) {
                    sink.queue.add_because(key, priority, self.reason(change, is_listed));
                }
            }
            Err(_) => {
                sink.metrics.panics.inc();
                tracing::error!(
                    controller = %sink.controller, kind = %self.kind,
                    "a predicate or mapping panicked; its event is lost for this controller"
                );
            }
        }
    }

    fn reason(&self, change: &Change<dyn Kept>, is_listed: bool) -> Reason {
        let (change, object) = match change {
            Change::Created(object) if is_listed => (ObjectChange::Listed, object),
            Change::Created(object) => (ObjectChange::Created, object),
            Change::Updated { new, .. } => (ObjectChange::Updated, new),
            Change::Deleted(object) => (ObjectChange::Deleted, object),
        };
        Reason::Object(ObjectReason { change, kind: self.kind.clone(), object: object.clone() })
    }

    fn keys_of(&self, change: &Change<dyn Kept>) -> Vec<Key> {
        match (change, &self.mapping) {
            // Nobody looks into the object.
            (Change::Created(object) | Change::Deleted(object), Mapping::Own)
                if self.predicates.is_empty() =>
            {
                vec![Key::at(object.head())]
            }
            _ => self.keys(&Event::from(&change.values())),
        }
    }

    fn keys(&self, event: &Event<'_, dyn AnyObject>) -> Vec<Key> {
        if !self.resumes(event) && !self.predicates.iter().all(|predicate| predicate.accepts(event)) {
            return Vec::new();
        }
        match event {
            Event::Create(object) | Event::Delete(object) | Event::Generic(object) => {
                self.mapping.keys(*object)
            }
            Event::Update { old, new } => {
                let mut keys = self.mapping.keys(*old);
                keys.extend(self.mapping.keys(*new));
                keys
            }
        }
    }

    /// Whether an object was paused and is not any more: what happened in between is due.
    fn resumes(&self, event: &Event<'_, dyn AnyObject>) -> bool {
        let (Some(annotation), Event::Update { old, new }) = (&self.pause, event) else { return false };
        pause::is_paused(old.metadata(), annotation) && !pause::is_paused(new.metadata(), annotation)
    }
}

/// Adds every key of `stream`.
pub(crate) async fn drain(stream: &mut BoxStream<'static, Key>, queue: &Workqueue<Key>) {
    while let Some(key) = stream.next().await {
        queue.add_because(key, Priority::NORMAL, Reason::Source);
    }
}
