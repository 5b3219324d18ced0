//! What goes wrong while an operator is tested.
//!
//! A [`Plan`] is a function of a seed: some [`FaultKind`]s of faults, each with [`Episode`]s in a window of cluster time. Each seed
//! picks other kinds and other strengths, so that some are tried alone and some together; after the window there are none.
//! Nothing of it is chance once the seed is known, and leaving one kind out does not change what the others do.
//!
//! By hand, [`Cluster::inject`](crate::Cluster::inject) injects a [`Fault`] when the test says so.

mod inject;
mod injector;
mod kind;
mod plan;

pub use kind::FaultKind;
pub(crate) use plan::operators;
pub use plan::{Episode, Fault, Plan};

/// What [`FaultKind`] was called.
#[deprecated(since = "0.1.0", note = "is called `FaultKind`")]
pub type Kind = FaultKind;

pub(crate) use injector::FaultInjector;

/// The users whom faults affect, and whom the checks judge: service accounts. The built-in controllers have some too, but
/// no fault is in their way.
pub(crate) const OPERATORS: &str = "system:serviceaccount:*";
