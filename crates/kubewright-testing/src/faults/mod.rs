//! What goes wrong while an operator is tested.
//!
//! A [`Plan`] is a function of a seed: some [`Kind`]s of faults, each with [`Episode`]s in a window of cluster time. Each seed
//! picks other kinds and other strengths, so that some are tried alone and some together; after the window it is calm.
//! Nothing of it is chance once the seed is known, and leaving one kind out does not change what the others do.
//!
//! By hand, a [`Mishap`] befalls a cluster when the test says so ([`Cluster::befall`](crate::Cluster::befall)).

mod befall;
mod kind;
mod plan;
mod weather;

pub use kind::Kind;
pub(crate) use plan::operators;
pub use plan::{Episode, Mishap, Plan};
pub(crate) use weather::Weather;

/// The users that faults befall, and whom the checks judge: service accounts. The built-in controllers have some too, but
/// no fault is in their way.
pub(crate) const OPERATORS: &str = "system:serviceaccount:*";
