//! Leader election by Lease, with a fence: of many replicas one works, and none whose lease is lost.
//!
//! A manager takes part with [`Manager::elect`](crate::Manager::elect); [`Elector`] is for programs without one.
//!
//! ```no_run
//! use kubewright_runtime::{CancellationToken, Error, LeaderElection, Manager, World};
//!
//! # async fn example(client: kube::Client) -> Result<(), Error> {
//! let mut manager = Manager::new(client, World::real());
//! manager.elect(LeaderElection::lease("operators", "whitelist"));
//! let leadership = manager.leadership();
//! // manager.add(...): a controller works on the leader alone, unless it is `.on_every_replica()`.
//! manager.run(CancellationToken::new()).await
//! # }
//! ```
//!
//! # The protocol
//!
//! It is that of client-go (`k8s.io/client-go/tools/leaderelection`), by the same fields of a Lease: replicas in Go and in Rust
//! can compete for one. The holder renews every retry period (2 s). Who has seen the record unchanged for the lease's
//! duration (15 s), by its own monotonic clock, takes over, by a write that the API server accepts only if nobody wrote
//! in between. A holder that could not renew for the renew deadline (10 s) gives up. What differs:
//!
//! - **A lost lease does not end the process.** The work of the leader is dropped where it waits, and waited for; then this
//!   replica stands by again, with its caches warm.
//! - **The lease is released on stop** (client-go: only if asked to), after the work has ended.
//! - **Writes are fenced**, see below. The renew deadline counts from when the last successful renewal was sent (client-go:
//!   from the first renewal that failed, up to a retry period later).
//! - [Two processes of one identity](LeaderElection::identity), and a Lease that somebody deletes, do not make two leaders
//!   of two replicas that were there before.
//!
//! # What is guaranteed
//!
//! Among replicas of this crate, under delays, lost answers, pauses and clocks that are set to anything, no two are
//! [leader](Leadership::is_leader) at the same time, as long as their monotonic clocks do not differ in speed by more than
//! lease duration to renew deadline (1.5). And no write leaves a guarded client once its replica does not lead: it fails
//! with [`Fenced`]. That is decided by the clock, at the moment of sending, so it holds for a process that was paused and
//! knows of nothing yet. Reconciles are asked the same before each step: none goes on after a pause. (A machine that slept is told by the wall clock; if that is set back meanwhile too, only by the
//! next renewal.)
//!
//! # What is not
//!
//! - **A write under way.** When the lease is lost, requests are [broken off](Fenced::BrokenOff), but what the kernel, a proxy
//!   or the API server had received may still be carried out. They have the time between renew deadline and lease duration
//!   (5 s) to arrive before anybody else leads. Kubernetes has no fencing in the server: writes that must never be
//!   carried out late should carry a `resourceVersion` ([`Context::ensure`](crate::Context::ensure) sends one).
//! - **Systems outside.** Send them the [`FencingToken`].
//! - **A Lease that others write to against the rules**: that somebody took it by force is noticed with the next renewal. The
//!   same goes for a deleted Lease that a replica takes which was not there before, or one of client-go's.
//! - **Work that does not wait, or that nobody waits for.** A reconcile is dropped at the next `await`; a loop without one
//!   goes on, and so does a task that a reconcile has spawned. Their writes fail.

mod decision;
#[cfg(test)]
mod decision_tests;
mod elector;
pub(crate) mod gate;
mod leadership;
pub(crate) mod lock;
pub(crate) mod overdue;
pub(crate) mod record;
pub(crate) mod settings;

pub use self::{
    elector::Elector,
    gate::Fenced,
    leadership::{FencingToken, Leadership, Term},
    settings::LeaderElection,
};
