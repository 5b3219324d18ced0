//! Runs controllers on shared caches.

use std::{collections::BTreeSet, fmt, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use kube::Client;
use kubewright_world::World;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    Cache, Context, Controller, Counters, Error,
    cache::Connection,
    counters::Counter,
    events::Recorder,
    source::{self, Sink},
    worker::{Worker, panic_message},
    workqueue::Workqueue,
};

/// How long reconciles may go on after a shutdown began (controller-runtime's default).
pub const GRACEFUL_SHUTDOWN: Duration = Duration::from_secs(30);

/// Runs any number of controllers on one client and one cache, with one watch per kind and one queue per controller.
pub struct Manager {
    client: Client,
    world: World,
    cache: Cache,
    stop: CancellationToken,
    controllers: Vec<Controller>,
    counters: Counters,
}

impl Manager {
    /// A manager without controllers.
    #[must_use]
    pub fn new(client: Client, world: World) -> Self {
        Self::over(Connection::Network, client, world)
    }

    /// A manager without controllers whose client calls an API server in the same process: a watch lasts as long as that
    /// server lets it, however long nothing happens. Over a network a silent watch is opened anew every five minutes,
    /// which a year of virtual time would be spent on.
    #[must_use]
    pub fn in_process(client: Client, world: World) -> Self {
        Self::over(Connection::Process, client, world)
    }

    fn over(connection: Connection, client: Client, world: World) -> Self {
        let stop = CancellationToken::new();
        let cache = Cache::new(client.clone(), connection, world.clone(), stop.clone());
        Self { client, world, cache, stop, controllers: Vec::new(), counters: Counters::default() }
    }

    /// Adds a controller. Mistakes in it are told by [`Manager::run`].
    pub fn add(&mut self, mut controller: Controller) -> &mut Self {
        if self.counters.0.contains_key(&controller.name) {
            controller.mistakes.push("another controller of this manager has the same name".into());
        }
        self.counters.0.entry(controller.name.clone()).or_default();
        for kind in &controller.kinds {
            if let Err(mistake) = kind.declare(&self.cache) {
                controller.mistakes.push(mistake);
            }
        }
        self.controllers.push(controller);
        self
    }

    /// The client that the manager was made with.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The caches: of every kind that a controller declared, filled while the manager runs.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The counts of the controllers added so far; a clone keeps telling them while the manager runs.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Runs until `shutdown`.
    ///
    /// The watches start first; a controller works as soon as the caches of its kinds are complete. A kind that the API
    /// server does not serve holds up only the controllers that declared it, says so in the log and is tried again
    /// until it is there. On shutdown the watches and sources end, the workers finish what is due, and what is planned
    /// for later is dropped. Every task ends with this future, also when it is dropped.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] before anything starts; [`Error::Panicked`] when a source panicked;
    /// [`Error::ShutdownTimedOut`] when reconciles went on for [`GRACEFUL_SHUTDOWN`] after the shutdown began.
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<(), Error> {
        let _stop_on_drop = self.stop.clone().drop_guard();
        self.check()?;
        let (failed, mut failures) = mpsc::channel(1);
        let controllers = std::mem::take(&mut self.controllers);
        let running: Vec<Running> =
            controllers.into_iter().map(|controller| self.launch(controller, &failed)).collect();
        self.cache.start();
        let result = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(()),
            Some(failure) = failures.recv() => Err(failure),
        };
        self.stop.cancel();
        let workers = join_all(running.into_iter().map(Running::finish));
        match tokio::time::timeout(GRACEFUL_SHUTDOWN, workers).await {
            Ok(_) => result,
            Err(_) => result.and(Err(Error::ShutdownTimedOut(GRACEFUL_SHUTDOWN))),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let mistakes = self.controllers.iter().flat_map(|controller| {
            controller.mistakes.iter().map(|mistake| format!("controller {}: {mistake}", controller.name))
        });
        let mistakes = mistakes.collect::<Vec<_>>();
        if mistakes.is_empty() { Ok(()) } else { Err(Error::Misconfigured(mistakes.join("; "))) }
    }

    /// Connects a controller to the caches and starts its tasks.
    fn launch(&self, controller: Controller, failed: &mpsc::Sender<Error>) -> Running {
        let name: Arc<str> = controller.name.into();
        let queue = Arc::new(Workqueue::new());
        let counter = self.counter(&name);
        let sink = Sink { controller: name.clone(), queue: queue.clone(), counter: counter.clone() };
        let declared: BTreeSet<_> = controller.kinds.iter().map(|kind| kind.kind_id()).collect();
        let synced: Vec<_> =
            controller.kinds.into_iter().map(|kind| kind.connect(&self.cache, sink.clone())).collect();
        let sources = controller.streams.into_iter().map(|stream| {
            spawn(format!("a source of {name}"), source::drain(stream, sink.clone()), failed.clone())
        });
        let sources = sources.collect();
        let client = controller.client.unwrap_or_else(|| self.client.clone());
        let event_source = controller.event_source.as_deref().unwrap_or(&name);
        let recorder = Recorder::new(controller.events, client.clone(), self.world.clone(), event_source);
        let (cache, world) = (self.cache.clone(), self.world.clone());
        let context = Context::new(name.clone(), cache, client, world, declared, counter.clone(), recorder);
        let worker = Worker { reconciler: controller.reconciler, context, queue: queue.clone(), counter };
        let workers = work(worker, controller.concurrency, synced, self.stop.clone(), failed.clone());
        let workers = spawn(format!("the controller {name}"), workers, failed.clone());
        Running { queue, sources, workers }
    }

    fn counter(&self, name: &str) -> Arc<Counter> {
        self.counters.0.get(name).cloned().unwrap_or_default()
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("controllers", &self.controllers).finish_non_exhaustive()
    }
}

/// A controller that was launched; dropping it ends its tasks.
struct Running {
    queue: Arc<Workqueue<crate::Key>>,
    sources: Vec<AbortOnDropHandle<()>>,
    workers: AbortOnDropHandle<()>,
}

impl Running {
    /// Ends the sources at once, and the workers when they have done what is due.
    async fn finish(self) {
        drop(self.sources);
        self.queue.shut_down();
        // A panic was reported by the task itself.
        let _ = self.workers.await;
    }
}

/// Waits for the caches, then works with `concurrency` workers, a task for each, until the queue is drained.
async fn work(
    worker: Worker,
    concurrency: usize,
    synced: Vec<BoxFuture<'static, ()>>,
    stop: CancellationToken,
    failed: mpsc::Sender<Error>,
) {
    tokio::select! {
        biased;
        _ = join_all(synced) => {}
        () = stop.cancelled() => return,
    }
    let name = worker.context.controller().to_owned();
    tracing::debug!(controller = %name, workers = concurrency, "the caches are complete; starting");
    let workers: Vec<_> = (0..concurrency)
        .map(|_| spawn(format!("a worker of {name}"), worker.clone().run(), failed.clone()))
        .collect();
    for worker in workers {
        // A panic was reported by the task itself.
        let _ = worker.await;
    }
}

/// Runs `future` in a task of its own that ends with the handle; a panic is reported to `failed`.
fn spawn(
    task: String,
    future: impl Future<Output = ()> + Send + 'static,
    failed: mpsc::Sender<Error>,
) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(panic) = AssertUnwindSafe(future).catch_unwind().await {
            let message = panic_message(&*panic).to_owned();
            // A full channel means that another failure ends the manager already.
            let _ = failed.try_send(Error::Panicked { task, message });
        }
    }))
}
