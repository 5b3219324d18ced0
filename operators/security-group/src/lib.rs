//! The SecurityGroup operator: a security group of an OpenStack cloud for each SecurityGroup, with its rules, and with the
//! servers of the selected nodes in it.
//!
//! Decisions are pure functions: [`identity`] says which group of the cloud is meant, [`rule::difference`] what becomes of
//! its rules, [`membership::membership`] which ports go into it and which leave it, [`nodes::select`] which servers are
//! meant. [`cloud`] is the client of OpenStack. [`controller`] is what a manager runs; [`operator`] is all of it, with what
//! installs it.

mod cleanup;
pub mod cloud;
mod clouds;
pub mod identity;
mod interest;
pub mod manifests;
pub mod membership;
pub mod nodes;
mod pass;
mod reconciler;
pub mod rule;
mod schema;
mod status;
mod types;

pub use clouds::{Clouds, SECRET, WHAT_IT_NEEDS, is_configured};

use kubewright::command::Operator;
pub use reconciler::{FINALIZER, controller, controller_in};
pub use types::{
    AttachedPort, CloudRef, DeletionPolicy, Direction, EtherType, NodeProblem, PortFilter, PortNumber,
    RemoteGroupRef, SecurityGroup, SecurityGroupRule, SecurityGroupSpec, SecurityGroupStatus,
};

/// What the operator, its namespace and its Secret are called: as the first generation's.
const NAME: &str = "openstack-sg-controller";

/// The operator as a program: its kind and its controller.
#[must_use]
pub fn operator() -> Operator {
    Operator::new(NAME, env!("CARGO_PKG_VERSION")).definition::<SecurityGroup>().controller(controller)
}

/// The operator with other clouds than those of this machine: for tests.
#[must_use]
pub fn operator_in(clouds: Clouds) -> Operator {
    Operator::new(NAME, env!("CARGO_PKG_VERSION"))
        .definition::<SecurityGroup>()
        .controller(move || controller_in(clouds.clone()))
}
