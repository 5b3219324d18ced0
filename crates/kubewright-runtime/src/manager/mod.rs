//! Runs controllers on shared caches: what a manager is put together from.

mod running;
#[cfg(test)]
mod start_tests;

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use kube::Client;
use kubewright_world::World;
use tokio_util::sync::CancellationToken;

use crate::{
    Backlog, Cache, Clusters, Controller, Counters, Defaults, Error, LeaderElection, Leadership, Member,
    Namespaces, Phase, Runnable, Shard, Sharding,
    cache::{Connection, Reach},
    health::Checks,
    journal::{Journals, ReconcileRecord},
    metrics::Metrics,
    rbac::Rights,
    replicas::Replicas,
    runnable::Extra,
    serving::{Bound, Endpoint, HealthServer, MetricsServer, Servers},
    source::Place,
};

/// How long the work of a leader may go on when its lease is lost, until the process is told to be unhealthy
/// (`LeaderHealthzAdaptorTimeout` of `k8s.io/kubernetes/cmd/kube-controller-manager/app`).
const OVERDUE: Duration = Duration::from_secs(20);

/// How long reconciles may go on after a shutdown began (controller-runtime's default).
pub const GRACEFUL_SHUTDOWN: Duration = Duration::from_secs(30);

/// The host of a client that was made elsewhere, in metrics: a client does not tell where it leads.
const UNKNOWN_HOST: &str = "unknown";

/// What is done with a manager once, before it starts anything.
pub(crate) type Preparation =
    Box<dyn for<'a> FnOnce(&'a mut Manager) -> BoxFuture<'a, Result<(), Error>> + Send + Sync>;

/// Runs any number of controllers on one client and one cache, with one watch per kind and one queue per controller.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubewright_runtime::{CancellationToken, Controller, Error, Manager, World};
/// # use kubewright_runtime::{Context, Key, Outcome, Reconciler};
/// # struct Greeter;
/// # impl Reconciler for Greeter {
/// #     async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> { Ok(Outcome::Done) }
/// # }
///
/// # async fn example(client: kube::Client, stop: CancellationToken) -> Result<(), Error> {
/// let mut manager = Manager::new(client, World::real());
/// manager.watch_namespaces(["shop".to_owned()]);
/// manager.add(Controller::new("greeter", Greeter).for_kind::<ConfigMap>());
/// manager.run(stop).await // until `stop` is cancelled, or something fails for good
/// # }
/// ```
///
/// What runs cannot be added to: [`Manager::run`] takes the manager.
///
/// ```compile_fail,E0382
/// # use kubewright_runtime::{CancellationToken, Controller, Manager, Reconciler, World};
/// # fn example(client: kube::Client, late: Controller) {
/// let mut manager = Manager::new(client, World::real());
/// let running = manager.run(CancellationToken::new());
/// manager.add(late);
/// # }
/// ```
pub struct Manager {
    /// What is to be waited for before anything starts.
    preparations: Vec<Preparation>,
    client: Client,
    world: World,
    cache: Cache,
    /// Ends caches, sources and elections.
    stop: CancellationToken,
    controllers: Vec<Controller>,
    backlog: Backlog,
    journals: Journals,
    counters: Counters,
    metrics: Metrics,
    connection: Connection,
    /// The namespaces that come and go, if it looks at such.
    follows: Option<Namespaces>,
    replicas: Replicas,
    clusters: Clusters,
    extras: Vec<Extra>,
    servers: Servers,
    grace: Duration,
    defaults: Defaults,
    /// What it works with, as far as that is known.
    rights: Arc<Rights>,
    /// The same in each further cluster.
    rights_in_clusters: Rights,
    /// What is wrong with the manager itself.
    mistakes: Vec<String>,
    #[cfg(feature = "webhook")]
    webhooks: Vec<crate::webhook::Server>,
}

impl Manager {
    /// A manager without controllers. It counts the requests of its client, whose host it does not know.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn new(client: Client, world: World) -> Self {
        let metrics = Metrics::new();
        let client = metrics.requests().client(client, UNKNOWN_HOST);
        Self::over(Connection::Network, client, world, metrics)
    }

    /// A manager without controllers that counts in these metrics, as its client does already
    /// ([`Connect::client`](crate::Connect::client)).
    #[must_use]
    pub fn counting_in(metrics: Metrics, client: Client, world: World) -> Self {
        Self::over(Connection::Network, client, world, metrics)
    }

    /// A manager without controllers whose client calls an API server in the same process: a watch lasts as long as that
    /// server lets it, however long nothing happens. Over a network a silent watch is opened anew every five minutes,
    /// which a year of virtual time would be spent on. There is no network, so no requests are counted.
    #[must_use]
    pub fn in_process(client: Client, world: World) -> Self {
        Self::over(Connection::Process, client, world, Metrics::new())
    }

    fn over(connection: Connection, client: Client, world: World, metrics: Metrics) -> Self {
        let (stop, backlog) = (CancellationToken::new(), Backlog::default());
        let cache = Cache::new(client.clone(), connection, world.clone(), stop.clone());
        let clusters = Clusters::new(metrics.requests().clone(), world.clone(), stop.clone());
        Self {
            preparations: Vec::new(),
            client,
            world,
            cache,
            stop,
            controllers: Vec::new(),
            journals: Journals::new(backlog.clone()),
            backlog,
            counters: Counters::default(),
            metrics,
            connection,
            follows: None,
            replicas: Replicas::Independent,
            clusters,
            extras: Vec::new(),
            servers: Servers::default(),
            grace: GRACEFUL_SHUTDOWN,
            defaults: Defaults::new(),
            rights: Arc::default(),
            rights_in_clusters: Rights::default(),
            mistakes: Vec::new(),
            #[cfg(feature = "webhook")]
            webhooks: Vec::new(),
        }
    }

    /// Settings of the controllers that are added from now on, as far as they do not say otherwise themselves.
    pub fn defaults(&mut self, defaults: Defaults) -> &mut Self {
        self.mistakes.extend(defaults.mistakes.iter().cloned());
        self.defaults = defaults;
        self
    }

    /// Adds a controller. Mistakes in it are told by [`Manager::run`].
    pub fn add(&mut self, mut controller: Controller) -> &mut Self {
        self.defaults.apply(&mut controller);
        if self.counters.controllers.contains_key(&controller.name) {
            controller.mistakes.push("another controller of this manager has the same name".into());
        }
        controller.settle_in_clusters();
        let late = controller.late_mistakes();
        controller.mistakes.extend(late);
        let metrics = self.metrics.controller(&controller.name);
        metrics.max_concurrent.set(i64::try_from(controller.workers()).unwrap_or(i64::MAX));
        self.counters.controllers.insert(controller.name.clone(), metrics);
        self.cache.add_applier(&controller.name, &controller.predecessors);
        for kind in controller.kinds.iter().filter(|kind| !matches!(kind.place(), Place::Members)) {
            if let Err(mistake) = kind.declare(&self.cache, &self.metrics) {
                controller.mistakes.push(mistake);
            }
        }
        self.may(controller.rights());
        self.rights_in_clusters.merge(controller.rights_in_clusters());
        self.controllers.push(controller);
        self
    }

    /// Serves webhooks while it runs. They are there before the caches are filled, as those may need a conversion, and on
    /// every replica. What they [read](crate::webhook::Webhook::reads) is in its caches.
    #[cfg(feature = "webhook")]
    pub fn serve(&mut self, server: crate::webhook::Server) -> &mut Self {
        let server = server.counting(self.metrics.certificates().clone());
        self.mistakes.extend(server.check().err().map(|error| error.to_string()));
        self.metrics.read_webhooks(server.service().metrics().clone());
        if server.listens() {
            let listening = server.listening();
            let name = match self.webhooks.len() {
                0 => "webhook".to_owned(),
                number => format!("webhook-{number}"),
            };
            self.servers.ready.add(name, move || listening.address().map(drop).ok_or("not served yet"));
        }
        for reading in server.reads() {
            self.mistakes.extend(reading.declare(&self.cache, &self.metrics).err());
        }
        server.serve_with(&self.client, &self.world, &self.cache);
        self.may(server.rights());
        self.webhooks.push(server);
        self
    }

    /// Lets controllers work on one replica of many, the leader, unless they are
    /// [on every replica](Controller::on_every_replica). Caches are filled everywhere, so that a new leader starts at
    /// once, with every object that is there. What is guaranteed is told by [`leader`](crate::leader). `/healthz` fails when a lease
    /// was lost twenty seconds ago and the leader's work has not ended ([`Leadership::check`]).
    pub fn elect(&mut self, election: LeaderElection) -> &mut Self {
        self.may(election.rights());
        let replicas = Replicas::elected(self.client.clone(), self.world.clone(), election);
        self.counters.leadership = replicas.leadership();
        if let Some(leadership) = replicas.leadership() {
            self.metrics.read_leadership(leadership.clone());
            self.servers.alive.add("ping", || Ok::<_, String>(()));
            self.servers.alive.add("leader-election", move || leadership.check(OVERDUE));
        }
        self.set_replicas(replicas)
    }

    /// Lets replicas share the keys of the controllers, unless these are
    /// [on every replica](Controller::on_every_replica). Caches are filled everywhere. What is guaranteed is told by
    /// [`shard`](crate::shard). `/healthz` fails when the membership was lost twenty seconds ago and the work on its keys has not
    /// ended ([`Shard::check`]).
    pub fn share(&mut self, sharding: Sharding) -> &mut Self {
        self.may(sharding.rights());
        let replicas = Replicas::sharing(self.client.clone(), self.world.clone(), sharding);
        if let Some(shard) = replicas.shard() {
            self.servers.alive.add("ping", || Ok::<_, String>(()));
            self.servers.alive.add("sharding", move || shard.check(OVERDUE));
        }
        self.set_replicas(replicas)
    }

    /// Looks only at these namespaces, in the manager's cluster and in [others](Manager::add_cluster): objects elsewhere are
    /// "not there". Kinds without namespaces are watched whole, and so is everything when no namespace is named. Comes
    /// before the controllers. Needs rights in these namespaces alone.
    pub fn watch_namespaces(&mut self, namespaces: impl IntoIterator<Item = String>) -> &mut Self {
        let namespaces = namespaces.into_iter().filter(|name| !name.is_empty()).collect();
        self.look_at(&Reach::of(namespaces))
    }

    /// Looks only at the namespaces that are in this set at the time, in the manager's cluster and in [others](Manager::add_cluster); what
    /// happens when one comes or goes is told there. Kinds without namespaces are watched whole. Comes before the controllers. Needs rights in these namespaces
    /// alone.
    pub fn follow_namespaces(&mut self, namespaces: &Namespaces) -> &mut Self {
        self.mistakes.extend(namespaces.mistake());
        self.follows = Some(namespaces.clone());
        self.look_at(&Reach::Following(namespaces.clone()))
    }

    fn look_at(&mut self, reach: &Reach) -> &mut Self {
        if self.follows.is_some() && !matches!(reach, Reach::Following(_)) {
            self.mistakes.push("a manager that follows namespaces is told which to look at".to_owned());
        }
        let (here, there) = (self.cache.restrict(reach.clone()), self.clusters.restrict(reach));
        if !(here && there) {
            self.mistakes.push("the namespaces to look at come before the controllers".to_owned());
        }
        self
    }

    /// Keeps the objects of all kinds as values of their type, in all of its clusters: what
    /// [`Controller::as_values`](crate::Controller::as_values) does for one kind. Comes before the controllers.
    pub fn as_values(&mut self) -> &mut Self {
        let (here, there) = (self.cache.keep_values(), self.clusters.keep_values());
        if !(here && there) {
            self.mistakes.push("how objects are kept comes before the controllers".to_owned());
        }
        self
    }

    /// Runs something else beside the controllers. What it is called is for logs and errors.
    pub fn run_also(&mut self, name: impl Into<String>, phase: Phase, work: impl Runnable) -> &mut Self {
        self.extras.push(Extra { name: name.into(), phase, work: Arc::new(work) });
        self
    }

    /// Does something first of all when it runs, before it is checked and anything starts: to ask the API server for what
    /// decides which controllers there are, say. What it adds is not in the counts that were [taken](Manager::counters)
    /// before. Its error ends [`Manager::run`].
    ///
    /// ```
    /// # use kubewright_runtime::Manager;
    /// # fn example(manager: &mut Manager) {
    /// manager.before_run(|manager| Box::pin(async move {
    ///     let version = manager.client().apiserver_version().await?;
    ///     tracing::info!(version = version.git_version, "the API server");
    ///     Ok(())
    /// }));
    /// # }
    /// ```
    pub fn before_run<F>(&mut self, preparation: F) -> &mut Self
    where
        F: for<'a> FnOnce(&'a mut Self) -> BoxFuture<'a, Result<(), Error>> + Send + Sync + 'static,
    {
        self.preparations.push(Box::new(preparation));
        self
    }

    /// Adds another cluster, whose caches start and stop with the manager's, and which is looked at in the
    /// [same namespaces](Manager::watch_namespaces). Controllers work there by [`Controller::in_each_cluster`], and look at it by
    /// [`Controller::watches_in_each`] and [`Controller::watches_in`]; the manager's own cluster is where leases are. A name that is taken is
    /// an error of [`Manager::run`].
    pub fn add_cluster(&mut self, name: impl Into<String>, client: Client) -> Member {
        let name = name.into();
        self.clusters.add(name.clone(), client.clone()).unwrap_or_else(|error| {
            self.mistakes.push(error.to_string());
            self.clusters.unlisted(name, client)
        })
    }

    /// The clusters beside its own; a clone adds and removes some while the manager runs.
    #[must_use]
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// Serves [metrics](Manager::metrics) while the manager runs, on every replica.
    pub fn serve_metrics(&mut self, server: MetricsServer) -> Bound {
        self.may(server.rights());
        let (announce, bound) = Endpoint::announce();
        self.servers.metrics = Some((server, announce));
        bound
    }

    /// Answers `GET` requests for a path below `/debug/` at the address of the [metrics](Manager::serve_metrics), for those who may `get` that
    /// non-resource URL: a profiler of the operator's choice, say, or what it knows of its own state. An answer may take its
    /// time; the handler must not block. A path that is taken is an error of [`Manager::run`].
    ///
    /// ```
    /// # use kubewright_runtime::Manager;
    /// # fn example(manager: &mut Manager, profile: impl Fn(u64) -> Vec<u8> + Copy + Send + Sync + 'static) {
    /// // go tool pprof http://127.0.0.1:8080/debug/pprof/profile?seconds=10
    /// manager.debug_handler("/debug/pprof/profile", move |request| async move {
    ///     let query = request.uri.query().unwrap_or_default();
    ///     let seconds = query.strip_prefix("seconds=").and_then(|text| text.parse().ok()).unwrap_or(30).min(60);
    ///     let taken = tokio::task::spawn_blocking(move || profile(seconds)).await;
    ///     http::Response::new(taken.unwrap_or_default())
    /// });
    /// # }
    /// ```
    pub fn debug_handler<F, R>(&mut self, path: impl Into<String>, handler: F) -> &mut Self
    where
        F: Fn(http::request::Parts) -> R + Send + Sync + 'static,
        R: Future<Output = http::Response<Vec<u8>>> + Send + 'static,
    {
        self.mistakes.extend(self.servers.debug.add(path.into(), handler).err());
        self
    }

    /// Serves the [checks](Manager::health) while the manager runs, on every replica.
    pub fn serve_health(&mut self, server: HealthServer) -> Bound {
        let (announce, bound) = Endpoint::announce();
        self.servers.health = Some((server, announce));
        bound
    }

    /// What `/healthz` tells: whether this process is worth to be kept.
    #[must_use]
    pub fn health(&self) -> &Checks {
        &self.servers.alive
    }

    /// What `/readyz` tells: whether this replica does its work. That the caches are filled (`informer-sync`) is among it.
    #[must_use]
    pub fn readiness(&self) -> &Checks {
        &self.servers.ready
    }

    /// How long work may go on after a shutdown began, instead of [`GRACEFUL_SHUTDOWN`]; [`Duration::ZERO`] to wait for
    /// nothing, [`Duration::MAX`] to wait for ever.
    pub fn graceful_shutdown(&mut self, limit: Duration) -> &mut Self {
        self.grace = limit;
        self
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

    /// The clock and the dice.
    #[must_use]
    pub fn world(&self) -> &World {
        &self.world
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

    /// Rights that nothing else in it declares.
    pub fn may(&mut self, rights: Rights) -> &mut Self {
        Arc::make_mut(&mut self.rights).merge(rights);
        self
    }

    /// The rights that it works with, as far as its parts declare them: its controllers', those to elect a leader or to share
    /// keys, its webhooks', and those to ask who reads metrics. What runs beside them ([`Manager::run_also`]) is told by [`Manager::may`].
    #[must_use]
    pub fn rights(&self) -> Rights {
        (*self.rights).clone()
    }

    /// The rights that its controllers work with in each [further cluster](Manager::clusters), as far as they declare them.
    #[must_use]
    pub fn rights_in_clusters(&self) -> &Rights {
        &self.rights_in_clusters
    }

    /// Tells `observer` of each reconcile that ends from now on, with why it was and what came of it, as `/debug/reconciles` does. It must not block.
    pub fn on_reconcile(&mut self, observer: impl Fn(&ReconcileRecord) + Send + Sync + 'static) -> &mut Self {
        self.journals.observe(observer);
        self
    }

    /// What the controllers have still to do; a clone keeps telling it while the manager runs.
    #[must_use]
    pub fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    /// What this manager tells Prometheus. An operator's own metrics go there too.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("controllers", &self.controllers).finish_non_exhaustive()
    }
}
