//! A node whose pods run as processes of this machine.
//!
//! [`container`] runs one container; [`inputs`] says what it is given; the kubelet above it ([`ProcessNode`]) does what
//! Kubernetes' kubelet does for a pod.

pub mod container;
mod events;
pub mod files;
mod images;
pub mod inputs;
mod newer;
mod node;
mod pod;
mod probe;
mod process_node;

pub use self::node::NODE_ADDRESS;
pub use self::process_node::{MAX_PODS, ProcessNode, Refusal, Settings, Target};
