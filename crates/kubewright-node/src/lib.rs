//! The scheduler and the simulated nodes of the embedded control plane.
//!
//! [`scheduler`] gives pods a node; [`simulated_nodes`] are nodes that report pods as running without running them, as
//! kwok's do. Both are controllers written with the SDK and work against any API server.

mod addresses;
pub mod facts;
mod managed;
mod nodes;
mod pods;
mod program;
mod scheduler;
pub mod selection;
mod stages;
pub mod storage;

use k8s_openapi::api::core::v1::Node;
use kubewright_runtime::Controller;
use serde_json::Value;
use tokio::sync::watch;

pub use self::pods::{Log, NoLog, command_output, container_log};
pub use self::scheduler::scheduler;

/// Whether a node is simulated where [`simulated_nodes`] of `count` run, so that nothing runs the pods on it. One whose
/// kubelet was stopped by an annotation is not reached, as any other node that is down.
#[must_use]
pub fn is_simulated(count: usize, node: &Value) -> bool {
    let is_it = |node: &Node| managed::Managed::of(count).includes(node) && !nodes::is_stopped(node);
    kubewright_objects::from_value::<Node>(node).is_ok_and(|node| is_it(&node))
}

/// The controllers of simulated nodes: `count` nodes that are there from the start; and the pods on them.
///
/// Nodes that somebody creates are simulated too: all of them, but for those whose annotation `kwok.x-k8s.io/node` says
/// something other than `fake`; with a `count` of 0 only those that say `fake`. No kubelet may be responsible for them.
/// kwok's `Stage` objects, where there are any, say what happens to them. `resets` tells that the cluster was made as it was at its start, and
/// up to which revision nodes are of before: those of the start are made again then.
#[must_use]
pub fn simulated_nodes(count: usize, resets: Option<watch::Receiver<u64>>) -> Vec<Controller> {
    controllers(count, managed::Managed::of(count), resets)
}

/// As [`simulated_nodes`] beside nodes that are none: those that are there from the start say that they are fake, and of those that
/// come later only the ones that say so are simulated.
#[must_use]
pub fn fake_nodes(count: usize, resets: Option<watch::Receiver<u64>>) -> Vec<Controller> {
    controllers(count, managed::Managed::Fake, resets)
}

fn controllers(
    count: usize,
    managed: managed::Managed,
    resets: Option<watch::Receiver<u64>>,
) -> Vec<Controller> {
    let stages = stages::Stages::default();
    let (reader, woken) = stages::controller(stages.clone());
    vec![
        reader,
        nodes::controller(count, managed, stages.clone(), woken.nodes, resets),
        pods::controller(managed, stages, woken.pods),
    ]
}
