//! Probes as event sources: what can only be found out by asking, again and again, reaches the reconciler like an event.
//!
//! A reconcile says what is to be asked for its key ([`Probes::observe`]); each key is asked in a task of its own, so that
//! one that hangs holds up no other, with a timeout and a jitter. When the answer changes the key is reconciled, and
//! the reconcile reads the answer ([`Probes::report`]) and may show it as a condition ([`Report::condition`]).
//!
//! ```
//! use std::time::Duration;
//! use http::Uri;
//! use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reconciler, World};
//! use kubewright_runtime::{probes::{HttpGet, Probes}, sources::{Every, Jitter}};
//! # use k8s_openapi::api::core::v1::ConfigMap;
//!
//! struct Shop {
//!     probes: Probes<Uri>,
//! }
//!
//! impl Reconciler for Shop {
//!     async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
//!         let Some(shop) = ctx.get::<ConfigMap>(key) else {
//!             self.probes.forget(key);
//!             return Ok(Outcome::Done);
//!         };
//!         self.probes.observe(key, Uri::from_static("http://shop.default.svc/healthz"));
//!         if let Some(report) = self.probes.report(key) {
//!             ctx.set_condition(&*shop, &report.condition("Answers").of(&*shop)).await?;
//!         }
//!         Ok(Outcome::Done)
//!     }
//! }
//!
//! # fn example(world: &World) {
//! let asking = HttpGet::default();
//! let every = Every::new(Duration::from_secs(30)).jitter(Jitter(0.1));
//! let probes = Probes::new(world, every, Duration::from_secs(5), move |uri| asking.get(uri));
//! let controller = Controller::new("shop", Shop { probes: probes.clone() })
//!     .for_kind::<ConfigMap>()
//!     .source(probes.keys());
//! # }
//! ```

#[cfg(feature = "exec")]
mod exec;
mod http_get;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    panic::AssertUnwindSafe,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::{FutureExt, Stream, future::BoxFuture, stream};
use jiff::Timestamp;
use kubewright_world::World;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

#[cfg(feature = "exec")]
pub use self::exec::{Command, Exec};
pub use self::http_get::HttpGet;
use crate::{Key, conditions::NewCondition, sources::Every};

/// What a probe found: that all is well, or that it is not; with a text for people.
pub type ProbeResult = Result<String, String>;

/// What [`ProbeResult`] was called.
#[deprecated(since = "0.1.0", note = "is called `ProbeResult`")]
pub type Finding = ProbeResult;

/// Asks for keys, again and again; a clone is the same one. `T` says what is to be asked. Asking ends when the last clone
/// outside of the tasks is gone.
pub struct Probes<T>(Arc<Inner<T>>);

struct Inner<T> {
    world: World,
    every: Every,
    timeout: Duration,
    ask: Box<dyn Fn(T) -> BoxFuture<'static, ProbeResult> + Send + Sync>,
    board: Mutex<BTreeMap<Key, Observed<T>>>,
    /// The keys whose reports changed since they were told of.
    changed: Mutex<BTreeSet<Key>>,
    notify: Notify,
}

struct Observed<T> {
    target: T,
    report: Option<Report>,
    _task: AbortOnDropHandle<()>,
}

/// Report of the probes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The last result.
    pub result: ProbeResult,
    /// Since when it is well, or not.
    pub since: Timestamp,
}

impl Report {
    /// Whether all is well.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.result.is_ok()
    }

    /// As a condition of this type: true when all is well.
    #[must_use]
    pub fn condition(&self, type_: &str) -> NewCondition {
        let (reason, message) = match &self.result {
            Ok(text) => ("ProbeSucceeded", text),
            Err(text) => ("ProbeFailed", text),
        };
        NewCondition::new(type_, self.is_well().into(), reason).message(message)
    }
}

impl<T> Clone for Probes<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Clone + PartialEq + Send + 'static> Probes<T> {
    /// Probes that call `ask` for each key, `every` so often, the first time at once. What takes longer than `timeout` is
    /// dropped and not well; so is what panics.
    #[must_use]
    pub fn new<F>(
        world: &World,
        every: Every,
        timeout: Duration,
        ask: impl Fn(T) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ProbeResult> + Send + 'static,
    {
        Self(Arc::new(Inner {
            world: world.clone(),
            every,
            timeout,
            ask: Box::new(move |target| ask(target).boxed()),
            board: Mutex::default(),
            changed: Mutex::default(),
            notify: Notify::new(),
        }))
    }

    /// Asks `target` for `key` from now on. When it is asked already nothing changes; another target begins anew. To be
    /// called in each reconcile of an object that lives.
    pub fn observe(&self, key: &Key, target: T) {
        let mut board = self.0.board.lock();
        if board.get(key).is_some_and(|observed| observed.target == target) {
            return;
        }
        let asking = ask_for_ever(Arc::downgrade(&self.0), key.clone(), target.clone());
        let task = AbortOnDropHandle::new(tokio::spawn(asking));
        board.insert(key.clone(), Observed { target, report: None, _task: task });
    }

    /// Asks for `key` no more. To be called when its object is gone.
    pub fn forget(&self, key: &Key) {
        self.0.board.lock().remove(key);
        self.0.changed.lock().remove(key);
    }

    /// What is known of `key`; `None` before the first answer.
    #[must_use]
    pub fn report(&self, key: &Key) -> Option<Report> {
        self.0.board.lock().get(key)?.report.clone()
    }

    /// The source: each key whose result changed.
    pub fn keys(&self) -> impl Stream<Item = Key> + Send + 'static {
        stream::unfold(self.clone(), |probes| async move {
            loop {
                let next = probes.0.changed.lock().pop_first();
                match next {
                    Some(key) => return Some((key, probes)),
                    None => probes.0.notify.notified().await,
                }
            }
        })
    }
}

impl<T> Inner<T> {
    fn note(&self, key: &Key, result: ProbeResult) {
        let mut board = self.board.lock();
        let Some(observed) = board.get_mut(key) else { return };
        let known = observed.report.as_ref();
        if known.is_some_and(|known| known.result == result) {
            return;
        }
        let same = known.filter(|known| known.is_well() == result.is_ok());
        let since = same.map_or_else(|| self.world.clock.now(), |known| known.since);
        observed.report = Some(Report { result, since });
        drop(board);
        self.changed.lock().insert(key.clone());
        self.notify.notify_one();
    }
}

async fn ask_for_ever<T: Clone>(probes: Weak<Inner<T>>, key: Key, target: T) {
    loop {
        let Some(inner) = probes.upgrade() else { return };
        let timeout = inner.timeout;
        let answer = AssertUnwindSafe((inner.ask)(target.clone())).catch_unwind();
        drop(inner);
        let result = match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err("the probe panicked".to_owned()),
            Err(_) => Err(format!("no answer within {timeout:?}")),
        };
        let Some(inner) = probes.upgrade() else { return };
        inner.note(&key, result);
        let pause = inner.every.pause(&inner.world.dice);
        drop(inner);
        tokio::time::sleep(pause).await;
    }
}

impl<T> fmt::Debug for Probes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probes").field("every", &self.0.every).finish_non_exhaustive()
    }
}
