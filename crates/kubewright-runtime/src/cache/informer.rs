//! The watch that keeps the objects of one kind up to date.

use std::{
    any::Any,
    borrow::Cow,
    collections::BTreeSet,
    fmt::{self, Debug},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::join_all};
use kube::{
    Api, Client, Resource,
    api::ObjectMeta,
    core::DynamicResourceScope,
    runtime::watcher::{self, watcher},
};
use kubewright_world::Dice;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Connection, state::Change, store::Store};
use crate::{Cached, Key, endpoint::Endpoint};

/// The objects of one kind, kept up to date by one watch (client-go's shared informer). Clones share it; the watch
/// ends when the last clone is dropped, or with the manager.
pub struct Informer<K: Cached>(Arc<Inner<K>>);

struct Inner<K: Cached> {
    store: Arc<Store<K>>,
    kind: K::DynamicType,
    fields: String,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl<K: Cached> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Cached> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Informer").field(&K::plural(&self.0.kind)).finish()
    }
}

impl<K: Cached> Informer<K> {
    /// An informer of the objects that a field selector names (empty: all), in these namespaces (none: all), which knows
    /// nothing until [`Informer::start`]; it ends with `stop` at the latest.
    pub(super) fn new(
        kind: K::DynamicType,
        fields: &str,
        namespaces: &BTreeSet<String>,
        stop: &CancellationToken,
    ) -> Self {
        let stop = stop.child_token();
        Self(Arc::new(Inner {
            store: Arc::new(Store::new(namespaces)),
            kind,
            fields: fields.to_owned(),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
        }))
    }

    /// The object named `key`, as far as is known.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.0.store.get(key)
    }

    /// All objects, or those of one namespace, sorted by key.
    #[must_use]
    pub fn list(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.0.store.list(namespace)
    }

    /// The objects that have an owner reference to `owner_uid`, controlling or not, sorted by key.
    #[must_use]
    pub fn owned_by(&self, owner_uid: &str) -> Vec<Arc<K>> {
        self.0.store.owned_by(owner_uid)
    }

    /// Tells `handler` of every object that is known, as created, and then of every change, in order. It is called
    /// from the task that made the change and must not block; it may read caches. A panic in it is logged.
    pub fn subscribe(&self, handler: impl Fn(&Change<K>) + Send + Sync + 'static) {
        let kind = K::plural(&self.0.kind).into_owned();
        self.0.store.subscribe(Box::new(move |change| {
            if catch_unwind(AssertUnwindSafe(|| handler(change))).is_err() {
                tracing::error!(%kind, "a handler of changes panicked; the change is lost for it");
            }
        }));
    }

    /// Whether the first list is complete: from then on an object that is not found is not there.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.0.store.is_synced()
    }

    /// Waits until the first list is complete, or until it never will be because the manager stops.
    pub async fn synced(&self) {
        tokio::select! {
            biased;
            () = self.0.store.synced() => {}
            () = self.0.stop.cancelled() => {}
        }
    }

    /// The field selector of what it watches; empty when it watches all objects of the kind.
    pub(crate) fn fields(&self) -> &str {
        &self.0.fields
    }

    /// Forgets the kind; [`Informer::restore`] finds it again.
    pub(super) fn erase(&self) -> Arc<dyn Any + Send + Sync> {
        self.0.clone()
    }

    /// The informer of kind `K` that was erased, if it is one.
    pub(super) fn restore(erased: Arc<dyn Any + Send + Sync>) -> Option<Self> {
        erased.downcast().ok().map(Self)
    }

    pub(crate) fn store(&self) -> &Arc<Store<K>> {
        &self.0.store
    }

    /// Starts the watch in a task of its own, on the current tokio runtime.
    pub(super) fn start(&self, client: Client, connection: Connection, dice: Dice) {
        let watch = Watch {
            client,
            connection,
            dice,
            kind: self.0.kind.clone(),
            fields: self.0.fields.clone(),
            store: self.0.store.clone(),
        };
        let stop = self.0.stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = watch.run() => {}
            }
        });
    }
}

struct Watch<K: Cached> {
    client: Client,
    connection: Connection,
    dice: Dice,
    kind: K::DynamicType,
    fields: String,
    store: Arc<Store<K>>,
}

impl<K: Cached> Watch<K> {
    async fn run(self) {
        // All loops in one task, so that none holds up another.
        let follow = self.store.namespaces().enumerate().map(|(number, namespace)| match namespace {
            None => {
                let api = Api::<K>::all_with(self.client.clone(), &self.kind);
                self.follow(number, api, |object| object).boxed()
            }
            Some(namespace) => {
                let client = self.client.clone();
                let api = Api::<Namespaced<K>>::namespaced_with(client, namespace, &self.kind);
                self.follow(number, api, |object| object.0).boxed()
            }
        });
        tokio::select! {
            biased;
            _ = join_all(follow) => {}
            () = self.confirm() => {}
        }
    }

    /// Lists and watches the `number`-th part of the objects, and does so again after every failure.
    async fn follow<W>(&self, number: usize, api: Api<W>, whole: fn(W) -> K)
    where
        W: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let mut config = watcher::Config::default();
        if self.connection == Connection::Process {
            // As long as the server lets it.
            config = config.timeout(0);
        }
        if !self.fields.is_empty() {
            config = config.fields(&self.fields);
        }
        let begin = || watcher(api.clone(), config.clone()).boxed();
        let (mut events, mut backoff) = (begin(), Backoff::default());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    backoff.succeeded();
                    self.apply(number, event, whole);
                }
                Err(error) => {
                    let delay = backoff.failed(&self.dice, is_not_served(&error));
                    self.log(&error, delay);
                    tokio::time::sleep(delay).await;
                    if is_refused_as_gone(&error) {
                        events = begin();
                    }
                }
            }
        }
    }

    fn apply<W>(&self, number: usize, event: watcher::Event<W>, whole: fn(W) -> K) {
        match event {
            watcher::Event::Init => self.store.list_began(number),
            watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                self.store.watched(whole(object));
            }
            watcher::Event::InitDone => self.store.list_ended(number),
            watcher::Event::Delete(object) => self.store.watched_end(&whole(object)),
        }
    }

    /// Asks the server about the objects of which neither the list nor the watch can be relied on to tell the end.
    async fn confirm(&self) {
        let mut backoff = Backoff::default();
        loop {
            let Some((key, uid)) = self.store.unconfirmed() else {
                self.store.unconfirmed_changed().await;
                continue;
            };
            let endpoint = Endpoint::<K>::new(&self.client, &self.kind, key.namespace.as_deref());
            match endpoint.get(&key.name).await {
                Ok(found) => {
                    backoff.succeeded();
                    let there = found.is_some_and(|object| object.meta().uid.as_deref() == Some(&uid));
                    self.store.confirmed(&key, &uid, there);
                }
                Err(error) => {
                    tracing::warn!(resource = %K::plural(&self.kind), %key, %error, "cannot read an object back");
                    tokio::time::sleep(backoff.failed(&self.dice, false)).await;
                }
            }
        }
    }

    fn log(&self, error: &watcher::Error, delay: Duration) {
        let (resource, version) = (K::plural(&self.kind), K::api_version(&self.kind));
        if is_not_served(error) {
            tracing::warn!(
                %resource, %version, retry_in = ?delay,
                "the API server does not serve this kind (yet): is its CustomResourceDefinition installed?"
            );
        } else if is_gone(error) {
            tracing::debug!(%resource, %version, "the watch fell behind; listing again");
        } else {
            tracing::warn!(%resource, %version, retry_in = ?delay, %error, "the watch failed");
        }
    }
}

/// An object of a kind whose scope is known at run time only: what kube wants for reading one namespace, which generic code
/// cannot promise at compile time.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
struct Namespaced<K>(K);

impl<K: Resource> Resource for Namespaced<K> {
    type DynamicType = K::DynamicType;
    type Scope = DynamicResourceScope;

    fn kind(kind: &K::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &K::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &K::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &K::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

fn is_not_served(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.is_not_found(),
        _ => false,
    }
}

/// Whether the version to watch from is too old. kube lists again by itself when an event of the watch says so...
fn is_gone(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchError(status) if status.code == 410) || is_refused_as_gone(error)
}

/// ... but asks for the same version for ever when the answer to the request says so.
fn is_refused_as_gone(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410)
}

/// How long to wait after a failure: twice as long each time, and a random part more so that many clients do not come
/// back at once. Like kube's own default, but with the World's dice.
#[derive(Default)]
struct Backoff {
    failures: u32,
    last: Option<Instant>,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(30);
    /// A kind may be installed at any time, and its operator is expected to start then.
    const LONGEST_FOR_MISSING_KIND: Duration = Duration::from_secs(5);
    /// After this time without one, failures are forgotten.
    const RESET: Duration = Duration::from_secs(120);

    fn succeeded(&mut self) {
        self.failures = 0;
    }

    fn failed(&mut self, dice: &Dice, missing_kind: bool) -> Duration {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) > Self::RESET) {
            self.failures = 0;
        }
        self.last = Some(now);
        let longest = if missing_kind { Self::LONGEST_FOR_MISSING_KIND } else { Self::LONGEST };
        let delay = Self::FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(longest);
        self.failures = self.failures.saturating_add(1);
        delay.mul_f64(1.0 + dice.fraction() / 2.0)
    }
}
