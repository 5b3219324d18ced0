//! What the tests share: a reconciler made of a closure, and a manager that runs beside the test.

use std::sync::Arc;

use futures::future::BoxFuture;
use kubewright_runtime::{CancellationToken, Context, Controller, Counters, Error, Key, Outcome, Reconciler};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::lab::{Lab, ROOT_CA};

struct Function<F>(F);

impl<F> Reconciler for Function<F>
where
    F: for<'a> Fn(&'a Context, &'a Key) -> BoxFuture<'a, Result<Outcome, Error>> + Send + Sync + 'static,
{
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        if key.name == ROOT_CA {
            return Ok(Outcome::Done);
        }
        (self.0)(ctx, key).await
    }
}

/// A reconciler that is a function. What every namespace has does not reach it.
pub(crate) fn does<F>(function: F) -> impl Reconciler
where
    F: for<'a> Fn(&'a Context, &'a Key) -> BoxFuture<'a, Result<Outcome, Error>> + Send + Sync + 'static,
{
    Function(function)
}

/// A list that tasks write to and the test reads.
#[derive(Clone)]
pub(crate) struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T: Clone> Log<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn push(&self, entry: T) {
        self.0.lock().push(entry);
    }

    pub(crate) fn entries(&self) -> Vec<T> {
        self.0.lock().clone()
    }

    /// What was written since the last time.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A manager that runs.
pub(crate) struct Running {
    pub(crate) cache: kubewright_runtime::Cache,
    pub(crate) counters: Counters,
    pub(crate) shutdown: CancellationToken,
    pub(crate) end: JoinHandle<Result<(), Error>>,
}

/// Runs `controllers` on the lab's namespace; embedded, in the simulated world of seed 1.
pub(crate) fn run(lab: &Lab, controllers: impl IntoIterator<Item = Controller>) -> Running {
    let mut manager = lab.manager();
    for controller in controllers {
        manager.add(controller);
    }
    let (cache, counters) = (manager.cache().clone(), manager.counters().clone());
    let shutdown = CancellationToken::new();
    let end = tokio::spawn(manager.run(shutdown.clone()));
    Running { cache, counters, shutdown, end }
}

/// A controller named `test` for ConfigMaps that logs the names it is called with.
pub(crate) fn logging(log: &Log<String>) -> Controller {
    let log = log.clone();
    Controller::new(
        "test",
        does(move |_, key| {
            log.push(key.name.clone());
            Box::pin(async { Ok(Outcome::Done) })
        }),
    )
}
