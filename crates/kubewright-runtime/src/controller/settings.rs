//! How a controller works.

use std::time::Duration;

use kube::Client;

use super::Controller;
use crate::{events::EventApi, workqueue::RateLimit};

impl Controller {
    /// Writes, and reads past the cache, by this client instead of the manager's: under an identity of its own. The caches
    /// stay the manager's.
    #[must_use]
    pub fn acting_as(mut self, client: Client) -> Self {
        self.client = Some(client);
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
        if workers == 0 {
            self.mistakes.push("a concurrency of 0 would do nothing".into());
        }
        self.concurrency = workers;
        self
    }

    /// How fast failed keys come back; what is usual unless said otherwise ([`RateLimit`]).
    #[must_use]
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.mistakes.extend(limit.mistake().map(str::to_owned));
        self.rate_limit = limit;
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
        if limit.is_zero() {
            self.mistakes.push("a timeout of 0 lets no reconcile end".into());
        }
        self.timeout = Some(limit);
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
