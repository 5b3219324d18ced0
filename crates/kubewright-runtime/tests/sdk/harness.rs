//! What the tests share: a reconciler made of a closure, and a manager that runs beside the test.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kubewright_runtime::{
    CancellationToken, Context, Controller, Counters, Error, Key, Manager, Outcome, Reconciler, World,
};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::server::Server;

struct Function<F>(F);

impl<F> Reconciler for Function<F>
where
    F: for<'a> Fn(&'a Context, &'a Key) -> BoxFuture<'a, Result<Outcome, Error>> + Send + Sync + 'static,
{
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        (self.0)(ctx, key).await
    }
}

/// A reconciler that is a function.
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

/// Runs `controllers` against `server` in the simulated world of seed 1.
pub(crate) fn run(server: &Server, controllers: impl IntoIterator<Item = Controller>) -> Running {
    let mut manager = Manager::new(server.client(), World::simulated(1));
    for controller in controllers {
        manager.add(controller);
    }
    let (cache, counters) = (manager.cache().clone(), manager.counters().clone());
    let shutdown = CancellationToken::new();
    let end = tokio::spawn(manager.run(shutdown.clone()));
    Running { cache, counters, shutdown, end }
}

/// Lets everything happen that happens within a second.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// A controller named `test` for ConfigMaps that logs the keys it is called with.
pub(crate) fn logging(log: &Log<String>) -> Controller {
    let log = log.clone();
    Controller::new(
        "test",
        does(move |_, key| {
            log.push(key.to_string());
            Box::pin(async { Ok(Outcome::Done) })
        }),
    )
}
