//! The Container Image Police: workloads may only use the images that a list of their namespace names.
//!
//! A [`WhiteList`] names images. What uses another one is deleted, scaled to zero, refused or reported, as the list says;
//! a namespace without a list is left alone. [`plan`] is the whole of the decision, as a pure function of a namespace;
//! [`controller`] is what a manager runs; [`manifests`] is what a cluster needs before it.

mod act;
mod board;
mod counts;
mod glob;
pub mod image;
pub mod judge;
pub mod manifests;
pub mod plan;
pub mod policy;
mod reconciler;
mod regime;
pub mod rules;
mod scope;
mod status;
mod types;
pub mod webhook;
pub mod workload;

pub use counts::Counts;
use kubewright::command::Operator;
pub use plan::{Observed, Plan, Police, plan};
pub use reconciler::{ImagePolice, controller};
pub use scope::{Scope, Wide};
pub use types::{
    AllowedImage, ClusterWhiteList, ClusterWhiteListSpec, ClusterWhiteListStatus, DenyBy, Enforcement,
    Exempt, Exemptions, Existing, LastAction, Matching, Violation, WhiteList, WhiteListSpec, WhiteListStatus,
};

/// The operator as a program: its kinds and its controller.
#[must_use]
pub fn operator() -> Operator {
    let police = Police::here();
    let operator = Operator::new("image-police", env!("CARGO_PKG_VERSION"))
        .definition::<WhiteList>()
        .definition::<ClusterWhiteList>();
    let counts = Counts::default();
    let counted = counts.clone();
    operator
        .controller(move || controller(&police, &counts))
        .setup(move |manager| counted.register(manager.metrics().registry()))
}
