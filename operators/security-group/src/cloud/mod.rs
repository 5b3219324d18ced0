//! A small client of OpenStack: Keystone's tokens, and what an operator needs of Neutron.
//!
//! It is our own because the SDK crates do not fit: `openstack_sdk` brings some 330 crates, aws-lc's C build among them, and
//! untyped answers; `openstack` knows no security groups. What it has to do with time (renewals, back-off, time-outs) is
//! tokio's, and how it reaches the cloud is a [`Network`], so that all of it runs in virtual time against a cloud in the
//! test's own process.

mod access;
mod error;
mod internet;
mod network;
mod neutron;
mod session;

pub use access::{Access, BadAccess, Identity, Scope, Trust};
pub use error::CloudError;
pub use internet::Internet;
pub use network::{Network, Transport, Unreachable};
pub use neutron::{FixedIp, FoundRule, Group, Neutron, Port};
pub use session::Session;
