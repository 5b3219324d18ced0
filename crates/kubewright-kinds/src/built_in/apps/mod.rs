//! The group `apps`.

pub mod controller_revision;
pub mod daemon_set;
pub mod deployment;
pub mod replica_set;
pub mod stateful_set;

use super::BuiltIn;

/// Its kinds, in the order of discovery.
pub static KINDS: &[&BuiltIn] = &[
    &controller_revision::CONTROLLER_REVISION,
    &daemon_set::DAEMON_SET,
    &deployment::DEPLOYMENT,
    &replica_set::REPLICA_SET,
    &stateful_set::STATEFUL_SET,
];
