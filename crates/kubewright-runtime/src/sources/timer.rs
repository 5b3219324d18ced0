//! Keys that come by the clock.

use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use kubewright_world::{Dice, World};

use crate::Key;

/// Jitter of a timer: how much of a time is left to chance, as a part of it: 0.1 is give or take a tenth. So many timers that began together
/// do not stay together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter(pub f64);

impl Jitter {
    /// `time`, give or take.
    #[must_use]
    pub fn of(self, time: Duration, dice: &Dice) -> Duration {
        let part = if self.0.is_finite() { self.0.clamp(0.0, 1.0) } else { 0.0 };
        if part == 0.0 { time } else { time.mul_f64(1.0 + part * (2.0 * dice.fraction() - 1.0)) }
    }
}

/// A timer: each time `period` has passed, give or take, the keys that a function names.
///
/// ```
/// use std::time::Duration;
/// use kubewright_runtime::{Controller, Key, World, sources::{Every, Jitter}};
/// # use kubewright_runtime::{Context, Error, Outcome, Reconciler};
/// # struct Backup;
/// # impl Reconciler for Backup {
/// #     async fn reconcile(&self, _: &Context, _: &Key) -> Result<Outcome, Error> { Ok(Outcome::Done) }
/// # }
/// # fn example(world: &World) {
/// let nightly = Every::new(Duration::from_secs(24 * 3600)).jitter(Jitter(0.05));
/// let controller = Controller::new("backup", Backup)
///     .source(nightly.keys(world, || vec![Key::namespaced("default", "all")]));
/// # }
/// ```
///
/// What one object is to be looked at again for is better said by its reconcile
/// ([`Outcome::RequeueAfter`](crate::Outcome::RequeueAfter)), and everything at once by
/// [`Controller::resync`](crate::Controller::resync).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Every {
    period: Duration,
    jitter: Jitter,
    at_once: bool,
}

impl Every {
    /// Every `period`, of a millisecond at least; the first time after one.
    #[must_use]
    pub fn new(period: Duration) -> Self {
        Self { period: period.max(Duration::from_millis(1)), jitter: Jitter::default(), at_once: false }
    }

    /// Leaves a part of each period to chance.
    #[must_use]
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// The first time at once.
    #[must_use]
    pub fn at_once(mut self) -> Self {
        self.at_once = true;
        self
    }

    /// How long to wait this time.
    pub(crate) fn pause(self, dice: &Dice) -> Duration {
        self.jitter.of(self.period, dice)
    }

    /// The source. Periods that pass while the controller does not work are left out, not made up for.
    pub fn keys(
        self,
        world: &World,
        mut keys: impl FnMut() -> Vec<Key> + Send + 'static,
    ) -> impl Stream<Item = Key> + Send + 'static {
        let dice = world.dice.clone();
        let ticks = stream::unfold(self.at_once, move |at_once| {
            let pause = if at_once { Duration::ZERO } else { self.pause(&dice) };
            async move {
                tokio::time::sleep(pause).await;
                Some(((), false))
            }
        });
        ticks.flat_map(move |()| stream::iter(keys()))
    }
}
