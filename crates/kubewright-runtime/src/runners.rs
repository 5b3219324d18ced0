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
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    Cache, Error, Key,
    leader::Term,
    runnable::Extra,
    shard::Keys,
    source::{self, Connected, Replay},
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
    /// Read by one task at a time, but by another in every term.
    streams: Vec<Arc<Mutex<BoxStream<'static, Key>>>>,
    failed: mpsc::Sender<Error>,
    stop: CancellationToken,
}

/// The tasks of a controller; dropping them ends them.
pub(crate) struct Tasks {
    sources: Vec<AbortOnDropHandle<()>>,
    workers: Vec<AbortOnDropHandle<()>>,
}

impl Tasks {
    /// Waits until the workers have ended, and ends the sources at once.
    pub(crate) async fn ended(self) {
        drop(self.sources);
        // A panic was reported by the task itself.
        join_all(self.workers).await;
    }

    /// Tasks that end by themselves once they are asked to.
    pub(crate) fn of(tasks: impl IntoIterator<Item = JoinHandle<()>>) -> Self {
        let workers = tasks.into_iter().map(AbortOnDropHandle::new).collect();
        Self { sources: Vec::new(), workers }
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
        self.workers.iter().map(AbortOnDropHandle::abort_handle)
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
        let (mut synced, mut waited, mut replays) = (Vec::new(), Vec::new(), Vec::new());
        for kind in connected {
            synced.push(kind.synced);
            waited.push((kind.resource, kind.is_ready));
            replays.extend(kind.replay);
        }
        let controller = worker.context.controller().to_owned();
        let synced = report_missing_kinds(controller, waited, join_all(synced)).boxed().shared();
        let replays = replays.into();
        let streams = streams.into_iter().map(|stream| Arc::new(Mutex::new(stream.fuse().boxed()))).collect();
        Self { worker, concurrency, open, synced, replays, resync: None, streams, failed, stop }
    }

    /// Delivers everything once more each time this long has passed.
    pub(crate) fn resync(mut self, period: Option<Duration>) -> Self {
        self.resync = period;
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
        Tasks { sources: sources.chain(resync).collect(), workers: workers.collect() }
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
        Tasks { sources: Vec::new(), workers: workers.collect() }
    }
}

/// Whether a kind that is waited for is there.
type IsReady = Box<dyn Fn() -> bool + Send + Sync>;

/// Waits for `synced`, and names what is still missing after ten seconds and now and then.
async fn report_missing_kinds(
    controller: String,
    waited: Vec<(String, IsReady)>,
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
            waited.iter().filter(|(_, is_ready)| !is_ready()).map(|(name, _)| name).collect();
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
