//! A clock in somebody's hand: cluster time that starts where they like, passes faster or slower than the machine's, or
//! only when they say so, while clients are served over sockets.
//!
//! The server runs on one thread under tokio's paused clock, so everything in it that waits, waits in cluster time. A task,
//! the pacer, makes time [stand still](crate::standstill) and lets it pass in pieces: of a few milliseconds at a speed,
//! or of what somebody asks for. While it passes, the runtime jumps from timer to timer whenever it has nothing else to do:
//! what falls due in a day happens in its order, each at its own time, and none of it waits for the machine.

#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::Clock;
use crate::standstill::Standstill;

/// How long time stands still between two pieces of it, at a speed.
const TICK: Duration = Duration::from_millis(5);
/// The fastest: a day in a second or so, so that a piece stays a piece.
const FASTEST: f64 = 100_000.0;

/// Pacing of cluster time: when it starts and how it passes, as `2030-01-01T00:00:00Z,speed=60` says it: a start, a speed, or both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// What time it is at first; the machine's time without.
    pub start: Option<Timestamp>,
    /// How many seconds pass in one of the machine's. With 0 time passes only when it is [told to](Pacer::advance).
    speed: f64,
}

/// A text that says no pacing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0}: give a start such as 2030-01-01T00:00:00Z, a speed such as speed=60 (0 to 100000; 0: time stands still), or both with a comma"
)]
pub struct BadPacing(String);

impl FromStr for Pacing {
    type Err = BadPacing;

    fn from_str(text: &str) -> Result<Self, BadPacing> {
        let (mut start, mut speed) = (None, None);
        for part in text.split(',').map(str::trim) {
            match part.strip_prefix("speed=") {
                Some(number) if speed.is_none() => speed = Some(read_speed(number)?),
                Some(_) => return Err(BadPacing(format!("{text:?} has two speeds"))),
                None if start.is_none() => {
                    let why = |error| BadPacing(format!("{part:?} is no time in RFC 3339 ({error})"));
                    start = Some(part.parse().map_err(why)?);
                }
                None => return Err(BadPacing(format!("{text:?} has two starts"))),
            }
        }
        Ok(Self { start, speed: speed.unwrap_or(1.0) })
    }
}

fn read_speed(text: &str) -> Result<f64, BadPacing> {
    let refused = || BadPacing(format!("{text:?} is no speed"));
    let speed: f64 = text.parse().map_err(|_| refused())?;
    if (0.0..=FASTEST).contains(&speed) { Ok(speed) } else { Err(refused()) }
}

impl Pacing {
    /// A runtime whose clock can be paced.
    ///
    /// # Errors
    /// When the system does not give what a runtime needs.
    pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()
    }

    /// Starts to pace the clock of this [runtime](Self::runtime), until `stop`. From then on time passes as fast as the
    /// machine's, so that what is to end within some seconds does.
    ///
    /// # Panics
    /// Outside a tokio runtime, or in one whose clock is not paused.
    #[must_use]
    pub fn begin(self, stop: impl Future<Output = ()> + Send + 'static) -> (Clock, Pacer) {
        let clock = Clock::paced(self.start.unwrap_or_else(|| Clock::system().now()));
        let (pacer, requests) = mpsc::unbounded_channel();
        // Before the runtime can ever be idle.
        let standstill = Standstill::begin(self.piece());
        tokio::spawn(pace(self, standstill, requests, stop));
        (clock, Pacer(pacer))
    }

    /// How long time stands still at a stretch.
    fn piece(self) -> Option<Duration> {
        (self.speed > 0.0).then_some(TICK)
    }
}

/// Lets the time of a paced clock pass; clones are of the same clock.
#[derive(Clone, Debug)]
pub struct Pacer(mpsc::UnboundedSender<Request>);

/// The clock is not paced any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cluster is ending")]
pub struct Ended;

#[derive(Debug)]
struct Request {
    by: Duration,
    done: oneshot::Sender<()>,
}

impl Pacer {
    /// Lets so much time pass at once. When this returns, everything in this process that fell due in it has happened, in
    /// its order and with all that came of it here; what programs outside do about it takes them their own time. Calls
    /// at the same time are one after the other.
    ///
    /// # Errors
    /// When the clock is not paced any more.
    pub async fn advance(&self, by: Duration) -> Result<(), Ended> {
        let (done, is_done) = oneshot::channel();
        self.0.send(Request { by, done }).map_err(|_| Ended)?;
        is_done.await.map_err(|_| Ended)
    }
}

async fn pace(
    pacing: Pacing,
    mut standstill: Standstill,
    mut requests: mpsc::UnboundedReceiver<Request>,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    // Timers are exact to a millisecond; what is still to pass is not.
    let mut until = Instant::now();
    let mut machine = machine_time();
    loop {
        let asked = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(request) = requests.recv() => Some(request),
            () = standstill.over(), if pacing.piece().is_some() => None,
        };
        drop(standstill);
        let now = machine_time();
        until += now.duration_since(machine).mul_f64(pacing.speed);
        machine = now;
        until += asked.as_ref().map_or(Duration::ZERO, |request| request.by);
        let passed = async {
            tokio::time::sleep_until(until).await;
            if asked.is_some() {
                // The next millisecond comes when all that fell due in this one is done and nobody waits for an answer
                // from outside.
                tokio::time::sleep_until(until + Duration::from_nanos(1)).await;
            }
        };
        tokio::select! {
            biased;
            () = &mut stop => break,
            () = passed => {}
        }
        standstill = Standstill::begin(pacing.piece());
        if let Some(request) = asked {
            // Who does not wait any more does not need to know.
            let _ = request.done.send(());
            // What this has taken is not to be made up for.
            machine = machine_time();
        }
    }
    tokio::time::resume();
}

#[expect(clippy::disallowed_methods, reason = "how fast cluster time passes is measured by the machine's")]
fn machine_time() -> std::time::Instant {
    std::time::Instant::now()
}
