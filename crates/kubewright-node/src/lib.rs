//! The scheduler and the simulated nodes of the embedded control plane.
//!
//! [`scheduler`] gives pods a node; [`simulated_nodes`] are nodes that report pods as running without running them, as
//! kwok's do. Both are controllers written with the SDK and work against any API server.

mod addresses;
mod facts;
mod nodes;
mod pods;
pub mod quantity;
mod scheduler;

use kubewright_runtime::Controller;

pub use self::scheduler::scheduler;

/// The controllers of simulated nodes: `count` nodes that are there from the start, and all that somebody creates; and
/// the pods on them. No kubelet may be responsible for any of the cluster's nodes.
#[must_use]
pub fn simulated_nodes(count: usize) -> Vec<Controller> {
    vec![nodes::controller(count), pods::controller()]
}
