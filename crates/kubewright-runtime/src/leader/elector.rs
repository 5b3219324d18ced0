//! Takes part in an election.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Client, api::ObjectMeta};
use kubewright_world::World;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    decision::{Candidate, LeaseAction, Term as Held},
    gate::Gate,
    leadership::{Leadership, Term},
    lock::{LeaseError, Leases},
    record::Record,
    settings::{JITTER_FACTOR, LeaderElection, identity},
};
use crate::{
    Error, EventType, NewEvent,
    events::{EventApi, EventWriter, Happened},
};

/// The reason of the events.
const REASON: &str = "LeaderElection";
/// How long the last event may hold up the end.
const FAREWELL: Duration = Duration::from_secs(1);

/// Takes part in an election without a [`Manager`](crate::Manager), which has one of its own
/// ([`Manager::elect`](crate::Manager::elect)).
///
/// ```no_run
/// use kubewright_runtime::{CancellationToken, Error, LeaderElection, World, leader::Elector};
///
/// # async fn work() {}
/// # async fn example(client: kube::Client) -> Result<(), Error> {
/// let elector = Elector::new(client.clone(), World::real(), LeaderElection::lease("default", "nightly"));
/// let leadership = elector.leadership();
/// let fenced = leadership.guard(&client); // writes by this client pass only while this replica leads
/// let shutdown = CancellationToken::new();
/// elector.run(shutdown, |term| async move { term.run(work()).await; }).await
/// # }
/// ```
pub struct Elector {
    settings: LeaderElection,
    world: World,
    leases: Leases,
    events: EventWriter,
    candidate: Candidate,
    leadership: Leadership,
    /// The lease as it was last read or written.
    lease: Option<Lease>,
    /// The event that is on its way.
    recording: Option<AbortOnDropHandle<()>>,
    /// Whether the last try failed, so that a series of failures is told once.
    failing: bool,
}

impl Elector {
    /// A candidate that does nothing before [`Elector::run`].
    #[must_use]
    pub fn new(client: Client, world: World, settings: LeaderElection) -> Self {
        let identity = settings.identity.clone().unwrap_or_else(|| identity(&world));
        let times = settings.times;
        Self {
            leases: Leases::new(client.clone(), &settings.namespace, times.request_timeout()),
            events: EventWriter::new(EventApi::Core, client, world.clone(), &identity),
            candidate: Candidate::new(identity, times.lease_duration, times.renew_deadline),
            leadership: Leadership::new(&settings.name, world.clock),
            lease: None,
            recording: None,
            failing: false,
            settings,
            world,
        }
    }

    /// Whether this replica leads.
    #[must_use]
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Under which name this replica competes.
    #[must_use]
    pub fn identity(&self) -> &str {
        self.candidate.identity()
    }

    pub(crate) fn gate(&self) -> &Gate {
        self.leadership.gate()
    }

    pub(crate) fn mistakes(&self) -> Vec<String> {
        self.settings.mistakes()
    }

    /// Competes until `shutdown`. Whenever this replica leads, `lead` is called, and what it returns is polled beside the
    /// renewals until it ends:
    ///
    /// - When `shutdown` comes, [`Term::stopped`] says so; the lease is renewed until the work has ended, then released.
    /// - When the lease is lost, [`Term::lost`] says so, and no write passes the fence any more. When the work has ended,
    ///   this replica stands by again. Work that does not listen goes on beside another leader's: [`Term::run`] listens.
    /// - Work that ends by itself ends the election: the lease is released.
    ///
    /// A drop of the future leaves the lease to expire.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] before anything is requested. What the API server refuses is logged and tried again.
    pub async fn run<F, W>(mut self, shutdown: CancellationToken, mut lead: F) -> Result<(), Error>
    where
        F: FnMut(Term) -> W,
        W: Future<Output = ()>,
    {
        let mistakes = self.mistakes();
        if !mistakes.is_empty() {
            return Err(Error::Misconfigured(mistakes.join("; ")));
        }
        let _close_on_drop = CloseOnDrop(self.leadership.clone());
        loop {
            let won = tokio::select! {
                biased;
                () = shutdown.cancelled() => None,
                held = self.acquire() => Some(held),
            };
            let Some(held) = won else { break };
            let term = Term::new(held.token());
            self.record_event("became leader");
            let is_over = self.lead(&term, &shutdown, lead(term.clone())).await;
            self.record_event("stopped leading");
            if is_over {
                break;
            }
        }
        if let Some(recording) = self.recording.take() {
            let _ = tokio::time::timeout(FAREWELL, recording).await;
        }
        Ok(())
    }

    /// Leads until the work has ended; whether there is nothing more to lead.
    async fn lead(
        &mut self,
        term: &Term,
        shutdown: &CancellationToken,
        work: impl Future<Output = ()>,
    ) -> bool {
        let leadership = self.leadership.clone();
        let lose = || {
            leadership.gate().close();
            leadership.set_overdue(true);
            tracing::warn!(lease = leadership.name(), "lost the lease; stopping what only a leader may do");
        };
        if term.last(shutdown, self.keep(), lose, work).await {
            self.leadership.gate().close();
            self.release().await;
            return true;
        }
        self.leadership.set_overdue(false);
        self.candidate.resign(self.world.clock.now());
        shutdown.is_cancelled()
    }

    /// Stands by until the lease is won.
    async fn acquire(&mut self) -> Held {
        tracing::info!(
            lease = self.leadership.name(),
            identity = self.identity(),
            "standing by for the lease"
        );
        loop {
            match self.read_and_write().await {
                Ok(Some(held)) => return held,
                Ok(None) => self.succeeded(),
                Err(failure) => self.failed(&failure),
            }
            let jitter = 1.0 + self.world.dice.fraction() * JITTER_FACTOR;
            tokio::time::sleep(self.settings.times.retry_period.mul_f64(jitter)).await;
        }
    }

    /// Renews; ends when the lease is lost.
    async fn keep(&mut self) {
        while let Some(held) = self.candidate.term() {
            let next = (Instant::now() + self.settings.times.retry_period).min(held.valid_until);
            tokio::time::sleep_until(next).await;
            match tokio::time::timeout_at(held.valid_until, self.renew()).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return,
                Ok(Err(failure)) => self.failed(&failure),
                Err(_) => {
                    tracing::warn!(lease = self.leadership.name(), "could not renew the lease in time");
                    return;
                }
            }
        }
    }

    /// Renews once; false when the lease is not ours any more.
    async fn renew(&mut self) -> Result<bool, LeaseError> {
        let Some(record) = self.candidate.renew(self.world.clock.now()) else { return Ok(false) };
        match self.write(record).await {
            Ok(_) => Ok(true),
            // Somebody wrote to it or deleted it; perhaps only a label.
            Err(LeaseError::Outdated(_)) => {
                self.leadership.count_slow_renewal();
                self.read_and_write().await.map(|held| held.is_some())
            }
            Err(failure) => Err(failure),
        }
    }

    /// Looks at the lease and takes or renews it, if that is due.
    async fn read_and_write(&mut self) -> Result<Option<Held>, LeaseError> {
        self.lease = self.leases.get(&self.settings.name).await?;
        let found = self.lease.as_ref().map(|lease| Record::of(lease.spec.as_ref()));
        match self.candidate.read(found, Instant::now(), self.world.clock.now()) {
            LeaseAction::Wait | LeaseAction::Lost => Ok(None),
            LeaseAction::Write(record) => self.write(record).await.map(Some),
        }
    }

    /// Writes what makes us lead, or lead on, over the lease as it was last seen.
    async fn write(&mut self, record: Record) -> Result<Held, LeaseError> {
        let sent = Instant::now();
        let lease = self.saying(&record);
        let is_new = self.lease.is_none();
        let written =
            if is_new { self.leases.create(&lease).await } else { self.leases.replace(&lease).await }?;
        self.lease = Some(written);
        let held = self.candidate.accepted(record, sent);
        self.leadership.hold(held.token(), held.valid_until);
        self.succeeded();
        Ok(held)
    }

    /// The lease as it was last seen, with a record and our labels.
    fn saying(&self, record: &Record) -> Lease {
        let mut lease = self.lease.clone().unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                namespace: Some(self.settings.namespace.clone()),
                name: Some(self.settings.name.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        if !self.settings.labels.is_empty() {
            lease.metadata.labels.get_or_insert_default().extend(self.settings.labels.clone());
        }
        record.write(lease.spec.get_or_insert_default());
        lease
    }

    /// Gives the lease up, so that nobody has to wait for it to expire.
    async fn release(&mut self) {
        let Some(record) = self.candidate.resign(self.world.clock.now()) else { return };
        if !self.settings.release {
            return;
        }
        for _ in 0..2 {
            let Some(lease) = &self.lease else { return };
            if !self.candidate.is_ours(&Record::of(lease.spec.as_ref())) {
                return;
            }
            match self.leases.replace(&self.saying(&record)).await {
                Ok(_) => return tracing::info!(lease = self.leadership.name(), "released the lease"),
                Err(LeaseError::Outdated(_)) => match self.leases.get(&self.settings.name).await {
                    Ok(lease) => self.lease = lease,
                    Err(failure) => return self.failed(&failure),
                },
                Err(failure) => return self.failed(&failure),
            }
        }
    }

    /// Records an event on the Lease, beside what goes on.
    fn record_event(&mut self, what: &str) {
        tracing::info!(lease = self.leadership.name(), identity = self.identity(), "{what}");
        let Some(lease) = self.lease.clone() else { return };
        let (events, note) = (self.events.clone(), format!("{} {what}", self.identity()));
        let event = NewEvent::new(EventType::Normal, REASON, note);
        let happened = Happened::to(&lease, event, self.world.clock.now());
        self.recording = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            if let Err(error) = events.write(happened).await {
                tracing::debug!(%error, "cannot record an event about the lease");
            }
        })));
    }

    fn succeeded(&mut self) {
        if std::mem::take(&mut self.failing) {
            tracing::info!(lease = self.leadership.name(), "the lease can be read and written again");
        }
    }

    fn failed(&mut self, failure: &LeaseError) {
        if std::mem::replace(&mut self.failing, true) || matches!(failure, LeaseError::Outdated(_)) {
            tracing::debug!(lease = self.leadership.name(), %failure, "cannot read or write the lease");
        } else {
            tracing::warn!(lease = self.leadership.name(), %failure, "cannot read or write the lease; trying again");
        }
    }
}

impl std::fmt::Debug for Elector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elector").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Nobody leads whose election is not run.
struct CloseOnDrop(Leadership);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.gate().close();
    }
}
