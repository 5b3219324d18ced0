//! Where a controller's keys come from.

use std::{
    any::{TypeId, type_name},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{StreamExt, future::BoxFuture, stream::BoxStream};

use crate::{
    Key, Object,
    cache::{Cache, Change, Informer},
    metrics::ControllerMetrics,
    predicate::{Event, Predicate},
    rbac::Subject,
    workqueue::Workqueue,
};

/// Maps an object to the keys that it concerns.
type Mapping<K> = Box<dyn Fn(&K) -> Vec<Key> + Send + Sync>;

/// The end of a source: the controller's queue, and its name and counts for what goes wrong on the way.
#[derive(Clone)]
pub(crate) struct Sink {
    pub(crate) controller: Arc<str>,
    pub(crate) queue: Arc<Workqueue<Key>>,
    pub(crate) metrics: ControllerMetrics,
    /// Whether events lead to anything. While a replica stands by they do not: when it is its turn, everything that is
    /// there then is [replayed](Replay), and a queue of what was there once would only grow.
    pub(crate) open: Arc<AtomicBool>,
}

/// Delivers every object that is known once more, as created, for those keys that a function accepts.
pub(crate) type Replay = Box<dyn Fn(&dyn Fn(&Key) -> bool) + Send + Sync>;

/// A kind whose events go to a controller.
pub(crate) struct Connected {
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
    fn subject(&self) -> Option<Subject>;

    /// Adds a predicate; the name of the type that it is for when that is not this source's.
    fn restrict(&mut self, predicate: Predicate) -> Result<(), &'static str>;

    /// Watches only the objects that a field selector names.
    fn select(&mut self, fields: &str);

    /// Makes the kind part of the cache, without events; says what is wrong when another part of it is there already.
    fn declare(&self, cache: &Cache) -> Result<(), String>;

    /// Sends keys to `sink` from now on, whenever it is open.
    fn connect(self: Box<Self>, cache: &Cache, sink: Sink) -> Connected;
}

/// A kind and what its events lead to.
pub(crate) struct Kind<K> {
    mapping: Option<Mapping<K>>,
    predicates: Vec<Predicate>,
    /// Which objects are watched: a field selector, empty for all.
    fields: String,
    /// The caches of another cluster, if they are watched there.
    elsewhere: Option<Cache>,
}

impl<K: Object> Kind<K> {
    /// Events of this kind lead to reconciles of the keys that `mapping` finds.
    pub(crate) fn mapped(mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static) -> Self {
        Self {
            mapping: Some(Box::new(mapping)),
            predicates: Vec::new(),
            fields: String::new(),
            elsewhere: None,
        }
    }

    /// The kind is only read.
    pub(crate) fn read() -> Self {
        Self { mapping: None, predicates: Vec::new(), fields: String::new(), elsewhere: None }
    }

    /// The kind is looked at in another cluster.
    pub(crate) fn elsewhere(mut self, cache: Cache) -> Self {
        self.elsewhere = Some(cache);
        self
    }
}

impl<K: Object> KindSource for Kind<K> {
    fn read_from_context(&self) -> Option<TypeId> {
        self.elsewhere.is_none().then(TypeId::of::<K>)
    }

    fn subject(&self) -> Option<Subject> {
        self.elsewhere.is_none().then(|| Subject::of::<K>(None))
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

    fn select(&mut self, fields: &str) {
        fields.clone_into(&mut self.fields);
    }

    fn declare(&self, cache: &Cache) -> Result<(), String> {
        let informer: Informer<K> = self.elsewhere.as_ref().unwrap_or(cache).declare(&self.fields);
        if informer.fields() == self.fields {
            return Ok(());
        }
        Err(format!(
            "{} is watched with the field selector {:?} elsewhere in this manager, and with {:?} here",
            type_name::<K>(),
            informer.fields(),
            self.fields
        ))
    }

    fn connect(self: Box<Self>, cache: &Cache, sink: Sink) -> Connected {
        let informer: Informer<K> = self.elsewhere.as_ref().unwrap_or(cache).declare(&self.fields);
        let predicates = self.predicates;
        let replay = self.mapping.map(|mapping| {
            let deliver = Arc::new(move |change: &Change<K>, accepts: &dyn Fn(&Key) -> bool| {
                deliver(change, &predicates, &mapping, &sink, accepts);
            });
            let delivers = deliver.clone();
            informer.subscribe(move |change| delivers(change, &|_| true));
            let informer = informer.clone();
            let replay: Replay = Box::new(move |accepts| {
                for object in informer.list(None) {
                    deliver(&Change::Created(object), accepts);
                }
            });
            replay
        });
        Connected { synced: Box::pin(async move { informer.synced().await }), replay }
    }
}

/// Adds the keys that a change concerns, before and after it. A panic in a predicate or mapping loses this one event
/// for this one controller, loudly, and nothing else.
fn deliver<K: Object>(
    change: &Change<K>,
    predicates: &[Predicate],
    mapping: &Mapping<K>,
    sink: &Sink,
    accepts: &dyn Fn(&Key) -> bool,
) {
    if !sink.open.load(Ordering::SeqCst) {
        return;
    }
    let keys = catch_unwind(AssertUnwindSafe(|| {
        let event = Event::from(change);
        if !predicates.iter().all(|predicate| predicate.accepts(&event)) {
            return Vec::new();
        }
        match event {
            Event::Create(object) | Event::Delete(object) => mapping(object),
            Event::Update { old, new } => {
                let mut keys = mapping(old);
                keys.extend(mapping(new));
                keys
            }
        }
    }));
    match keys {
        Ok(keys) => keys.into_iter().filter(accepts).for_each(|key| sink.queue.add(key)),
        Err(_) => {
            sink.metrics.panics.inc();
            tracing::error!(
                controller = %sink.controller, kind = type_name::<K>(),
                "a predicate or mapping panicked; its event is lost for this controller"
            );
        }
    }
}

/// Adds every key of `stream`.
pub(crate) async fn drain(stream: &mut BoxStream<'static, Key>, queue: &Workqueue<Key>) {
    while let Some(key) = stream.next().await {
        queue.add(key);
    }
}
