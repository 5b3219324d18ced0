//! Runs controllers on shared caches.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use futures::future::{join, join_all};
use kube::Client;
use kubewright_world::World;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    Cache, Context, Controller, Counters, Error, LeaderElection, Leadership, Shard, Sharding,
    cache::Connection,
    counters::Counter,
    crew::{Hand, Tasks},
    events::Recorder,
    replicas::Replicas,
    source::Sink,
    worker::Worker,
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
    replicas: Replicas,
    /// What is wrong with the manager itself.
    mistakes: Vec<String>,
    #[cfg(feature = "webhook")]
    webhooks: Vec<crate::webhook::Server>,
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
        Self {
            client,
            world,
            cache,
            stop,
            controllers: Vec::new(),
            counters: Counters::default(),
            replicas: Replicas::Independent,
            mistakes: Vec::new(),
            #[cfg(feature = "webhook")]
            webhooks: Vec::new(),
        }
    }

    /// Adds a controller. Mistakes in it are told by [`Manager::run`].
    pub fn add(&mut self, mut controller: Controller) -> &mut Self {
        if self.counters.controllers.contains_key(&controller.name) {
            controller.mistakes.push("another controller of this manager has the same name".into());
        }
        self.counters.controllers.entry(controller.name.clone()).or_default();
        for kind in &controller.kinds {
            if let Err(mistake) = kind.declare(&self.cache) {
                controller.mistakes.push(mistake);
            }
        }
        self.controllers.push(controller);
        self
    }

    /// Serves webhooks while it runs. They are there before the caches are filled, as those may need a conversion, and on
    /// every replica.
    #[cfg(feature = "webhook")]
    pub fn serve(&mut self, server: crate::webhook::Server) -> &mut Self {
        self.mistakes.extend(server.check().err().map(|error| error.to_string()));
        self.webhooks.push(server);
        self
    }

    /// Lets controllers work on one replica of many, the leader, unless they are
    /// [on every replica](Controller::on_every_replica). Caches are filled everywhere, so that a new leader starts at
    /// once, with every object that is there. What is guaranteed is told by [`leader`](crate::leader).
    pub fn elect(&mut self, election: LeaderElection) -> &mut Self {
        let replicas = Replicas::elected(self.client.clone(), self.world.clone(), election);
        self.counters.leadership = replicas.leadership();
        self.set_replicas(replicas)
    }

    /// Lets replicas share the keys of the controllers, unless these are
    /// [on every replica](Controller::on_every_replica). Caches are filled everywhere. What is guaranteed is told by
    /// [`shard`](crate::shard).
    pub fn share(&mut self, sharding: Sharding) -> &mut Self {
        let replicas = Replicas::sharing(self.client.clone(), self.world.clone(), sharding);
        self.set_replicas(replicas)
    }

    fn set_replicas(&mut self, replicas: Replicas) -> &mut Self {
        if !matches!(self.replicas, Replicas::Independent) {
            let mistake = "a manager elects one leader, or shares its keys in one ring; use two managers";
            self.mistakes.push(mistake.to_owned());
        }
        self.mistakes.extend(replicas.mistakes());
        self.replicas = replicas;
        self
    }

    /// Whether this replica leads, and when; `None` in a manager that [elects](Manager::elect) nobody.
    #[must_use]
    pub fn leadership(&self) -> Option<Leadership> {
        self.replicas.leadership()
    }

    /// Which keys are this replica's; `None` in a manager that does not [share](Manager::share) them.
    #[must_use]
    pub fn shard(&self) -> Option<Shard> {
        self.replicas.shard()
    }

    /// The client that the manager was made with. Its writes are not fenced.
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
        #[cfg(feature = "webhook")]
        let servers = self.start_webhooks(&failed);
        let (everywhere, in_turn): (Vec<_>, Vec<_>) = std::mem::take(&mut self.controllers)
            .into_iter()
            .partition(|controller| controller.on_every_replica || !self.replicas.take_turns());
        let everywhere: Vec<_> =
            everywhere.into_iter().map(|controller| self.launch(controller, false, &failed)).collect();
        let in_turn = in_turn.into_iter().map(|controller| self.launch(controller, true, &failed)).collect();
        let working: Vec<Tasks> = everywhere.iter().map(Hand::start).collect();
        let replicas = std::mem::replace(&mut self.replicas, Replicas::Independent);
        let taking_turns = replicas.start(in_turn, &self.stop, &failed);
        self.cache.start();
        let result = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(()),
            Some(failure) = failures.recv() => Err(failure),
        };
        self.stop.cancel();
        everywhere.iter().for_each(Hand::shut_down);
        let ended = join(join_all(working.into_iter().map(Tasks::ended)), taking_turns);
        #[cfg(feature = "webhook")]
        let ended = join(ended, join_all(servers));
        match tokio::time::timeout(GRACEFUL_SHUTDOWN, ended).await {
            Ok(_) => result,
            Err(_) => result.and(Err(Error::ShutdownTimedOut(GRACEFUL_SHUTDOWN))),
        }
    }

    /// Starts the webhooks, in a task for each server.
    #[cfg(feature = "webhook")]
    fn start_webhooks(
        &mut self,
        failed: &mpsc::Sender<Error>,
    ) -> Vec<tokio_util::task::AbortOnDropHandle<()>> {
        let servers = std::mem::take(&mut self.webhooks).into_iter().map(|server| {
            let running = server.run(self.client.clone(), self.world.clone(), self.stop.clone());
            let ended = failed.clone();
            let run = async move {
                if let Err(error) = running.await {
                    // A full channel means that another failure ends the manager already.
                    let _ = ended.try_send(error);
                }
            };
            crate::crew::spawn("the webhooks".to_owned(), run, failed.clone())
        });
        servers.collect()
    }

    fn check(&self) -> Result<(), Error> {
        let mistakes = self.controllers.iter().flat_map(|controller| {
            controller.mistakes.iter().map(|mistake| format!("controller {}: {mistake}", controller.name))
        });
        let mistakes = self.mistakes.iter().cloned().chain(mistakes).collect::<Vec<_>>();
        if mistakes.is_empty() { Ok(()) } else { Err(Error::Misconfigured(mistakes.join("; "))) }
    }

    /// Connects a controller to the caches; `in_turn` if it works only when it is this replica's turn.
    fn launch(&self, controller: Controller, in_turn: bool, failed: &mpsc::Sender<Error>) -> Hand {
        let name: Arc<str> = controller.name.into();
        let queue = Arc::new(Workqueue::new());
        let counter = self.counter(&name);
        let open = Arc::new(AtomicBool::new(!in_turn));
        let sink = Sink {
            controller: name.clone(),
            queue: queue.clone(),
            counter: counter.clone(),
            open: open.clone(),
        };
        let declared: BTreeSet<_> = controller.kinds.iter().map(|kind| kind.kind_id()).collect();
        let connected =
            controller.kinds.into_iter().map(|kind| kind.connect(&self.cache, sink.clone())).collect();
        let client = controller.client.unwrap_or_else(|| self.client.clone());
        let client = if in_turn { self.replicas.guard(client) } else { client };
        let event_source = controller.event_source.as_deref().unwrap_or(&name);
        let recorder = Recorder::new(controller.events, client.clone(), self.world.clone(), event_source);
        let (cache, world) = (self.cache.clone(), self.world.clone());
        let context = Context::new(name, cache, client, world, declared, counter.clone(), recorder);
        let turns = if in_turn { self.replicas.turns() } else { None };
        let worker = Worker { reconciler: controller.reconciler, context, queue, counter, turns };
        let (failed, stop) = (failed.clone(), self.stop.clone());
        Hand::new(worker, controller.concurrency, open, connected, controller.streams, failed, stop)
    }

    fn counter(&self, name: &str) -> Arc<Counter> {
        self.counters.controllers.get(name).cloned().unwrap_or_default()
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("controllers", &self.controllers).finish_non_exhaustive()
    }
}
