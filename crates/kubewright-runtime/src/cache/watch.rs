//! The watch that keeps the objects of one kind up to date.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use kube::{
    Api, Client, Resource,
    api::ApiResource,
    core::Status,
    runtime::watcher::{self, watcher},
};
use kubewright_world::Dice;
use tokio::time::Instant;

use super::{
    Connection,
    applied::Appliers,
    decoder::Decoder,
    outage::{Outage, ServerOutage},
    raw::Raw,
    scope::Scope,
    store::{Part, Store},
};
use crate::{endpoint::Endpoint, object::Head, unreachable::unreachable};

/// A watch of the objects of a kind, for a cache of them.
pub(super) struct Watch {
    pub(super) client: Client,
    pub(super) connection: Connection,
    pub(super) dice: Dice,
    pub(super) kind: ApiResource,
    /// Whether the server is to send the metadata alone.
    pub(super) is_metadata: bool,
    pub(super) scope: Scope,
    pub(super) decoder: Arc<Decoder>,
    /// Of whom it is kept what they own; of an object that is kept in part nothing can be known.
    pub(super) appliers: Option<Appliers>,
    pub(super) store: Arc<Store>,
    /// What all watches of a cache know of their server.
    pub(super) server: ServerOutage,
}

impl Watch {
    /// Keeps the store up to date for ever.
    pub(super) async fn run(self) {
        if self.is_metadata { self.run_as::<true>().await } else { self.run_as::<false>().await }
    }

    async fn run_as<const METADATA: bool>(&self) {
        // All loops in one task, so that none holds up another.
        let (mut followed, mut following) = (Vec::new(), FuturesUnordered::new());
        let mut confirm = pin!(self.confirm());
        self.store.watch_began();
        loop {
            let parts = self.store.parts();
            let is_new = |part: &&Arc<Part>| !followed.iter().any(|known| Arc::ptr_eq(known, part));
            following.extend(
                parts.iter().filter(is_new).cloned().map(|part| self.follow::<METADATA>(part).boxed()),
            );
            followed.clone_from(&parts);
            tokio::select! {
                biased;
                () = self.store.parts_changed.notified() => {}
                Some(()) = following.next() => {}
                () = &mut confirm => return,
            }
        }
    }

    /// Follows a part of the objects for as long as it is looked at.
    async fn follow<const METADATA: bool>(&self, part: Arc<Part>) {
        let client = self.client.clone();
        let api = match part.namespace() {
            None => Api::<Raw<METADATA>>::all_with(client, &self.kind),
            Some(namespace) => Api::namespaced_with(client, namespace, &self.kind),
        };
        part.gone.run_until_cancelled(self.list_and_watch(&part, api)).await;
    }

    /// Lists and watches a part of the objects, and does so again after every failure.
    async fn list_and_watch<const METADATA: bool>(&self, part: &Part, api: Api<Raw<METADATA>>) {
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
            match event.and_then(|event| self.apply(part, event)) {
                Ok(phase) => {
                    // A list alone is no progress: a watch from it may fail at once, again and again.
                    if phase == WatchPhase::Watched {
                        backoff.succeeded();
                    }
                    // That a list begins says nothing: it may be refused again.
                    if phase != WatchPhase::Listing {
                        self.store.set_failure(None);
                    }
                    if phase != WatchPhase::Listing
                        && let Some(lasted) = self.server.ended()
                    {
                        tracing::info!(?lasted, "the API server is reached again");
                    }
                    if phase != WatchPhase::Listing
                        && let Some(lasted) = outage.ended()
                    {
                        let (resource, version) = self.name();
                        tracing::info!(%resource, %version, ?lasted, "the watch works again");
                    }
                }
                Err(error) => {
                    let not_served = is_not_served(&error);
                    if not_served {
                        self.store.not_served(part);
                    }
                    let delay = backoff.failed(&self.dice, not_served);
                    self.store.set_failure(Some(describe(&error)));
                    self.log(&error, delay, &mut outage);
                    tokio::time::sleep(delay).await;
                    if not_served || is_refused_as_gone(&error) || is_unreadable(&error) {
                        events = begin();
                    }
                }
            }
        }
    }

    /// Tells the store.
    fn apply<const METADATA: bool>(
        &self,
        part: &Part,
        event: watcher::Event<Raw<METADATA>>,
    ) -> watcher::Result<WatchPhase> {
        Ok(match event {
            watcher::Event::Init => {
                part.state.write().list_began();
                WatchPhase::Listing
            }
            watcher::Event::InitApply(object) => {
                self.watched(&object).map_err(unreadable(watcher::Error::InitialListFailed))?;
                WatchPhase::Listing
            }
            watcher::Event::InitDone => {
                self.store.list_ended(part);
                WatchPhase::Listed
            }
            watcher::Event::Apply(object) => {
                self.watched(&object).map_err(unreadable(watcher::Error::WatchFailed))?;
                WatchPhase::Watched
            }
            watcher::Event::Delete(object) => {
                let meta = object.metadata().map_err(unreadable(watcher::Error::WatchFailed))?;
                self.store.watched_end(Head::of(&meta));
                WatchPhase::Watched
            }
        })
    }

    /// Tells the store of an object that is there.
    fn watched<const METADATA: bool>(&self, object: &Raw<METADATA>) -> serde_json::Result<()> {
        // What an own write returned comes once more by the watch: all of it is known.
        if let Some(known) = self.store.in_version(Head::of(object.meta())) {
            self.store.watched_again(&known);
            return Ok(());
        }
        let managed_fields = self.appliers.as_ref().zip(object.managed_fields.as_deref());
        let owned = managed_fields.map(|(appliers, fields)| appliers.in_text(fields)).unwrap_or_default();
        self.store.watched(&self.decoder.decode(&object.text)?, owned);
        Ok(())
    }

    /// Asks the server about the objects of which neither the list nor the watch can be relied on to tell the end.
    async fn confirm(&self) {
        let mut backoff = Backoff::default();
        loop {
            let Some((key, uid)) = self.store.unconfirmed() else {
                self.store.unconfirmed_changed().await;
                continue;
            };
            // Whichever form it is read in, its uid is known.
            let endpoint = Endpoint::<Raw<true>>::new(&self.client, &self.kind, key.namespace.as_deref());
            match endpoint.get(&key.name).await {
                Ok(found) => {
                    backoff.succeeded();
                    let there = found.is_some_and(|object| object.meta().uid.as_deref() == Some(&uid));
                    self.store.confirmed(&key, &uid, there);
                }
                Err(error) => {
                    tracing::warn!(resource = %self.kind.plural, %key, %error, "cannot read an object back");
                    tokio::time::sleep(backoff.failed(&self.dice, false)).await;
                }
            }
        }
    }

    /// The kind's plural and its version, for the log.
    fn name(&self) -> (&str, &str) {
        (&self.kind.plural, &self.kind.api_version)
    }

    /// Says what is wrong when it begins and every few minutes, not at every try.
    fn log(&self, error: &watcher::Error, delay: Duration, outage: &mut Outage) {
        let (resource, version) = self.name();
        if is_gone(error) {
            tracing::debug!(%resource, %version, "the watch fell behind; listing again");
        } else if is_over(error) {
            tracing::debug!(%resource, %version, "the client has ended");
        } else if let Some(unreachable) = kube_error(error).and_then(unreachable) {
            // All watches of the server fail alike: it is told once for all of them.
            if self.server.is_due() {
                tracing::warn!(retry_in = ?delay, "{unreachable}");
            } else {
                tracing::debug!(%resource, %version, retry_in = ?delay, "{unreachable}");
            }
        } else if !outage.is_due() {
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

/// How far an event brings a watch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WatchPhase {
    /// It is not known yet what there is.
    Listing,
    Listed,
    Watched,
}

/// The error of an object that is none of its kind.
fn unreadable(error: fn(kube::Error) -> watcher::Error) -> impl FnOnce(serde_json::Error) -> watcher::Error {
    move |cause| error(kube::Error::SerdeError(cause))
}

/// Whether a list has an object that is none of its kind. To leave it out would be to say that it is not there.
fn is_unreadable(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::SerdeError(_)))
}

/// What the server answered when it refused to list or to watch.
fn refusal(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => Some(status),
        _ => None,
    }
}

/// The reason of a failure in words.
fn describe(error: &watcher::Error) -> String {
    if is_not_served(error) {
        return "the API server does not serve it: is its CustomResourceDefinition installed?".to_owned();
    }
    match (refusal(error), kube_error(error).and_then(unreachable)) {
        (Some(status), _) => status.message.clone(),
        (None, Some(unreachable)) => unreachable,
        (None, None) => error.to_string(),
    }
}

/// What kube's client failed with.
fn kube_error(error: &watcher::Error) -> Option<&kube::Error> {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => Some(error),
        _ => None,
    }
}

/// Whether the client has ended, as when the process does.
fn is_over(error: &watcher::Error) -> bool {
    matches!(kube_error(error), Some(kube::Error::Service(error)) if error.is::<tower::buffer::error::Closed>())
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
