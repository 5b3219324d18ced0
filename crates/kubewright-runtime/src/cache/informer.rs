//! The watch that keeps the objects of one kind up to date.

use std::{
    any::Any,
    fmt::{self, Debug},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::join_all};
use kube::{
    Api, Client, Resource,
    core::Status,
    runtime::watcher::{self, watcher},
};
use kubewright_world::Dice;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Connection,
    namespaced::Namespaced,
    outage::Outage,
    scope::Scope,
    state::Change,
    store::{Handler, Project, Store, Told},
};
use crate::{Cached, Key, endpoint::Endpoint};

/// The objects of one kind, kept up to date by one watch (client-go's shared informer). Clones share it; the watch
/// ends when the last clone is dropped, or with the manager.
pub struct Informer<K: Cached>(Arc<Inner<K>>);

struct Inner<K: Cached> {
    store: Arc<Store<K>>,
    kind: K::DynamicType,
    scope: Scope,
    /// Whether a controller cannot work without it.
    is_needed: AtomicBool,
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
    /// An informer of the objects in a scope, which knows nothing until [`Informer::start`]; it ends with `stop` at the
    /// latest.
    pub(super) fn new(
        kind: K::DynamicType,
        scope: Scope,
        project: Option<Project<K>>,
        stop: &CancellationToken,
    ) -> Self {
        let stop = stop.child_token();
        Self(Arc::new(Inner {
            store: Arc::new(Store::new(&scope.namespaces, project)),
            kind,
            scope,
            is_needed: AtomicBool::new(false),
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
        self.subscribe_all(move |change, told| {
            if told.is_news() {
                handler(change);
            }
        });
    }

    /// As [`Informer::subscribe`]; also of changes that were withheld from somebody at first.
    pub(crate) fn subscribe_all(&self, handler: impl Fn(&Change<K>, &Told) + Send + Sync + 'static) {
        self.0.store.subscribe(self.guarded(handler));
    }

    /// As [`Informer::subscribe_all`], as long as `alive` is held.
    pub(crate) fn subscribe_while(
        &self,
        alive: &Arc<()>,
        handler: impl Fn(&Change<K>, &Told) + Send + Sync + 'static,
    ) {
        self.0.store.subscribe_while(Arc::downgrade(alive), self.guarded(handler));
    }

    /// A handler whose panic is logged.
    fn guarded(&self, handler: impl Fn(&Change<K>, &Told) + Send + Sync + 'static) -> Handler<K> {
        let kind = K::plural(&self.0.kind).into_owned();
        Box::new(move |change, told| {
            if catch_unwind(AssertUnwindSafe(|| handler(change, told))).is_err() {
                tracing::error!(%kind, "a handler of changes panicked; the change is lost for it");
            }
        })
    }

    /// Whether the API server serves the kind, as far as is known: a CustomResourceDefinition may come later, or go. When
    /// it goes, its objects have ended.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.0.store.is_served()
    }

    /// Waits until it is known what there is: the first list is complete, or the kind is not served.
    pub async fn known(&self) {
        tokio::select! {
            biased;
            () = self.0.store.known() => {}
            () = self.0.stop.cancelled() => {}
        }
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

    /// A controller cannot work without it: it is not filled before its first list is complete.
    pub(crate) fn need(&self) {
        self.0.is_needed.store(true, Ordering::SeqCst);
    }

    /// Whether those who declared it need not wait any more.
    pub(super) fn is_filled(&self) -> bool {
        self.is_synced() || !self.0.is_needed.load(Ordering::SeqCst) && !self.is_served()
    }

    pub(super) async fn filled(&self) {
        if self.0.is_needed.load(Ordering::SeqCst) { self.synced().await } else { self.known().await }
    }

    /// Which objects it watches.
    pub(crate) fn scope(&self) -> &Scope {
        &self.0.scope
    }

    /// The kind, as `<plural>.<group>`.
    pub(super) fn resource(&self) -> String {
        let (plural, group) = (K::plural(&self.0.kind), K::group(&self.0.kind));
        if group.is_empty() { plural.into_owned() } else { format!("{plural}.{group}") }
    }

    /// Whether another informer is a clone of this one.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What finds it again, as long as somebody holds it.
    pub(crate) fn downgrade(&self) -> impl Fn() -> Option<Self> + Send + Sync + 'static {
        let held = Arc::downgrade(&self.0);
        move || held.upgrade().map(Self)
    }

    /// Whether an object belongs in it, as far as its labels say.
    pub(crate) fn selects(&self, object: &K) -> bool {
        self.0.scope.selects(object.meta())
    }

    /// Whether it keeps only a part of each object.
    pub(crate) fn is_partial(&self) -> bool {
        K::metadata_api() || self.0.store.is_projected()
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
            scope: self.0.scope.clone(),
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
    scope: Scope,
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
        if !self.scope.fields.is_empty() {
            config = config.fields(&self.scope.fields);
        }
        if !self.scope.labels.selects_all() {
            config = config.labels_from(&self.scope.labels);
        }
        let begin = || watcher(api.clone(), config.clone()).boxed();
        let (mut events, mut backoff, mut outage) = (begin(), Backoff::default(), Outage::default());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    // A list alone is no progress: a watch from it may fail at once, again and again.
                    if matches!(event, watcher::Event::Apply(_) | watcher::Event::Delete(_)) {
                        backoff.succeeded();
                    }
                    // That a list begins says nothing: it may be refused again.
                    if !matches!(event, watcher::Event::Init)
                        && let Some(lasted) = outage.ended()
                    {
                        let (resource, version) = (K::plural(&self.kind), K::api_version(&self.kind));
                        tracing::info!(%resource, %version, ?lasted, "the watch works again");
                    }
                    self.apply(number, event, whole);
                }
                Err(error) => {
                    let not_served = is_not_served(&error);
                    if not_served {
                        self.store.not_served(number);
                    }
                    let delay = backoff.failed(&self.dice, not_served);
                    self.log(&error, delay, &mut outage);
                    tokio::time::sleep(delay).await;
                    if not_served || is_refused_as_gone(&error) {
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

    /// Says what is wrong when it begins and every few minutes, not at every try.
    fn log(&self, error: &watcher::Error, delay: Duration, outage: &mut Outage) {
        let (resource, version) = (K::plural(&self.kind), K::api_version(&self.kind));
        if is_gone(error) {
            tracing::debug!(%resource, %version, "the watch fell behind; listing again");
        } else if is_over(error) {
            tracing::debug!(%resource, %version, "the client has ended");
        } else if !outage.is_to_be_told() {
            tracing::debug!(%resource, %version, retry_in = ?delay, %error, "the watch still fails");
        } else if is_not_served(error) {
            tracing::warn!(
                %resource, %version, retry_in = ?delay,
                "the API server does not serve this kind (yet): is its CustomResourceDefinition installed?"
            );
        } else if is_forbidden(error) {
            tracing::warn!(
                %resource, %version, retry_in = ?delay, %error,
                "the operator may not list and watch this kind: add the verbs list and watch to its role"
            );
        } else {
            tracing::warn!(%resource, %version, retry_in = ?delay, %error, "the watch failed");
        }
    }
}

/// What the server answered when it refused to list or to watch.
fn refusal(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => Some(status),
        _ => None,
    }
}

/// Whether the client has ended, as when the process does.
fn is_over(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => {
            matches!(error, kube::Error::Service(error) if error.is::<tower::buffer::error::Closed>())
        }
        _ => false,
    }
}

fn is_not_served(error: &watcher::Error) -> bool {
    // A group that nobody serves is answered in plain text, which is no Status with a reason.
    refusal(error).is_some_and(|status| status.is_not_found() || status.code == 404)
}

fn is_forbidden(error: &watcher::Error) -> bool {
    refusal(error).is_some_and(Status::is_forbidden)
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
