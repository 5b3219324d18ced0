//! The CronTab operator: each CronTab makes a Job whenever its schedule is due.
//!
//! [`plan()`] is the whole of the decision, as a pure function; [`controller`] is what a manager runs; [`operator`] is all of it, with
//! what installs it: the CRD and the rights of the operator's service account.
//!
//! **One Job for each tick** rests on three facts. A run's Job is called after the run, so of two attempts one is refused.
//! Before a Job is made the CronTab is read from the API server, not from a cache. And no Job of a run goes before the
//! status says that the run began.

mod events;
mod grammar;
mod job;
pub mod manifests;
mod plan;
mod reconciler;
mod timetable;
mod types;

pub use events::NewEvent;
pub use job::Run;
use kubewright::{CancellationToken, Error, Phase, command::Operator};
pub use plan::{Plan, RUN_NOW, Start, plan};
pub use reconciler::{CronTabReconciler, controller};
pub use types::{ActiveJob, ConcurrencyPolicy, CronTab, CronTabSpec, CronTabStatus};

/// The operator as a program: its kind and its controller.
#[must_use]
pub fn operator() -> Operator {
    Operator::new("crontab", env!("CARGO_PKG_VERSION")).definition::<CronTab>().controller(controller).setup(
        |manager| {
            manager.run_also("greeting", Phase::Leader, |_: CancellationToken| async {
                tracing::info!("Watching for crontab objects...");
                Ok::<(), Error>(())
            });
            Ok(())
        },
    )
}
