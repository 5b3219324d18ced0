//! How a controller works.

use std::time::Duration;

use kube::Client;

use super::Controller;
use crate::{ClientLayer, ErrorPolicy, events::EventApi, workqueue::RateLimit};

impl Controller {
    /// Writes, and reads past the cache, by this client instead of the manager's: under an identity of its own. The caches
    /// stay the manager's.
    #[must_use]
    pub fn acting_as(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Sends its requests, those of its [client](crate::Context::client) too, through this layer; through the one that is added last first. What
    /// fills the caches is the manager's client, without it.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{ClientLayer, Context, Controller, Error, Key, Outcome, Reconciler};
    /// # struct Shops;
    /// # impl Reconciler for Shops {
    /// #     async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> { Ok(Outcome::Done) }
    /// # }
    /// let controller = Controller::new("shops", Shops)
    ///     .for_kind::<ConfigMap>()
    ///     .client_layer(ClientLayer::one_namespace("shop"));
    /// ```
    #[must_use]
    pub fn client_layer(mut self, layer: ClientLayer) -> Self {
        self.client_layers.push(layer);
        self
    }

    /// Makes each of its writes a dry run: the API server validates them, and nothing comes of it; Events are not there either. What its
    /// reconciler does to other services is its own affair ([`Context::is_dry_run`](crate::Context::is_dry_run)).
    #[must_use]
    pub fn dry_run(self) -> Self {
        self.client_layer(ClientLayer::dry_run())
    }

    /// Takes over what these field managers own of the objects that it [applies](crate::Context::apply): for an operator that took the place of
    /// another, or that updated its objects before it applied them. `manager` is what client-go's clients of an operator are called unless they say
    /// otherwise, by the name of its program.
    ///
    /// Who writes an object by updates owns its fields, and goes on to own them when another applies the same: a field that the
    /// controller leaves out later would stay. Once for each object, before the first apply, its managed fields are read and written, with
    /// the fields of these managers as the controller's own (`csaupgrade` of client-go). It is known for kinds that the controller looks at.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler};
    /// # struct Shops;
    /// # impl Reconciler for Shops {
    /// #     async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> { Ok(Outcome::Done) }
    /// # }
    /// let controller = Controller::new("shops", Shops)
    ///     .for_kind::<ConfigMap>()
    ///     .applies::<Secret>()
    ///     .takes_over_from(["manager"]);
    /// ```
    #[must_use]
    pub fn takes_over_from(mut self, managers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.predecessors.extend(managers.into_iter().map(Into::into));
        self
    }

    /// Records its events in the older form: of the core API instead of `events.k8s.io`, counted, combined and limited as
    /// client-go's `tools/record` does it. kubectl shows both.
    #[must_use]
    pub fn core_events(mut self) -> Self {
        self.events = EventApi::Core;
        self
    }

    /// Under which name its events are recorded; by default the controller's own.
    #[must_use]
    pub fn event_source(mut self, name: impl Into<String>) -> Self {
        self.event_source = Some(name.into());
        self
    }

    /// As [`Controller::own_events`], for all of its kinds, those that are [watched](crate::Context::watch) at run time too.
    #[must_use]
    pub fn all_own_events(mut self) -> Self {
        self.own_events = true;
        self
    }

    /// Reconciles everything once more each time this long has passed, give or take a tenth, as if the objects of all its
    /// kinds had just been found: with low priority. Controllers that look at nothing but Kubernetes do not need it; it is
    /// for those whose other half nobody watches. (controller-runtime's `SyncPeriod`, 10 hours there, never here.)
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        if period.is_zero() {
            self.mistakes
                .push("a resync period of 0 never rests: give it some minutes, or leave it out".into());
        }
        self.resync = Some(period);
        self
    }

    /// How many keys are worked on at the same time; 1 unless said otherwise. Never two workers on one key.
    #[must_use]
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.mistakes.extend(concurrency_mistake(workers));
        self.concurrency = Some(workers);
        self
    }

    /// Ends the manager with [`Error::CacheSync`](crate::Error::CacheSync) when the caches of its kinds are not filled after this time, with
    /// the kinds and the reasons (controller-runtime's `CacheSyncTimeout`, 2 minutes there). Unless said otherwise there is no limit: a
    /// kind that comes later is waited for, `/readyz` fails meanwhile, and the log says why. [`optional`](Controller::optional)
    /// kinds that are not served are not waited for.
    #[must_use]
    pub fn cache_sync_timeout(mut self, limit: Duration) -> Self {
        self.mistakes.extend(sync_mistake(limit));
        self.cache_sync_timeout = Some(limit);
        self
    }

    /// How fast failed keys come back; what is usual unless said otherwise ([`RateLimit`]).
    #[must_use]
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.mistakes.extend(limit.mistake().map(str::to_owned));
        self.rate_limit = Some(limit);
        self
    }

    /// Which annotation pauses an object of the own kind, instead of [`PAUSED`](crate::PAUSED). While its value is `"true"` no event leads
    /// to a reconcile of the object, its deletion neither: finalizers hold it. As soon as it is taken away the object is
    /// reconciled, whatever the predicates say. A reconcile that goes on is not broken off.
    #[must_use]
    pub fn paused_by(mut self, annotation: impl Into<String>) -> Self {
        let annotation: String = annotation.into();
        if annotation.is_empty() {
            self.mistakes.push("an empty annotation pauses nothing: use never_paused()".into());
        }
        self.pause_annotation = Some(annotation.into());
        self
    }

    /// Reconciles objects of the own kind whatever their annotations are.
    #[must_use]
    pub fn never_paused(mut self) -> Self {
        self.pause_annotation = None;
        self
    }

    /// Drops a reconcile where it waits when it takes longer than this; it counts as failed and is tried again with the
    /// key's back-off. Unless said otherwise there is no limit.
    ///
    /// To be dropped means: the reconcile ends at the `.await` where it is, its locks and guards are released, and nothing
    /// behind that point happens. A request that was on its way may have been carried out or not; the cache learns of it by
    /// its watch. The next try looks at what is there, as after a crash, so a reconcile must be fit to begin anew at any
    /// `.await`. One that computes without waiting, or blocks the thread, cannot be dropped: keep both out of it.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.mistakes.extend(timeout_mistake(limit));
        self.timeout = Some(limit);
        self
    }

    /// Shows the errors of its reconciles on the objects of its own kind: as a condition, and as a Warning Event. Which, when and as
    /// what is the [policy](ErrorPolicy)'s; [`ErrorPolicy::default`] is one.
    ///
    /// Nothing is shown unless this says so, as it takes the right to patch the status of the own kind (which is
    /// among the [rights](Controller::rights) then) and a kind that has `status.conditions`, where the condition stands beside those that
    /// the reconciler writes. Of a kind that is somebody else's, [`ErrorPolicy::events_only`] is what is meant.
    ///
    /// What is guaranteed:
    /// - A failure is logged, counted and tried again as ever, also when it cannot be shown.
    /// - What was shown with [`ErrorPolicy::sets_true`] is taken back after the next success, also by another process; if that cannot be
    ///   written the reconcile is tried again.
    /// - Nothing is written when the condition says the same already, and what is written does not wake the key.
    #[must_use]
    pub fn on_error(mut self, policy: ErrorPolicy) -> Self {
        self.error_policy = Some(policy);
        self
    }

    /// Works on every replica, and on every key, in a manager that [elects](crate::Manager::elect) a leader or
    /// [shares](crate::Manager::share) its keys; without, it works where it is its turn, and its writes are fenced.
    #[must_use]
    pub fn on_every_replica(mut self) -> Self {
        self.on_every_replica = true;
        self
    }
}

pub(super) fn concurrency_mistake(workers: usize) -> Option<String> {
    (workers == 0).then(|| "a concurrency of 0 would do nothing".to_owned())
}

pub(super) fn timeout_mistake(limit: Duration) -> Option<String> {
    limit.is_zero().then(|| "a timeout of 0 lets no reconcile end".to_owned())
}

pub(super) fn sync_mistake(limit: Duration) -> Option<String> {
    limit.is_zero().then(|| {
        "a cache-sync timeout of 0 lets no cache be filled: leave it out to wait without end".to_owned()
    })
}
