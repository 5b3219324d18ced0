//! The Container Image Police: workloads may only use the images that a list of their namespace names.
//!
//! A [`WhiteList`] names images. What uses another one is deleted, scaled to zero, refused or reported, as the list says;
//! a namespace without a list is left alone. [`plan()`] is the whole of the decision, as a pure function of a namespace;
//! [`controller`] is what a manager runs; [`operator`] is all of it, with what installs it.

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
use kubewright::{command::Operator, webhook::Webhooks};
pub use plan::{Observed, Plan, Police, plan};
pub use reconciler::{ImagePolice, controller};
pub use scope::{Scope, Wide};
pub use types::{
    AllowedImage, ClusterWhiteList, ClusterWhiteListSpec, ClusterWhiteListStatus, DenyBy, Enforcement,
    Exempt, Exemptions, Existing, LastAction, Matching, Violation, WhiteList, WhiteListSpec, WhiteListStatus,
};

/// What the controller and the webhook of one police share: what it counts, and the cache that lists are read from. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    counts: Counts,
    view: webhook::View,
}

impl Shared {
    /// What it counts.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

/// The operator as a program: its kinds, its controller and its webhook.
#[must_use]
pub fn operator() -> Operator {
    operator_with(&Shared::default())
}

/// The same, with what others look into.
#[must_use]
pub fn operator_with(shared: &Shared) -> Operator {
    let operator = Operator::new("image-police", env!("CARGO_PKG_VERSION"));
    let police = Police::here(&operator);
    let deny = webhook::webhook(shared.view.clone(), police.clone());
    let (counts, seen) = (shared.counts.clone(), shared.clone());
    operator
        .definition::<WhiteList>()
        .definition::<ClusterWhiteList>()
        .webhooks(Webhooks::new("image-police").add(deny))
        .controller(move || controller(&police, &counts))
        .setup(move |manager| {
            seen.view.open(manager);
            seen.counts.register(manager.metrics().registry())
        })
}
