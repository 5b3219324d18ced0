//! Whether this replica leads, for whoever wants to know.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kube::Client;
use kubewright_world::Clock;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{gate::Gate, overdue::Overdue};

/// A handle on an election: whether this replica leads. Clones share it, and it outlives the
/// [`Manager`](crate::Manager) or [`Elector`](super::Elector) that it was taken from.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The name of the Lease.
    name: String,
    gate: Gate,
    token: Mutex<Option<FencingToken>>,
    /// Since when the lease is lost, if what a leader does goes on since then.
    overdue: Overdue,
    slow_renewals: AtomicU64,
}

/// A number that grows with every term of leadership: the Lease's `leaseTransitions`.
///
/// What the API server stores is fenced by [`Leadership::guard`]. For a system outside (a database, a cloud's API) send the
/// token along, and let that system refuse a token that is less than the greatest that it has seen: this is the only
/// fence that holds against what is already under way when a lease is lost.
///
/// It grows whenever a replica of ours takes over, and as long as the Lease exists also when one of client-go's does. It
/// starts anew when somebody deletes the Lease while no replica is there that has seen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FencingToken(pub u32);

impl Leadership {
    pub(crate) fn new(name: &str, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            name: name.to_owned(),
            gate: Gate::new(clock),
            token: Mutex::default(),
            overdue: Overdue::default(),
            slow_renewals: AtomicU64::new(0),
        }))
    }

    /// The name of the Lease.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether this replica leads: it has the lease, and renewed it within the renew deadline. No other replica is told
    /// the same at the same time.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0.gate.is_open()
    }

    /// Waits until this replica leads.
    pub async fn elected(&self) {
        self.0.gate.opened().await;
    }

    /// The token of the present term; `None` when this replica does not lead.
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        let token = *self.0.token.lock();
        token.filter(|_| self.is_leader())
    }

    /// A client that fences: it refuses writes with [`Fenced`](super::Fenced) while this replica does not lead, and breaks
    /// those off that are under way when the lease is lost. Reads pass always.
    ///
    /// The clients of a manager's leader-only controllers ([`Context::client`](crate::Context::client), and what the
    /// context itself writes) are made by it already. It is for a client that a reconciler keeps of its own.
    ///
    /// The API server may still carry out what it had received, or what a proxy on the way held back: see
    /// [the module](super) for what remains.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn guard(&self, client: &Client) -> Client {
        self.0.gate.guard(client)
    }

    /// Whether this replica does nothing that another one may do now, for a health check: an error when it lost the lease more than
    /// `tolerance` ago and what it did as a leader has not ended, as work that hangs does. Only a restart ends that
    /// (`HealthzAdaptor` of client-go's `leaderelection`). To wait for the lease, for however long, is no error.
    ///
    /// # Errors
    /// How long it goes on already.
    pub fn check(&self, tolerance: Duration) -> Result<(), String> {
        match self.0.overdue.longer_than(tolerance) {
            None => Ok(()),
            Some(overdue) => Err(format!(
                "the lease {} was lost {} s ago, and the work of its leader has not ended",
                self.name(),
                overdue.as_secs()
            )),
        }
    }

    /// How often a renewal had to read the lease anew: the metric `leader_election_slowpath_total` of client-go.
    #[must_use]
    pub fn slow_renewals(&self) -> u64 {
        self.0.slow_renewals.load(Ordering::Relaxed)
    }

    /// A renewal has to read the lease anew.
    pub(crate) fn count_slow_renewal(&self) {
        self.0.slow_renewals.fetch_add(1, Ordering::Relaxed);
    }

    /// The lease is lost while the work of its leader goes on, or that has ended.
    pub(crate) fn set_overdue(&self, is_overdue: bool) {
        self.0.overdue.set(is_overdue);
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.0.gate
    }

    /// This replica leads, or leads on, until an instant. Nobody sees that without the token.
    pub(crate) fn hold(&self, token: FencingToken, until: Instant) {
        *self.0.token.lock() = Some(token);
        self.0.gate.open(until);
    }
}

/// A time during which this replica does what only one may do: a term of leadership, or of being a member of a
/// [ring](crate::shard).
#[derive(Clone, Debug)]
pub struct Term {
    pub(crate) token: FencingToken,
    pub(crate) stop: CancellationToken,
    pub(crate) lost: CancellationToken,
}

impl Term {
    pub(crate) fn new(token: FencingToken) -> Self {
        let stop = CancellationToken::new();
        Self { token, lost: stop.clone(), stop: stop.child_token() }
    }

    /// The number that grows with every term.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// Waits until the work is to end: in good order, because the program stops (the lease is renewed meanwhile), or
    /// because the lease was lost.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Whether the lease is lost.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }

    /// Waits until the lease is lost: the work has to end at once.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Polls `work` until it ends, beside `lost`, which ends with the lease; tells the work what happens. Whether the lease
    /// was kept until the work ended; if not, `lose` is called before the work is told.
    pub(crate) async fn last(
        &self,
        shutdown: &CancellationToken,
        lost: impl Future<Output = ()>,
        lose: impl FnOnce(),
        work: impl Future<Output = ()>,
    ) -> bool {
        let (mut lost, mut work) = (pin!(lost), pin!(work));
        let mut stopping = pin!(async {
            shutdown.cancelled().await;
            self.stop.cancel();
            std::future::pending::<()>().await;
        });
        tokio::select! {
            biased;
            () = &mut lost => {}
            () = &mut work => return true,
            () = &mut stopping => {}
        }
        lose();
        self.lost.cancel();
        work.await;
        false
    }

    /// Works until the term ends, and drops the work then, at the point where it waits.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            output = work => Some(output),
        }
    }
}
