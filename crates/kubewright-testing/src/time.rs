//! Cluster time, in the test's hand.

use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use tokio::time::Instant;

use crate::Cluster;

/// How much cluster time [`Cluster::eventually`] gives.
const PATIENCE: Duration = Duration::from_secs(60);
/// What whoever is due at a moment gets to do what it does without waiting.
const MOMENT: Duration = Duration::from_millis(1);
/// The shortest time between two looks.
const STEP: Duration = Duration::from_millis(10);

/// What a condition says: `bool`, or the thing that is waited for as an `Option`, or a `Result` whose error is told.
pub trait Answer {
    /// What there is once it holds.
    type Thing;

    /// What there is.
    ///
    /// # Errors
    /// Why it does not hold, as far as that is known.
    fn thing(self) -> Result<Self::Thing, String>;
}

impl Answer for bool {
    type Thing = ();

    fn thing(self) -> Result<(), String> {
        if self { Ok(()) } else { Err("it is false".to_owned()) }
    }
}

impl<T> Answer for Option<T> {
    type Thing = T;

    fn thing(self) -> Result<T, String> {
        self.ok_or_else(|| "there is none".to_owned())
    }
}

impl<T, E: std::fmt::Display> Answer for Result<T, E> {
    type Thing = T;

    fn thing(self) -> Result<T, String> {
        self.map_err(|error| error.to_string())
    }
}

impl Cluster {
    /// Lets so much cluster time pass, and what falls due in it happen, in its order. When it returns, whoever was due at
    /// the end has done what it does without waiting for something else.
    pub async fn advance(&self, by: Duration) {
        tokio::time::sleep(by).await;
        tokio::time::sleep(MOMENT).await;
    }

    /// Lets time pass until a condition holds, for at most `within`; gives what it is about.
    ///
    /// # Panics
    /// When it does not hold by then.
    #[track_caller]
    pub fn run_until<A, F>(
        &self,
        condition: impl FnMut(Self) -> F,
        within: Duration,
    ) -> impl Future<Output = A::Thing>
    where
        A: Answer,
        F: Future<Output = A>,
    {
        self.look(condition, within, Location::caller())
    }

    /// As [`Self::run_until`], within a minute.
    ///
    /// # Panics
    /// When it does not hold by then.
    #[track_caller]
    pub fn eventually<A, F>(&self, condition: impl FnMut(Self) -> F) -> impl Future<Output = A::Thing>
    where
        A: Answer,
        F: Future<Output = A>,
    {
        self.look(condition, PATIENCE, Location::caller())
    }

    async fn look<A, F>(
        &self,
        mut condition: impl FnMut(Self) -> F,
        within: Duration,
        asked: &'static Location<'static>,
    ) -> A::Thing
    where
        A: Answer,
        F: Future<Output = A>,
    {
        let (start, end) = (Instant::now(), Instant::now() + within);
        loop {
            let why = match condition(self.clone()).await.thing() {
                Ok(thing) => return thing,
                Err(why) => why,
            };
            if Instant::now() >= end {
                panic!("{asked}: not within {within:?}: {why}");
            }
            // Who waits for long need not know to the moment.
            let gap = STEP.max(start.elapsed() / 100);
            tokio::time::sleep_until((Instant::now() + gap).min(end)).await;
        }
    }
}
