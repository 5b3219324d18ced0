//! Cluster time, in the test's hand.

use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use kubewright_cluster::journal::Journal;
use kubewright_store::Revision;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::Cluster;

/// How much cluster time [`Cluster::eventually`] gives.
const PATIENCE: Duration = Duration::from_secs(60);
/// What whoever is due at a moment gets to do what it does without waiting.
const MOMENT: Duration = Duration::from_millis(1);
/// The shortest time between two looks at what is no write.
const STEP: Duration = Duration::from_millis(10);

/// What a condition that a test waits for gives: `bool`, or the thing itself as an `Option`, or a `Result` whose error is shown.
pub trait ConditionResult {
    /// What there is once it holds.
    type Thing;

    /// What there is.
    ///
    /// # Errors
    /// Why it does not hold, as far as that is known.
    fn thing(self) -> Result<Self::Thing, String>;
}

impl ConditionResult for bool {
    type Thing = ();

    fn thing(self) -> Result<(), String> {
        if self { Ok(()) } else { Err("it is false".to_owned()) }
    }
}

impl<T> ConditionResult for Option<T> {
    type Thing = T;

    fn thing(self) -> Result<T, String> {
        self.ok_or_else(|| "there is none".to_owned())
    }
}

impl<T, E: std::fmt::Display> ConditionResult for Result<T, E> {
    type Thing = T;

    fn thing(self) -> Result<T, String> {
        self.map_err(|error| error.to_string())
    }
}

impl Cluster {
    /// Lets so much cluster time pass, and what falls due in it happen, in its order. When it returns, whoever was due at
    /// the end has done what it does without waiting for something else (which takes another millisecond).
    pub async fn advance(&self, by: Duration) {
        self.unless_looping(tokio::time::sleep(by)).await;
        tokio::time::sleep(MOMENT).await;
    }

    /// Lets time pass until a condition holds, for at most `within`; gives what it is about. It is looked at after every
    /// write, and now and then for what is no write.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # async fn example(cluster: kubewright_testing::Cluster) {
    /// let is_ready = async |cluster: kubewright_testing::Cluster| {
    ///     let status = cluster.get::<Deployment>("web").await.status?;
    ///     status.ready_replicas.filter(|ready| *ready == 3)
    /// };
    /// cluster.run_until(is_ready, Duration::from_mins(10)).await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// When it does not hold by then; with the histories of the objects that it looked at.
    #[track_caller]
    pub fn run_until<A, F>(
        &self,
        condition: impl FnMut(Self) -> F,
        within: Duration,
    ) -> impl Future<Output = A::Thing>
    where
        A: ConditionResult,
        F: Future<Output = A>,
    {
        self.unless_looping(self.wait(condition, within, Location::caller()))
    }

    /// As [`Self::run_until`], within a minute.
    ///
    /// # Panics
    /// When it does not hold by then.
    #[track_caller]
    pub fn eventually<A, F>(&self, condition: impl FnMut(Self) -> F) -> impl Future<Output = A::Thing>
    where
        A: ConditionResult,
        F: Future<Output = A>,
    {
        self.unless_looping(self.wait(condition, PATIENCE, Location::caller()))
    }

    /// Lets so much time pass, in which a condition has to hold all the while. It is looked at after every write, and now
    /// and then for what is no write.
    ///
    /// # Panics
    /// When it does not hold; with the histories of the objects that it looked at.
    #[track_caller]
    pub fn consistently<A, F>(
        &self,
        condition: impl FnMut(Self) -> F,
        lasting: Duration,
    ) -> impl Future<Output = ()>
    where
        A: ConditionResult,
        F: Future<Output = A>,
    {
        self.unless_looping(self.hold(condition, lasting, Location::caller()))
    }

    async fn wait<A, F>(
        &self,
        mut condition: impl FnMut(Self) -> F,
        within: Duration,
        caller: &'static Location<'static>,
    ) -> A::Thing
    where
        A: ConditionResult,
        F: Future<Output = A>,
    {
        let mut looks = Looks::begin(self, self.injector().patience(within));
        loop {
            let why = match looks.look(&mut condition).await {
                Ok(thing) => return thing,
                Err(why) => why,
            };
            if !looks.next().await {
                panic!("{caller}: not within {within:?}: {why}\n{}", self.looked_at_history());
            }
        }
    }

    async fn hold<A, F>(
        &self,
        mut condition: impl FnMut(Self) -> F,
        lasting: Duration,
        caller: &'static Location<'static>,
    ) where
        A: ConditionResult,
        F: Future<Output = A>,
    {
        let mut looks = Looks::begin(self, lasting);
        loop {
            if let Err(why) = looks.look(&mut condition).await {
                let held = looks.start.elapsed();
                panic!(
                    "{caller}: not for {lasting:?}, but for {held:?}: {why}\n{}",
                    self.looked_at_history()
                );
            }
            if !looks.next().await {
                return;
            }
        }
    }
}

/// Looks at a condition again and again.
struct Looks<'a> {
    cluster: &'a Cluster,
    writes: Option<watch::Receiver<Revision>>,
    start: Instant,
    end: Instant,
}

impl<'a> Looks<'a> {
    fn begin(cluster: &'a Cluster, lasting: Duration) -> Self {
        let start = Instant::now();
        Self {
            cluster,
            writes: cluster.simulated().and_then(|cluster| cluster.journal()).map(Journal::follow),
            start,
            end: start + lasting,
        }
    }

    async fn look<A, F>(&mut self, condition: &mut impl FnMut(Cluster) -> F) -> Result<A::Thing, String>
    where
        A: ConditionResult,
        F: Future<Output = A>,
    {
        if let Some(writes) = &mut self.writes {
            writes.mark_unchanged();
        }
        self.cluster.look_away();
        condition(self.cluster.clone()).await.thing()
    }

    /// Waits until it is worth to look again: somebody has written since, or some time has passed. Who waits for long need
    /// not know to the moment. `false` when the time is up.
    async fn next(&mut self) -> bool {
        let now = Instant::now();
        if now >= self.end {
            return false;
        }
        let next = (now + STEP.max(self.start.elapsed() / 20)).min(self.end);
        let written = async {
            if let Some(writes) = &mut self.writes
                && writes.changed().await.is_ok()
            {
                return;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = written => {}
            () = tokio::time::sleep_until(next) => {}
        }
        true
    }
}
