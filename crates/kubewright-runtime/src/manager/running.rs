//! A manager at work: what is started and stopped in which order.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use futures::future::{join, join_all};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Manager, UNKNOWN_HOST};
use crate::{
    Cache, Context, Controller, Error, Member, Phase,
    cache::Connection,
    dynamic_watches::DynamicWatches,
    events::Recorder,
    replicas::Replicas,
    runners::{Extras, Runner, Tasks},
    source::Sink,
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
        self.check()?;
        let (failed, mut failures) = mpsc::channel(1);
        let endpoints = self.open_endpoints().await?;
        let servers = self.start_servers(&failed);
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
        self.members.iter().for_each(|member| member.cache().start());
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
        let caches: Vec<_> =
            std::iter::once(&self.cache).chain(self.members.iter().map(Member::cache)).cloned().collect();
        self.servers.ready.add("informer-sync", move || {
            let missing: Vec<String> = caches.iter().flat_map(Cache::unsynced).collect();
            if missing.is_empty() { Ok(()) } else { Err(format!("not filled: {}", missing.join(", "))) }
        });
        let stop = CancellationToken::new();
        let servers = std::mem::take(&mut self.servers);
        let listening = servers.bind(&self.metrics, &self.client, &stop).await?;
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

    fn extras(&self, phase: Phase, failed: &mpsc::Sender<Error>) -> Extras {
        let extras = self.extras.iter().filter(|extra| extra.phase == phase).cloned().collect();
        let caches = std::iter::once(&self.cache).chain(self.members.iter().map(Member::cache));
        let caches = if phase == Phase::Server { Vec::new() } else { caches.cloned().collect() };
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
        let name: Arc<str> = controller.name.into();
        let queue = Arc::new(Workqueue::measured(controller.rate_limit, self.metrics.queue(&name)));
        self.backlog.read(&name, &queue);
        let (metrics, load) = (self.metrics.controller(&name), Arc::downgrade(&queue));
        self.metrics.read_queue(&name, move || load.upgrade().map(|queue| queue.load()));
        let open = Arc::new(AtomicBool::new(!in_turn));
        let sink = Sink {
            controller: name.clone(),
            queue: queue.clone(),
            metrics: metrics.clone(),
            open: open.clone(),
            pause: pause.as_ref().map(|pause| pause.annotation.clone()),
            own_events: controller.own_events,
            dynamic_watches: DynamicWatches::default(),
            orphan_guard,
        };
        let declared: BTreeSet<_> =
            controller.kinds.iter().filter_map(|kind| kind.read_from_context()).collect();
        let connected =
            controller.kinds.into_iter().map(|kind| kind.connect(&self.cache, sink.clone())).collect();
        let client = match controller.client {
            None => self.client.clone(),
            Some(client) if self.connection == Connection::Process => client,
            Some(client) => self.metrics.requests().client(client, UNKNOWN_HOST),
        };
        let client = if in_turn { self.replicas.guard(client) } else { client };
        let event_source = controller.event_source.as_deref().unwrap_or(&name);
        let recorder = Recorder::new(controller.events, client.clone(), self.world.clone(), event_source);
        let (cache, world) = (self.cache.clone(), self.world.clone());
        let spans = Spans::new(name, own, self.world.clock);
        let rights = self.rights.clone();
        let context = Context::new(sink, cache, client, world, declared, recorder, rights);
        let turns = if in_turn { self.replicas.turns() } else { None };
        let (reconciler, timeout, resync) = (controller.reconciler, controller.timeout, controller.resync);
        let worker = Worker { reconciler, context, queue, metrics, timeout, pause, spans, turns };
        let (failed, stop) = (failed.clone(), self.stop.clone());
        Runner::new(worker, controller.concurrency, open, connected, controller.streams, failed, stop)
            .resync(resync)
    }
}
