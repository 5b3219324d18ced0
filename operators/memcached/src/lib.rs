//! The Memcached operator: a Memcached is a Deployment of memcached behind a Service, of as many pods as it says.
//!
//! [`plan()`] is the whole of the decision, as a pure function; [`controller`] is what a manager runs; [`operator`] is all of it, with
//! what installs it. With `spec.checkStats` each pod is asked for its `stats`, and what they say is a condition.

mod desired;
pub mod manifests;
mod plan;
mod reconciler;
pub mod stats;
mod types;

use kubewright::{Manager, command::Operator};
pub use plan::{Observed, Plan, Wanted, plan};
pub use reconciler::{MemcachedReconciler, Stats, controller};
pub use types::{Memcached, MemcachedSpec, MemcachedStatus};

/// The operator as a program: its kind and its controller, which asks pods over TCP.
#[must_use]
pub fn operator() -> Operator {
    operator_with(|manager| stats::over_tcp(manager.world()))
}

/// The same, asking pods as what `stats` makes for a manager.
#[must_use]
pub fn operator_with(stats: impl Fn(&Manager) -> Stats + Send + Sync + 'static) -> Operator {
    Operator::new("memcached", env!("CARGO_PKG_VERSION"))
        .definition::<Memcached>()
        .controller_in(move |manager| controller(stats(manager)))
}
