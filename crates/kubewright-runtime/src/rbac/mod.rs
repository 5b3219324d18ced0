//! The rights that an operator needs, from its code: what its controllers watch is known, what they write is
//! [declared](crate::Controller::writes) by type.
//!
//! [`Rights`] is what code declares, and what the `manifests` of an operator grant. [`Observed`] is what a client really
//! asked for. Between the two there are three questions, and [`Observed::report`] answers them after a test:
//!
//! - Which right was missing? Each refusal reads as what to add: `add: apps/deployments patch`.
//! - Which declared rule was never used?
//! - Which [roles](Observed::roles) would have been enough?
//!
//! ```
//! use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
//! use kubewright_runtime::rbac::{Observed, Rights, Verb};
//!
//! # async fn example(client: kube::Client) {
//! let mut declared = Rights::default();
//! declared.add::<Deployment>([Verb::Create]).add::<Secret>([Verb::Delete]);
//! let observed = Observed::new();
//! let client = observed.client(&client);
//! // ... a manager runs on this client ...
//! let report = observed.report(&declared);
//! assert!(report.missing.is_empty(), "{report}");
//! # }
//! ```

mod observed;
mod refusal;
mod report;
mod right;
mod rights;
mod roles;
mod verb;

#[cfg(feature = "command")]
pub(crate) use self::roles::yaml;
pub use self::{
    observed::Observed, refusal::Missing, report::Report, right::Right, rights::Rights, verb::Verb,
};
pub(crate) use self::{refusal::missing_in, rights::ResourceAttributes};
