//! The At operator: each At runs one command at one time, once.
//!
//! An At `x` waits (`PENDING`) until its schedule, then gets the pod `x-pod` that runs its command (`RUNNING`), and says what
//! became of it (`DONE`). Two groups serve the kind; one reconciler works for both.
//!
//! [`plan()`] is the whole of the decision, as a pure function; [`controller`] and [`book_controller`] are what a manager runs;
//! [`operator`] is all of it, with what installs it.
//!
//! **Once** rests on three facts. The pod's name is the At's, so of two attempts one is refused. The pod has a finalizer,
//! so it cannot go before the status says what became of it, and a pod that is not there was never made. And before the pod
//! is made the At is read from the API server, not from a cache.

mod due;
mod ending;
mod groups;
pub mod manifests;
mod plan;
mod pod;
mod policy;
mod reconciler;
mod status;
mod types;
mod words;

pub use due::{NoTime, due};
pub use groups::{At, AtKind, BookAt, BookAtSpec, StudyAtSpec};
use kubewright::command::Operator;
pub use plan::{Found, Plan, Step, plan};
pub use pod::{Senseless, pod_key};
pub use reconciler::{AtReconciler, book_controller, controller};
pub use types::{AtSpec, AtStatus, IfLost, IfPast, Phase};
pub use words::words;

/// The operator as a program: its kinds, its controllers, and the policy that refuses what their schema cannot.
#[must_use]
pub fn operator() -> Operator {
    let operator = Operator::new("at", env!("CARGO_PKG_VERSION"))
        .definition::<At>()
        .definition::<BookAt>()
        .controller(controller)
        .controller(book_controller);
    policy::objects().iter().fold(operator, Operator::install)
}
