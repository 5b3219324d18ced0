//! A manager at work: what is started and stopped in which order.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use futures::future::{join, join_all};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::AbortOnDropHandle,
};

use super::{Manager, UNKNOWN_HOST};
use crate::{
    Cache, ClientLayer, Clusters, Context, Controller, Error, Member, Phase,
    cache::Connection,
    context::Kinds,
    dynamic_watches::DynamicWatches,
    events::{EventQueue, EventWriter},
    in_clusters::InClusters,
    replicas::Replicas,
    reporter::report,
    runners::{Extras, Runner, Tasks},
    source::{Gates, Place, Sink},
    span::Spans,
    worker::Worker,
    workqueue::Workqueue,
};

/// Things that run for a part of a manager's life; dropping it ends them.
struct Group {
    stop: DropGuard,
    tasks: Tasks,
}

impl Group {
    /// Asks them to end and waits until they have.
    async fn end(self) {
        drop(self.stop);
        self.tasks.ended().await;
    }
}

/// Lets the clusters go of what looks at them, once nothing does any more.
struct EndOnDrop(Clusters);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Manager {
    /// Runs until `shutdown`.
    ///
    /// In this order there start: the endpoints of health and metrics, what else [serves](Phase::Server), the caches, and
    /// when they are filled what runs on [every replica](Phase::EveryReplica) and on the [leader](Phase::Leader). A
    /// controller works as soon as the caches of its kinds are complete. A kind that the API server does not serve holds
    /// up only the controllers that declared it (and what is not a controller), says so in the log and is tried again
    /// until it is there. On shutdown all ends in the opposite order: the watches and sources first, the workers finish
    /// what is due, what is planned for later is dropped, and the endpoints answer until the last. Every task ends with
    /// this future, also when it is dropped.
    ///
    /// # Errors
    /// [`Error::Misconfigured`] before anything starts, an address that is taken among it; [`Error::Panicked`] when a source
    /// panicked; what a [`Runnable`](crate::Runnable) failed with; [`Error::ShutdownTimedOut`] when work went on for the
    /// time of a [graceful shutdown](Manager::graceful_shutdown).
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<(), Error> {
        let _stop_on_drop = self.stop.clone().drop_guard();
        let _end_on_drop = EndOnDrop(self.clusters.clone());
        for prepare in std::mem::take(&mut self.preparations) {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return Ok(()),
                prepared = prepare(&mut self) => prepared?,
            }
        }
        self.check()?;
        let (failed, mut failures) = mpsc::channel(1);
        let endpoints = self.open_endpoints().await?;
        let servers = self.start_servers(&failed);
        let _reporter = self.start_reporter();
        let (everywhere, in_turn): (Vec<_>, Vec<_>) = std::mem::take(&mut self.controllers)
            .into_iter()
            .partition(|controller| controller.on_every_replica || !self.replicas.take_turns());
        let everywhere: Vec<_> =
            everywhere.into_iter().map(|controller| self.launch(controller, false, &failed)).collect();
        let in_turn = in_turn.into_iter().map(|controller| self.launch(controller, true, &failed)).collect();
        let working: Vec<Tasks> = everywhere.iter().map(Runner::start).collect();
        let others = self.start_extras(Phase::EveryReplica, &failed);
        let leading = self.extras(Phase::Leader, &failed);
        let replicas = std::mem::replace(&mut self.replicas, Replicas::Independent);
        let taking_turns = replicas.start(in_turn, leading, &self.stop, &failed);
        self.cache.start();
        self.clusters.start();
        let result = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(()),
            Some(failure) = failures.recv() => Err(failure),
        };
        let stop = self.stop.clone();
        let ended = async {
            others.end().await;
            stop.cancel();
            everywhere.iter().for_each(Runner::shut_down);
            join(join_all(working.into_iter().map(Tasks::ended)), taking_turns).await;
            servers.end().await;
            endpoints.end().await;
        };
        match tokio::time::timeout(self.grace, ended).await {
            Ok(()) => result,
            Err(_) if self.grace == Duration::ZERO => result,
            Err(_) => result.and(Err(Error::ShutdownTimedOut(self.grace))),
        }
    }

    fn check(&self) -> Result<(), Error> {
        let mistakes = self.controllers.iter().flat_map(|controller| {
            controller.mistakes.iter().map(|mistake| format!("controller {}: {mistake}", controller.name))
        });
        let mut mistakes = self.mistakes.iter().cloned().chain(mistakes).collect::<Vec<_>>();
        if self.replicas.shard().is_some() && self.extras.iter().any(|extra| extra.phase == Phase::Leader) {
            mistakes.push("replicas that share keys have no leader: let it run on every replica".to_owned());
        }
        if mistakes.is_empty() { Ok(()) } else { Err(Error::Misconfigured(mistakes.join("; "))) }
    }

    /// Serves the endpoints that were asked for.
    async fn open_endpoints(&mut self) -> Result<Group, Error> {
        let caches = self.caches();
        self.servers.ready.add("informer-sync", move || {
            let missing: Vec<String> = caches.iter().flat_map(Cache::unsynced).collect();
            if missing.is_empty() { Ok(()) } else { Err(format!("not filled: {}", missing.join(", "))) }
        });
        let stop = CancellationToken::new();
        let servers = std::mem::take(&mut self.servers);
        if servers.metrics.is_some() {
            self.journals.keep();
        }
        let listening = servers.bind(&self.metrics, &self.journals, &self.client, &stop).await?;
        let tasks = listening.into_iter().map(|listening| tokio::spawn(listening.serve(stop.clone())));
        Ok(Group { tasks: Tasks::of(tasks), stop: stop.drop_guard() })
    }

    /// Starts what the API server may call before it answers.
    fn start_servers(&mut self, failed: &mpsc::Sender<Error>) -> Group {
        let stop = CancellationToken::new();
        #[cfg_attr(not(feature = "webhook"), expect(unused_mut, reason = "webhooks are the others"))]
        let mut tasks = self.extras(Phase::Server, failed).start(&stop);
        #[cfg(feature = "webhook")]
        for server in std::mem::take(&mut self.webhooks) {
            let running = server.run(self.client.clone(), self.world.clone(), stop.clone());
            tasks.add("the webhooks".to_owned(), running, failed);
        }
        Group { tasks, stop: stop.drop_guard() }
    }

    /// Tells the API server what the controllers do, where it asks for that.
    fn start_reporter(&self) -> Option<AbortOnDropHandle<()>> {
        if self.connection == Connection::Process {
            return None;
        }
        let invitation = self.metrics.requests().invitation();
        let report = report(self.client.clone(), invitation, self.journals.clone(), self.stop.clone());
        Some(AbortOnDropHandle::new(tokio::spawn(report)))
    }

    /// The caches of its own cluster and of those that are added before it runs.
    fn caches(&self) -> Vec<Cache> {
        let members = self.clusters.all();
        std::iter::once(&self.cache).chain(members.iter().map(Member::cache)).cloned().collect()
    }

    fn extras(&self, phase: Phase, failed: &mpsc::Sender<Error>) -> Extras {
        let extras = self.extras.iter().filter(|extra| extra.phase == phase).cloned().collect();
        let caches = if phase == Phase::Server { Vec::new() } else { self.caches() };
        Extras::new(extras, caches, failed.clone())
    }

    fn start_extras(&self, phase: Phase, failed: &mpsc::Sender<Error>) -> Group {
        let stop = CancellationToken::new();
        Group { tasks: self.extras(phase, failed).start(&stop), stop: stop.drop_guard() }
    }

    /// Connects a controller to the caches; `in_turn` if it works only when it is this replica's turn.
    fn launch(&self, controller: Controller, in_turn: bool, failed: &mpsc::Sender<Error>) -> Runner {
        let (pause, own, orphan_guard) =
            (controller.pause(), controller.own_kind(), controller.orphan_guard());
        let (failures, concurrency) = (controller.show_failures(), controller.workers());
        let name: Arc<str> = controller.name.into();
        let queue = Arc::new(Workqueue::measured(
            controller.rate_limit.unwrap_or_default(),
            self.metrics.queue(&name),
        ));
        let (metrics, load) = (self.metrics.controller(&name), Arc::downgrade(&queue));
        let events = Arc::new(EventQueue::new(metrics.events_dropped.clone()));
        self.backlog.read(&name, &queue, &events);
        self.metrics.read_queue(&name, move || load.upgrade().map(|queue| queue.load()));
        let open = Arc::new(AtomicBool::new(!in_turn));
        let sink = Sink {
            controller: name.clone(),
            queue: queue.clone(),
            metrics: metrics.clone(),
            open: Gates::of(&open),
            cluster: None,
            pause: pause.as_ref().map(|pause| pause.annotation.clone()),
            own_events: controller.own_events,
            dynamic_watches: DynamicWatches::default(),
            is_dry_run: controller.client_layers.iter().any(ClientLayer::is_dry_run),
            predecessors: controller.predecessors.into(),
            orphan_guard,
        };
        let (in_each, here): (Vec<_>, Vec<_>) =
            controller.kinds.into_iter().partition(|kind| matches!(kind.place(), Place::Members));
        let kinds = Kinds::of(&here, &controller.applied);
        let connected = here.iter().map(|kind| kind.connect(&self.cache, sink.clone())).collect();
        let client = match controller.client {
            None => self.client.clone(),
            Some(client) if self.connection == Connection::Process => client,
            Some(client) => self.metrics.requests().client(client, UNKNOWN_HOST),
        };
        let client = if in_turn { self.replicas.guard(client) } else { client };
        let client = controller.client_layers.iter().fold(client, |client, layer| layer.client(client));
        let event_source = controller.event_source.as_deref().unwrap_or(&name);
        let writer = EventWriter::new(controller.events, client.clone(), self.world.clone(), event_source);
        let (cache, world) = (self.cache.clone(), self.world.clone());
        let controller_name = name.clone();
        let spans = Spans::new(name, own, self.world.clock);
        let rights = self.rights.clone();
        let context = Context::new(sink.clone(), cache, client, world, kinds, events, rights);
        let writer = writer.in_clusters(context.cluster_contexts());
        let turns = if in_turn { self.replicas.turns() } else { None };
        let (reconciler, timeout, resync) = (controller.reconciler, controller.timeout, controller.resync);
        let journal = self.journals.begin(controller_name);
        let worker =
            Worker { reconciler, context, queue, metrics, timeout, pause, spans, journal, turns, failures };
        let contexts = worker.context.cluster_contexts().clone();
        let (failed, stop) = (failed.clone(), self.stop.clone());
        let runner =
            Runner::new(worker, concurrency, open, connected, controller.streams, failed.clone(), stop)
                .resync(resync)
                .cache_sync_timeout(controller.cache_sync_timeout)
                .writing_events(writer)
                .following(self.follows.as_ref(), &sink);
        self.clusters.follow(Arc::new(InClusters {
            kinds: in_each.into(),
            applied: controller.applied,
            is_in_keys: controller.in_each_cluster,
            sink,
            contexts,
            gate: if in_turn { self.replicas.gate().cloned() } else { None },
            layers: controller.client_layers,
            metrics: self.metrics.clone(),
            own: runner.replays(),
            namespaces: self.follows.clone(),
            failed,
            joined: Mutex::default(),
        }));
        runner
    }
}
