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
    metrics::ControllerMetrics,
    object::AnyObject,
    orphan_guard::OrphanGuard,
    pause,
    predicate::{Event, Predicate},
    rbac::ResourceAttributes,
    workqueue::{Priority, Workqueue},
};

/// Maps an object to the keys that it concerns; its type is forgotten.
type Mapping = Box<dyn Fn(&dyn AnyObject) -> Vec<Key> + Send + Sync>;

/// Forgets the type of what a mapping maps, which maps nothing else.
fn forget<K: Cached>(mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static) -> Mapping {
    Box::new(move |object| object.any().downcast_ref().map(&mapping).unwrap_or_default())
}

/// The end of a source: the controller's queue, and its name and counts for what goes wrong on the way.
#[derive(Clone)]
pub(crate) struct Sink {
    pub(crate) controller: Arc<str>,
    pub(crate) queue: Arc<Workqueue<Key>>,
    pub(crate) metrics: ControllerMetrics,
    /// Whether events lead to anything. While a replica stands by they do not: when it is its turn, everything that is
    /// there then is [replayed](Replay), and a queue of what was there once would only grow.
    pub(crate) open: Arc<AtomicBool>,
    /// The annotation that pauses objects of the own kind.
    pub(crate) pause: Option<Arc<str>>,
    /// Whether what a reconcile wrote wakes its own key.
    pub(crate) own_events: bool,
    /// The watches that reconciles began.
    pub(crate) dynamic_watches: DynamicWatches,
    /// The own kind's objects that lost a child; none without an own kind.
    pub(crate) orphan_guard: Option<OrphanGuard>,
}

/// Delivers every object that is known once more, as created, for those keys that a function accepts.
pub(crate) type Replay = Box<dyn Fn(&dyn Fn(&Key) -> bool) + Send + Sync>;

/// A kind whose events go to a controller.
pub(crate) struct Connected {
    /// What is waited for.
    pub(crate) resource: String,
    pub(crate) is_ready: Box<dyn Fn() -> bool + Send + Sync>,
    /// Waits until the cache of the kind is complete.
    pub(crate) synced: BoxFuture<'static, ()>,
    /// Not there for a kind that is only read.
    pub(crate) replay: Option<Replay>,
}

/// A kind that a controller looks at.
pub(crate) trait KindSource: Send {
    /// The kind, if a [`crate::Context`] may read it.
    fn read_from_context(&self) -> Option<TypeId>;

    /// What it reads, if it is in the manager's own cluster.
    fn attributes(&self) -> Option<ResourceAttributes>;

    /// Adds a predicate; the name of the type that it is for when that is not this source's.
    fn restrict(&mut self, predicate: Predicate) -> Result<(), &'static str>;

    /// Does not wait for the kind when the API server does not serve it.
    fn make_optional(&mut self);

    /// Lets what a reconcile wrote wake its own key.
    fn include_own_events(&mut self);

    /// Which of its objects are watched, to be changed.
    fn asked(&mut self) -> &mut ScopeRequest;

    /// Keeps an [`Index`] of this source's kind up to date; `false` if it is one of another kind.
    fn index(&mut self, index: &dyn Any) -> bool;

    /// Keeps what a [`Project`] of this source's kind leaves; `false` if it is one of another kind.
    fn project(&mut self, project: Box<dyn Any>) -> bool;

    /// Makes the kind part of the cache, without events; says what is wrong when another part of it is there already.
    fn declare(&self, cache: &Cache) -> Result<(), String>;

    /// Sends keys to `sink` from now on, whenever it is open.
    fn connect(self: Box<Self>, cache: &Cache, sink: Sink) -> Connected;
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
    /// The caches of another cluster, if they are watched there.
    elsewhere: Option<Cache>,
}

impl<K: Object> WatchedKind<K> {
    /// As [`WatchedKind::mapped`], for the kind whose objects can be paused.
    pub(crate) fn own(mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static) -> Self {
        Self { is_own: true, ..Self::mapped(mapping) }
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
            elsewhere: None,
        }
    }

    /// The kind is looked at in another cluster.
    pub(crate) fn elsewhere(mut self, cache: Cache) -> Self {
        self.elsewhere = Some(cache);
        self
    }
}

impl<K: Object> KindSource for WatchedKind<K> {
    fn read_from_context(&self) -> Option<TypeId> {
        self.elsewhere.is_none().then(TypeId::of::<K>)
    }

    fn attributes(&self) -> Option<ResourceAttributes> {
        self.elsewhere.is_none().then(|| ResourceAttributes::of::<K>(None))
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

    fn declare(&self, cache: &Cache) -> Result<(), String> {
        let cache = self.elsewhere.as_ref().unwrap_or(cache);
        let known = cache.informer::<K>().is_some();
        let informer: Informer<K> = cache.declare(&self.asked, self.project.clone());
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

    fn connect(self: Box<Self>, cache: &Cache, mut sink: Sink) -> Connected {
        let cache = self.elsewhere.as_ref().unwrap_or(cache);
        let informer: Informer<K> = cache.declare(&self.asked, self.project.clone());
        sink.own_events |= self.own_events;
        let pause = sink.pause.clone().filter(|_| self.is_own);
        let (predicates, kind) = (self.predicates, type_name::<K>());
        let handler = self.mapping.map(|mapping| EventHandler { kind, predicates, mapping, sink, pause });
        connected(informer.erase(), handler, self.is_optional)
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
    let (is_ready, informer) = (informer.clone(), informer.clone());
    Connected {
        resource: informer.plural().to_owned(),
        is_ready: Box::new(move || is_ready.is_synced() || is_optional && !is_ready.is_served()),
        synced: Box::pin(async move {
            if is_optional { informer.known().await } else { informer.synced().await }
        }),
        replay,
    }
}

/// The way from a change to the keys that it concerns.
pub(crate) struct EventHandler {
    /// The type of the objects, for the log.
    kind: &'static str,
    predicates: Vec<Predicate>,
    mapping: Mapping,
    sink: Sink,
    pause: Option<Arc<str>>,
}

impl EventHandler {
    /// Without predicates and pauses.
    pub(crate) fn mapped<K: Cached>(
        mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static,
        sink: Sink,
    ) -> Self {
        Self { kind: type_name::<K>(), predicates: Vec::new(), mapping: forget(mapping), sink, pause: None }
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
            self.enqueue(&Change::Created(object), Priority::LOW, accepts);
        }
    }

    /// Wakes the keys that a change is for.
    fn handle(&self, delivery: &Delivery<dyn AnyObject>) {
        let change = &delivery.change;
        if let Some(orphan_guard) = &self.sink.orphan_guard {
            match change {
                Change::Created(_) => {}
                Change::Updated { old, new } => orphan_guard.note(old.metadata(), Some(new.metadata())),
                Change::Deleted(last) => orphan_guard.note(last.metadata(), None),
            }
        }
        let priority = if delivery.is_initial { Priority::LOW } else { Priority::NORMAL };
        if !self.sink.own_events {
            self.enqueue(change, priority, &|key| delivery.is_for(&self.sink.controller, key));
        } else if !delivery.is_repeated() {
            self.enqueue(change, priority, &|_| true);
        }
    }

    /// Adds the keys that a change concerns, before and after it. A panic in a predicate or mapping loses this one event
    /// for this one controller, loudly, and nothing else.
    fn enqueue(&self, change: &Change<dyn AnyObject>, priority: Priority, accepts: &dyn Fn(&Key) -> bool) {
        let sink = &self.sink;
        if !sink.open.load(Ordering::SeqCst) {
            return;
        }
        let event = Event::from(change);
        match catch_unwind(AssertUnwindSafe(|| self.keys(&event))) {
            Ok(keys) => {
                keys.into_iter().filter(accepts).for_each(|key| sink.queue.add_with(key, priority));
            }
            Err(_) => {
                sink.metrics.panics.inc();
                tracing::error!(
                    controller = %sink.controller, kind = self.kind,
                    "a predicate or mapping panicked; its event is lost for this controller"
                );
            }
        }
    }

    fn keys(&self, event: &Event<'_, dyn AnyObject>) -> Vec<Key> {
        if !self.resumes(event) && !self.predicates.iter().all(|predicate| predicate.accepts(event)) {
            return Vec::new();
        }
        match event {
            Event::Create(object) | Event::Delete(object) | Event::Generic(object) => (self.mapping)(*object),
            Event::Update { old, new } => {
                let mut keys = (self.mapping)(*old);
                keys.extend((self.mapping)(*new));
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
        queue.add(key);
    }
}
