//! What the handler of a webhook works with beside the request.

use std::{any::TypeId, collections::BTreeMap, fmt, sync::Arc};

use futures::future::{BoxFuture, join_all};
use kube::Client;
use kubewright_world::World;

use crate::{
    Cache, Error, Key, ListOptions, Object,
    endpoint::Endpoint,
    kind::KindOf,
    metrics::Metrics,
    rbac::ResourceAttributes,
    source::{KindSource, WatchedKind},
};

/// The surroundings of a webhook's handler: reads from the manager's caches and past them, the client, the clock. Clones are
/// cheap and share everything. A handler has it from [`Request::context`](super::Request::context).
///
/// The cache has the kinds that the webhook [reads](super::Webhook::reads), and is filled before its handler is called. It is as far as the watches
/// are: what another replica of the API server accepted a moment ago may not be there yet, so that two requests at once may each be
/// accepted although they exclude one another. What must never be is kept by names or by the API server, not by a webhook.
#[derive(Clone)]
pub struct WebhookContext(Arc<Inner>);

struct Inner {
    client: Client,
    world: World,
    cache: Cache,
    /// The webhook, for errors.
    path: String,
    reads: BTreeMap<TypeId, Reading>,
}

impl WebhookContext {
    pub(super) fn new(client: Client, world: World, cache: Cache, path: &str, reads: &[Reading]) -> Self {
        let reads = reads.iter().map(|reading| (reading.kind, reading.clone())).collect();
        Self(Arc::new(Inner { client, world, cache, path: path.to_owned(), reads }))
    }

    /// The manager's client. Webhooks are served on every replica, so that it is not fenced. To write while a request is a
    /// [dry run](super::Request::dry_run) is a mistake.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The clock and the dice.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.0.world
    }

    /// The object named `key`, from the cache. Of a manager that looks at some namespaces only, objects elsewhere are not there.
    ///
    /// # Panics
    /// When the webhook does not [read](super::Webhook::reads) the kind: the answer would be "not there" whatever is there. The
    /// panic is answered with 500, so that the webhook's failure policy decides.
    #[must_use]
    pub fn get<K: Object>(&self, key: &Key) -> Option<Arc<K>> {
        self.expect_declared::<K>();
        self.0.cache.get(key)
    }

    /// All objects of a kind, or those of one namespace, from the cache, sorted by key.
    ///
    /// # Panics
    /// As [`WebhookContext::get`].
    #[must_use]
    pub fn list<K: Object>(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.expect_declared::<K>();
        self.0.cache.list(namespace)
    }

    /// The objects of a kind that are selected, from the cache, sorted by key.
    ///
    /// # Errors
    /// Selectors that are none.
    ///
    /// # Panics
    /// As [`WebhookContext::get`].
    pub fn list_selected<K: Object>(&self, selected: &ListOptions) -> Result<Vec<Arc<K>>, Error> {
        selected.select(self.list(selected.namespace_of::<K>(&KindOf::typed())))
    }

    /// The object named `key`, from the API server. It costs a request each time, in the time that the webhook has.
    ///
    /// # Errors
    /// What the server refuses; that the object is not there is `None`.
    pub async fn live<K: Object>(&self, key: &Key) -> Result<Option<K>, Error> {
        let objects: Endpoint<'_, K> = Endpoint::new(&self.0.client, &(), key.namespace.as_deref());
        Ok(objects.get(&key.name).await?)
    }

    /// The objects of a kind that are selected, from the API server, as [`Context::live_list`](crate::Context::live_list).
    ///
    /// # Errors
    /// What the server refuses; selectors that are none.
    pub async fn live_list<K: Object>(&self, selected: &ListOptions) -> Result<Vec<K>, Error> {
        selected.live(&self.0.client, &KindOf::typed()).await
    }

    /// Waits until what it reads is in the cache.
    pub(super) async fn filled(&self) {
        join_all(self.0.reads.values().map(|reading| (reading.filled)(self.0.cache.clone()))).await;
    }

    fn expect_declared<K: Object>(&self) {
        assert!(
            self.0.reads.contains_key(&TypeId::of::<K>()),
            "the webhook {} reads {} but does not declare it: add .reads::<{}>()",
            self.0.path,
            K::plural(&()),
            K::kind(&()),
        );
    }
}

impl fmt::Debug for WebhookContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookContext").field("path", &self.0.path).finish_non_exhaustive()
    }
}

/// A kind that a webhook reads.
#[derive(Clone)]
pub(crate) struct Reading {
    kind: TypeId,
    source: fn() -> Box<dyn KindSource>,
    filled: fn(Cache) -> BoxFuture<'static, ()>,
}

impl Reading {
    pub(super) fn of<K: Object>() -> Self {
        let filled = |cache: Cache| -> BoxFuture<'static, ()> {
            Box::pin(async move {
                if let Some(informer) = cache.informer::<K>() {
                    informer.synced().await;
                }
            })
        };
        Self { kind: TypeId::of::<K>(), source: || Box::new(WatchedKind::<K>::read()), filled }
    }

    /// Makes the kind part of the cache.
    pub(crate) fn declare(&self, cache: &Cache, metrics: &Metrics) -> Result<(), String> {
        (self.source)().declare(cache, metrics)
    }

    /// What it takes rights to.
    pub(super) fn attributes(&self) -> Option<ResourceAttributes> {
        (self.source)().attributes()
    }
}
