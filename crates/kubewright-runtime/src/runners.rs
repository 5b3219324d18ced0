//! The controllers of a manager at work: all the time, or for the terms of a lease.

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, Shared, join_all},
    stream::BoxStream,
};
use tokio::{
    sync::{Mutex, mpsc},
    task::{AbortHandle, JoinHandle},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::AbortOnDropHandle,
};

use crate::{
    Cache, Error, Key, Namespaces,
    events::EventWriter,
    in_namespaces::NamespaceGate,
    leader::Term,
    runnable::Extra,
    shard::Keys,
    source::{self, Awaited, Connected, InNamespace, Replay, Sink},
    sources::Jitter,
    worker::{Worker, panic_message},
};

/// When it is first reported that a controller waits for its caches, and how often after that.
const FIRST_REPORT: Duration = Duration::from_secs(10);
const REPORT_EVERY: Duration = Duration::from_secs(300);

/// A controller that is connected to the caches.
pub(crate) struct Runner {
    pub(crate) worker: Worker,
    pub(crate) concurrency: usize,
    /// Whether events reach the queue.
    pub(crate) open: Arc<AtomicBool>,
    synced: Shared<BoxFuture<'static, ()>>,
    replays: Arc<[Replay]>,
    resync: Option<Duration>,
    /// The kinds whose caches are waited for.
    waits: Arc<[WaitsFor]>,
    cache_sync_timeout: Option<Duration>,
    /// Writes what reconciles tell.
    events: Option<EventWriter>,
    /// Read by one task at a time, but by another in every term.
    streams: Vec<Arc<Mutex<BoxStream<'static, Key>>>>,
    /// What is waited for in a namespace that has come.
    in_namespaces: Vec<InNamespace>,
    /// Held as long as it follows namespaces that come and go.
    namespaces: Option<Arc<NamespaceGate>>,
    failed: mpsc::Sender<Error>,
    stop: CancellationToken,
}

/// A kind whose cache is waited for.
pub(crate) struct WaitsFor {
    resource: String,
    is_ready: Box<dyn Fn() -> bool + Send + Sync>,
    /// Why its watch does not work, if that is known.
    failure: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

impl WaitsFor {
    /// What is waited for, and until when.
    pub(crate) fn of(awaited: Awaited) -> (Self, BoxFuture<'static, ()>) {
        let Awaited { resource, is_ready, failure, synced } = awaited;
        (Self { resource, is_ready, failure }, synced)
    }

    /// The kind, with the reason if it is known.
    fn describe(&self) -> String {
        match (self.failure)() {
            Some(failure) => format!("{}: {failure}", self.resource),
            None => format!("{}: its list is not complete", self.resource),
        }
    }
}

/// The tasks of a controller; dropping them ends them.
pub(crate) struct Tasks {
    sources: Vec<AbortOnDropHandle<()>>,
    workers: Vec<AbortOnDropHandle<()>>,
    /// What works for the workers, and is told when they have ended.
    helpers: Vec<(AbortOnDropHandle<()>, DropGuard)>,
}

impl Tasks {
    /// Waits until the workers have ended, and then what works for them; ends the sources at once.
    pub(crate) async fn ended(self) {
        drop(self.sources);
        // A panic was reported by the task itself.
        join_all(self.workers).await;
        let (helpers, guards): (Vec<_>, Vec<_>) = self.helpers.into_iter().unzip();
        drop(guards);
        join_all(helpers).await;
    }

    /// Tasks that end by themselves once they are asked to.
    pub(crate) fn of(tasks: impl IntoIterator<Item = JoinHandle<()>>) -> Self {
        let workers = tasks.into_iter().map(AbortOnDropHandle::new).collect();
        Self { sources: Vec::new(), workers, helpers: Vec::new() }
    }

    /// Runs one more; an error ends the manager.
    #[cfg(feature = "webhook")]
    pub(crate) fn add(
        &mut self,
        task: String,
        work: impl Future<Output = Result<(), Error>> + Send + 'static,
        failed: &mpsc::Sender<Error>,
    ) {
        let ended = failed.clone();
        let work = async move {
            if let Err(error) = work.await {
                // A full channel means that another failure ends the manager already.
                let _ = ended.try_send(error);
            }
        };
        self.workers.push(spawn(task, work, failed.clone()));
    }

    fn aborts(&self) -> impl Iterator<Item = AbortHandle> {
        let helpers = self.helpers.iter().map(|(helper, _)| helper);
        self.workers.iter().chain(helpers).map(AbortOnDropHandle::abort_handle)
    }
}

impl Runner {
    pub(crate) fn new(
        worker: Worker,
        concurrency: usize,
        open: Arc<AtomicBool>,
        connected: Vec<Connected>,
        streams: Vec<BoxStream<'static, Key>>,
        failed: mpsc::Sender<Error>,
        stop: CancellationToken,
    ) -> Self {
        let in_namespaces = NamespaceGate::kinds(&connected);
        let (mut synced, mut waited, mut replays) = (Vec::new(), Vec::new(), Vec::new());
        for Connected { cache, replay, .. } in connected {
            let (wait, filled) = WaitsFor::of(cache);
            synced.push(filled);
            waited.push(wait);
            replays.extend(replay);
        }
        let (controller, waits): (_, Arc<[_]>) = (worker.context.controller().to_owned(), waited.into());
        let synced = report_missing_kinds(controller, waits.clone(), join_all(synced)).boxed().shared();
        let replays = replays.into();
        let streams = streams.into_iter().map(|stream| Arc::new(Mutex::new(stream.fuse().boxed()))).collect();
        let (resync, cache_sync_timeout, events, namespaces) = (None, None, None, None);
        Self {
            worker,
            concurrency,
            open,
            synced,
            replays,
            resync,
            waits,
            cache_sync_timeout,
            events,
            streams,
            in_namespaces,
            namespaces,
            failed,
            stop,
        }
    }

    /// What delivers all that is known.
    pub(crate) fn replays(&self) -> Arc<[Replay]> {
        self.replays.clone()
    }

    /// Delivers everything once more each time this long has passed.
    pub(crate) fn resync(mut self, period: Option<Duration>) -> Self {
        self.resync = period;
        self
    }

    /// Fails when the caches are not filled after this time.
    pub(crate) fn cache_sync_timeout(mut self, limit: Option<Duration>) -> Self {
        self.cache_sync_timeout = limit;
        self
    }

    /// Writes by this one what its reconciles tell.
    pub(crate) fn writing_events(mut self, writer: EventWriter) -> Self {
        self.events = Some(writer);
        self
    }

    /// Follows namespaces that come and go, where there are any.
    pub(crate) fn following(mut self, namespaces: Option<&Namespaces>, sink: &Sink) -> Self {
        let (kinds, name) = (std::mem::take(&mut self.in_namespaces), self.name().to_owned());
        let (replays, failed, stop) = (self.replays(), &self.failed, &self.stop);
        self.namespaces = NamespaceGate::follow(namespaces, kinds, name, sink, replays, failed, stop);
        self
    }

    /// Starts the sources, and the workers, which wait for the caches first.
    pub(crate) fn start(&self) -> Tasks {
        let sources = self.streams.iter().map(|stream| {
            let (stream, queue) = (stream.clone(), self.worker.queue.clone());
            let drain = async move { source::drain(&mut *stream.lock().await, &queue).await };
            spawn(format!("a source of {}", self.name()), drain, self.failed.clone())
        });
        let resync = self.resync.map(|period| {
            let (replays, context) = (self.replays.clone(), self.worker.context.clone());
            let resync = async move {
                loop {
                    tokio::time::sleep(Jitter(0.1).of(period, &context.world().dice)).await;
                    replays.iter().for_each(|replay| replay(&|_| true));
                    context.dynamic_watches().replay(&|_| true);
                }
            };
            spawn(format!("the resync of {}", self.name()), resync, self.failed.clone())
        });
        let sync = self.cache_sync_timeout.map(|limit| self.start_sync_timeout(limit));
        let workers = (0..self.concurrency).map(|_| {
            let (synced, worker) = (self.synced.clone(), self.worker.clone());
            let stop = self.stop.clone();
            let work = async move {
                tokio::select! {
                    biased;
                    // First, as caches that were never filled wait no longer either.
                    () = stop.cancelled() => return,
                    () = synced => {}
                }
                worker.run().await;
            };
            spawn(format!("a worker of {}", self.name()), work, self.failed.clone())
        });
        let helpers = self.events.iter().map(|writer| self.start_writing(writer)).collect();
        Tasks { sources: sources.chain(resync).chain(sync).collect(), workers: workers.collect(), helpers }
    }

    fn start_sync_timeout(&self, limit: Duration) -> AbortOnDropHandle<()> {
        let (synced, waits) = (self.synced.clone(), self.waits.clone());
        let (controller, failed) = (self.name().to_owned(), self.failed.clone());
        let task = format!("the cache sync of {controller}");
        let wait = async move {
            if tokio::time::timeout(limit, synced).await.is_err() {
                let kinds = waits.iter().filter(|kind| !(kind.is_ready)()).map(WaitsFor::describe).collect();
                // A full channel means that another failure ends the manager already.
                let _ = failed.try_send(Error::CacheSync { controller, limit, kinds });
            }
        };
        spawn(task, wait, self.failed.clone())
    }

    fn start_writing(&self, writer: &EventWriter) -> (AbortOnDropHandle<()>, DropGuard) {
        let (ended, context) = (CancellationToken::new(), self.worker.context.clone());
        let failed = move |reason: &str, error: &Error, again: bool| context.lost_event(reason, error, again);
        let writing = writer.write_all(self.worker.context.events(), ended.clone(), failed);
        (spawn(format!("the events of {}", self.name()), writing, self.failed.clone()), ended.drop_guard())
    }

    /// Lets nothing more in; workers end when they have done what is due.
    pub(crate) fn shut_down(&self) {
        self.worker.queue.shut_down();
    }

    fn name(&self) -> &str {
        self.worker.context.controller()
    }

    fn replay(&self, accepts: &dyn Fn(&Key) -> bool) {
        self.replays.iter().for_each(|replay| replay(accepts));
        self.worker.context.dynamic_watches().replay(accepts);
    }
}

/// What runs beside controllers, once caches are filled.
pub(crate) struct Extras {
    extras: Vec<Extra>,
    caches: Vec<Cache>,
    failed: mpsc::Sender<Error>,
}

impl Extras {
    pub(crate) fn new(extras: Vec<Extra>, caches: Vec<Cache>, failed: mpsc::Sender<Error>) -> Self {
        Self { extras, caches, failed }
    }

    /// Starts them; they are asked to end by `stop`.
    pub(crate) fn start(&self, stop: &CancellationToken) -> Tasks {
        let workers = self.extras.iter().map(|extra| {
            let (extra, caches) = (extra.clone(), self.caches.clone());
            let (failed, stop) = (self.failed.clone(), stop.clone());
            let name = extra.name.clone();
            let work = async move {
                let filled = join_all(caches.iter().map(Cache::synced));
                if stop.run_until_cancelled(filled).await.is_none() {
                    return;
                }
                if let Err(error) = extra.work.run(stop).await {
                    tracing::error!(name = extra.name, %error, "ends the manager");
                    // A full channel means that another failure ends the manager already.
                    let _ = failed.try_send(error);
                }
            };
            spawn(name, work, self.failed.clone())
        });
        Tasks { sources: Vec::new(), workers: workers.collect(), helpers: Vec::new() }
    }
}

/// Waits for `synced`, and names what is still missing after ten seconds and now and then.
pub(crate) async fn report_missing_kinds(
    controller: String,
    waits_for: Arc<[WaitsFor]>,
    synced: impl Future<Output = Vec<()>>,
) {
    let mut synced = pin!(synced);
    let (mut waits, mut pause) = (Duration::ZERO, FIRST_REPORT);
    loop {
        tokio::select! {
            biased;
            _ = &mut synced => return,
            () = tokio::time::sleep(pause) => {}
        }
        waits += pause;
        pause = REPORT_EVERY;
        let missing: Vec<_> =
            waits_for.iter().filter(|kind| !(kind.is_ready)()).map(|kind| &kind.resource).collect();
        tracing::warn!(%controller, ?missing, ?waits, "does not work yet: it waits for the first list of these kinds");
    }
}

/// Works for a term: with all that is there when it begins, until it ends. With `keys`, on those keys that are this
/// replica's.
pub(crate) async fn serve(runners: Arc<[Runner]>, extras: Arc<Extras>, keys: Option<Arc<Keys>>, term: Term) {
    for runner in runners.iter() {
        runner.open.store(true, Ordering::SeqCst);
        runner.replay(&|key| keys.as_ref().is_none_or(|keys| keys.is_mine(key)));
    }
    let stop = CancellationToken::new();
    let _stop_on_drop = stop.clone().drop_guard();
    let mut tasks: Vec<Tasks> = runners.iter().map(Runner::start).collect();
    tasks.push(extras.start(&stop));
    tokio::select! {
        biased;
        () = term.stopped() => {}
        () = replay_gains(&runners, keys.as_deref()) => {}
    }
    stop.cancel();
    if !term.is_lost() {
        runners.iter().for_each(Runner::shut_down);
    }
    let aborts: Vec<_> = tasks.iter().flat_map(Tasks::aborts).collect();
    let mut ended = pin!(join_all(tasks.into_iter().map(Tasks::ended)));
    tokio::select! {
        biased;
        () = term.lost() => {}
        _ = &mut ended => return,
    }
    for runner in runners.iter() {
        runner.open.store(false, Ordering::SeqCst);
    }
    aborts.iter().for_each(AbortHandle::abort);
    ended.await;
    runners.iter().for_each(|runner| runner.worker.queue.clear());
}

/// Delivers what is there for keys that become this replica's.
async fn replay_gains(runners: &[Runner], keys: Option<&Keys>) {
    let Some(keys) = keys else { return std::future::pending().await };
    loop {
        let gain = keys.gained().await;
        runners.iter().for_each(|runner| runner.replay(&|key| keys.is_gained(&gain, key)));
    }
}

/// Runs `future` in a task of its own that ends with the handle; a panic is reported to `failed`.
pub(crate) fn spawn(
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
