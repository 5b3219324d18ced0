//! Sharding: replicas share the keys of a manager's controllers, and no key is worked on twice.
//!
//! A manager takes part with [`Manager::share`](crate::Manager::share):
//!
//! ```no_run
//! use kubewright_runtime::{CancellationToken, Error, Manager, Sharding, World};
//!
//! # async fn example(client: kube::Client) -> Result<(), Error> {
//! let mut manager = Manager::new(client, World::real());
//! manager.share(Sharding::ring("operators", "whitelist"));
//! // manager.add(...): a controller works on its share of the keys, unless it is `.on_every_replica()`.
//! manager.run(CancellationToken::new()).await
//! # }
//! ```
//!
//! Every replica watches everything; only the work, and the writes, are shared. All controllers of a manager go by the same
//! division, by namespace and name of a key, so what they do about objects of one name is done by one replica. A key's
//! owner is the member that scores highest for it (rendezvous hashing): when a member comes or goes, only its keys move.
//!
//! # The protocol
//!
//! All state is in Leases of one namespace with the label `kubewright.dev/ring`:
//!
//! - **A Lease for each member**, named `<ring>-<random>`, renewed every retry period (2 s). A name is never used twice: a
//!   member that lost its lease comes back as another.
//! - **The ring's Lease**, named as the ring. Its annotation `kubewright.dev/members` tells the members, its
//!   `leaseTransitions` count their changes. Each such state is an *epoch*. Epochs are in an order, because each is written over
//!   the one before, by compare-and-swap; anybody may write the next.
//!
//! What a member does:
//!
//! 1. **It renews** its own lease. When it could not for the renew deadline (10 s), or when somebody deleted it, its writes
//!    are refused, its work is dropped, and it joins anew under another name.
//! 2. **It removes the silent**: a lease that did not change for its duration (15 s, by the watcher's own monotonic clock), or
//!    that its holder has emptied on leaving, is deleted *as it was seen*: if the member had renewed after all, the deletion
//!    fails; if the deletion is first, the renewal fails. So of a lease that was removed it is certain that its holder has
//!    stopped and cannot come back.
//! 3. **It makes the next epoch** when the members that exist are not those of the ring. A member whose lease is gone
//!    without this replica having removed it stays in the ring for the duration of its lease.
//! 4. **It acknowledges** an epoch: it stops taking keys that the epoch gives to others, waits for the reconciles of these
//!    (those that take longer than 10 s are dropped), and writes the epoch into the annotation `kubewright.dev/epoch` of its
//!    own lease.
//! 5. **It works by** an epoch when one list of all the Leases shows that the ring still has this epoch, that every member of it
//!    has acknowledged it, and that nobody is left outside who acknowledged another. Then, and only then, it takes the keys
//!    that became its own. Keys that stay with a member are worked on all the time.
//!
//! # Why no key is worked on twice
//!
//! Suppose that replica A works on a key by epoch *e* and B by a later epoch *f*. B's list showed no lease that had acknowledged
//! something but *f*. If A's lease was not there, A was removed, and has stopped (2). If it showed *f*, A had let go of
//! the key before (4), and takes none by *e* again: what an earlier epoch gives counts only as far as all that were
//! announced since give it too. If it showed nothing, A acknowledged *e* later, and its own list, later still, showed the
//! ring at *f* or after, so it did not begin to work by *e* (5).
//!
//! # What is guaranteed
//!
//! That holds for replicas under delays, lost answers and pauses, as far as lists are of one moment (those of Kubernetes are)
//! and monotonic clocks do not differ in speed by more than lease duration to renew deadline (1.5). Writes are fenced as
//! they are for a [leader](crate::leader), with the same limits: a paused replica's writes are refused by the clock. Every
//! key has an owner within moments of a change, a lease's duration and a retry period after a member's sudden end.
//!
//! Not guaranteed: that a key is worked on at every moment (while it moves it is not); that shares are of the same size (they
//! are within a few per cent for many keys). One member that renews its lease but is stuck otherwise holds up changes, not
//! work. What comes from a [source](crate::Controller::source) is looked at by the replica that it comes to: keys of others
//! are dropped there. And nothing is promised when Leases of a ring are written by others.

mod keys;
mod member;
mod rendezvous;
#[cfg(test)]
mod tests;
mod view;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use parking_lot::Mutex;

pub(crate) use self::{
    keys::{Keys, Turn},
    member::RingMember,
};
use crate::{
    Key,
    leader::{
        gate::Gate,
        overdue::Overdue,
        settings::{Times, lease_setters},
    },
    rbac::{Rights, Verb},
};

/// The longest name of a ring: it is the value of a label.
const LONGEST_NAME: usize = 63;

/// By which ring the replicas of a manager share its keys.
///
/// The times are those of [`LeaderElection`](crate::LeaderElection), for each member's lease. Mistakes are an error of
/// [`Manager::run`](crate::Manager::run).
#[derive(Clone, Debug)]
pub struct Sharding {
    namespace: String,
    name: String,
    identity: Option<String>,
    times: Times,
}

impl Sharding {
    /// Shares by Leases in `namespace`; `name` is the ring's, the same for all replicas.
    ///
    /// Which rights that takes is told by [`Sharding::rights`].
    pub fn ring(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into(), identity: None, times: Times::default() }
    }

    lease_setters!();

    /// The rights that it takes, in the namespace of the ring. Members are found, and removed, by a label: on any Lease there.
    #[must_use]
    pub fn rights(&self) -> Rights {
        let mut rights = Rights::default();
        let verbs = [Verb::Get, Verb::List, Verb::Watch, Verb::Create, Verb::Update, Verb::Delete];
        rights.add::<Lease>(verbs);
        rights.implied()
    }

    fn mistakes(&self) -> Vec<String> {
        let mut mistakes = self.times.mistakes();
        if self.namespace.is_empty() || self.name.is_empty() {
            mistakes.push("the ring needs a namespace and a name".to_owned());
        }
        if self.name.len() > LONGEST_NAME {
            mistakes.push(format!("the name of the ring has more than {LONGEST_NAME} characters"));
        }
        if self.identity.as_deref() == Some("") {
            mistakes.push("the identity is empty, which is to have left".to_owned());
        }
        mistakes.into_iter().map(|mistake| format!("sharding: {mistake}")).collect()
    }
}

/// A handle on a replica's share of the keys. Clones share it, and it outlives the [`Manager`](crate::Manager) that it was
/// taken from.
#[derive(Clone, Debug)]
pub struct Shard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    gate: Gate,
    keys: Arc<Keys>,
    members: Mutex<Vec<String>>,
    /// Since when the membership is lost, if work on its keys goes on since then.
    overdue: Overdue,
}

impl Shard {
    fn new(gate: Gate, keys: Arc<Keys>) -> Self {
        Self(Arc::new(Inner { gate, keys, members: Mutex::default(), overdue: Overdue::default() }))
    }

    /// Whether a key is this replica's. No other replica is told the same at the same time.
    #[must_use]
    pub fn owns(&self, key: &Key) -> bool {
        self.0.gate.is_open() && self.0.keys.is_mine(key)
    }

    /// The names of the members' Leases, as far as this replica has seen.
    #[must_use]
    pub fn members(&self) -> Vec<String> {
        self.0.members.lock().clone()
    }

    /// A client that fences: its writes pass while this replica is a member of the ring, as with
    /// [`Leadership::guard`](crate::Leadership::guard).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn guard(&self, client: &Client) -> Client {
        self.0.gate.guard(client)
    }

    /// Whether this replica works on no key that another one may have now, for a health check: an error when it lost its membership more than
    /// `tolerance` ago and the work has not ended, as a reconcile that never waits does not. Only a restart ends that. As
    /// [`Leadership::check`](crate::Leadership::check).
    ///
    /// # Errors
    /// How long it goes on already.
    pub fn check(&self, tolerance: Duration) -> Result<(), String> {
        match self.0.overdue.longer_than(tolerance) {
            None => Ok(()),
            Some(overdue) => Err(format!(
                "the membership of the ring was lost {} s ago, and the work on its keys has not ended",
                overdue.as_secs()
            )),
        }
    }

    fn set_overdue(&self, is_overdue: bool) {
        self.0.overdue.set(is_overdue);
    }

    fn set_members(&self, members: &[String]) {
        members.clone_into(&mut self.0.members.lock());
    }
}
