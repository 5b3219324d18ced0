//! The WhiteList sample operator: one owned, self-healing Deployment for each WhiteList.
//!
//! A WhiteList `x` has the Deployment `x-deployment` with one nginx. Whoever deletes it sees it come back; whoever changes
//! its spec sees the change undone. `spec.paused` lets a human edit; a Deployment of that name that somebody else made is
//! left alone, and the condition `Conflict` says so.
//!
//! [`plan()`] is the whole of the decision, as a pure function; [`controller`] is what a manager runs; [`operator`] is all of it,
//! with what installs it: the CRD and the rights of the operator's service account.

mod desired;
mod diff;
pub mod manifests;
mod plan;
mod reconciler;
mod status;
mod types;

pub use desired::{deployment, deployment_name, own_fields};
use kubewright::command::Operator;
pub use plan::{Plan, Step, plan};
pub use reconciler::{WhiteListReconciler, controller};
pub use types::{Enforce, WhiteList, WhiteListSpec, WhiteListStatus};

/// The operator as a program: its kind and its controller.
#[must_use]
pub fn operator() -> Operator {
    Operator::new("whitelist", env!("CARGO_PKG_VERSION")).definition::<WhiteList>().controller(controller)
}
