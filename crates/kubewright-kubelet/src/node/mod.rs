//! The node as an object of the API: what the machine is, and that its kubelet lives.

mod addresses;
mod heartbeat;
mod machine;
mod object;
mod pods;

pub(crate) use self::addresses::Addresses;
pub use self::addresses::NODE_ADDRESS;
pub(crate) use self::heartbeat::Heartbeat;
pub(crate) use self::machine::Machine;
pub(crate) use self::object::{Identity, allocatable};
pub(crate) use self::pods::{PodTable, Pods};
