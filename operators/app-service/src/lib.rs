//! The AppService operator: an AppService is a number of busybox pods, made without a Deployment.
//!
//! [`plan()`] is the whole of the decision, as a pure function; [`controller`] is what a manager runs; [`operator`] is all of it, with
//! what installs it. With `spec.check` the pods are asked how they are, by a command in them or by HTTP: what they say is
//! an event like any other, and a condition.

pub mod check;
mod desired;
pub mod manifests;
mod plan;
mod reconciler;
mod types;

pub use check::{Checks, Question};
use kubewright::{Manager, command::Operator};
pub use plan::{Observed, Plan, Step, plan};
pub use reconciler::{AppServiceReconciler, controller};
pub use types::{AppService, AppServiceSpec, AppServiceStatus, Check, HttpCheck, RestartPolicy};

/// The operator as a program: its kind and its controller, which asks pods by command or HTTP.
#[must_use]
pub fn operator() -> Operator {
    operator_with(|manager| check::real(manager.world(), manager.client()))
}

/// The same, asking pods as what `checks` makes for a manager.
#[must_use]
pub fn operator_with(checks: impl Fn(&Manager) -> Checks + Send + Sync + 'static) -> Operator {
    Operator::new("app-service", env!("CARGO_PKG_VERSION"))
        .definition::<AppService>()
        .controller_in(move |manager| controller(checks(manager)))
}
