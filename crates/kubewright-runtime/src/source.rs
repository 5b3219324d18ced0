//! Where a controller's keys come from.

use std::{
    any::{TypeId, type_name},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use futures::{StreamExt, future::BoxFuture, stream::BoxStream};

use crate::{
    Key, Object,
    cache::{Cache, Change, Informer},
    counters::{Counter, bump},
    predicate::{Event, Predicate},
    workqueue::Workqueue,
};

/// Maps an object to the keys that it concerns.
type Mapping<K> = Box<dyn Fn(&K) -> Vec<Key> + Send + Sync>;

/// The end of a source: the controller's queue, and its name and counts for what goes wrong on the way.
#[derive(Clone)]
pub(crate) struct Sink {
    pub(crate) controller: Arc<str>,
    pub(crate) queue: Arc<Workqueue<Key>>,
    pub(crate) counter: Arc<Counter>,
}

/// A kind that a controller looks at.
pub(crate) trait KindSource: Send {
    fn kind_id(&self) -> TypeId;

    /// Adds a predicate; the name of the type that it is for when that is not this source's.
    fn restrict(&mut self, predicate: Predicate) -> Result<(), &'static str>;

    /// Watches only the objects that a field selector names.
    fn select(&mut self, fields: &str);

    /// Makes the kind part of the cache, without events; says what is wrong when another part of it is there already.
    fn declare(&self, cache: &Cache) -> Result<(), String>;

    /// Sends keys to `sink` from now on; what is returned waits until the cache of the kind is complete.
    fn connect(self: Box<Self>, cache: &Cache, sink: Sink) -> BoxFuture<'static, ()>;
}

/// A kind and what its events lead to.
pub(crate) struct Kind<K> {
    mapping: Option<Mapping<K>>,
    predicates: Vec<Predicate>,
    /// Which objects are watched: a field selector, empty for all.
    fields: String,
}

impl<K: Object> Kind<K> {
    /// Events of this kind lead to reconciles of the keys that `mapping` finds.
    pub(crate) fn mapped(mapping: impl Fn(&K) -> Vec<Key> + Send + Sync + 'static) -> Self {
        Self { mapping: Some(Box::new(mapping)), predicates: Vec::new(), fields: String::new() }
    }

    /// The kind is only read.
    pub(crate) fn read() -> Self {
        Self { mapping: None, predicates: Vec::new(), fields: String::new() }
    }
}

impl<K: Object> KindSource for Kind<K> {
    fn kind_id(&self) -> TypeId {
        TypeId::of::<K>()
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
        let informer: Informer<K> = cache.declare(&self.fields);
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

    fn connect(self: Box<Self>, cache: &Cache, sink: Sink) -> BoxFuture<'static, ()> {
        let informer: Informer<K> = cache.declare(&self.fields);
        if let Some(mapping) = self.mapping {
            let predicates = self.predicates;
            informer.subscribe(move |change| deliver(change, &predicates, &mapping, &sink));
        }
        Box::pin(async move { informer.synced().await })
    }
}

/// Adds the keys that a change concerns, before and after it. A panic in a predicate or mapping loses this one event
/// for this one controller, loudly, and nothing else.
fn deliver<K: Object>(change: &Change<K>, predicates: &[Predicate], mapping: &Mapping<K>, sink: &Sink) {
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
        Ok(keys) => keys.into_iter().for_each(|key| sink.queue.add(key)),
        Err(_) => {
            bump(&sink.counter.panics);
            tracing::error!(
                controller = %sink.controller, kind = type_name::<K>(),
                "a predicate or mapping panicked; its event is lost for this controller"
            );
        }
    }
}

/// Adds every key of `stream`.
pub(crate) async fn drain(mut stream: BoxStream<'static, Key>, sink: Sink) {
    while let Some(key) = stream.next().await {
        sink.queue.add(key);
    }
}
