//! Time that does not pass.
//!
//! A paused clock of tokio jumps to the next timer whenever its runtime has nothing to do, be it that somebody outside is
//! about to answer. It does not while a blocking task is under way (`tokio::time::pause`, "Preventing auto-advance"): a
//! thread that only waits is what makes time stand still. Being a thread, it also measures the machine's time.

use std::convert::Infallible;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use tokio::task::JoinHandle;

/// There was no answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there was no answer in time")]
pub struct TooLong;

/// While this is kept, a paused clock stands still.
pub(crate) struct Standstill {
    over: JoinHandle<()>,
    /// Nothing is ever sent: that it is gone tells the thread to end.
    _kept: Sender<Infallible>,
}

impl Standstill {
    /// From now on, for at most `longest` of the machine's time.
    #[expect(clippy::disallowed_methods, reason = "it only waits; nothing of the cluster runs on it")]
    pub(crate) fn begin(longest: Option<Duration>) -> Self {
        let (kept, gone) = channel::<Infallible>();
        let over = tokio::task::spawn_blocking(move || {
            // Both end with an error: after that time, or when the sender is gone.
            match longest {
                Some(longest) => drop(gone.recv_timeout(longest)),
                None => drop(gone.recv()),
            }
        });
        Self { over, _kept: kept }
    }

    /// Waits until its time is over.
    pub(crate) async fn over(&mut self) {
        // A thread that did not start is over too.
        let _ = (&mut self.over).await;
    }
}

/// Waits for an answer for at most `longest` of the machine's time, while a paused clock stands still.
pub(crate) async fn wait<F: Future>(longest: Duration, answer: F) -> Result<F::Output, TooLong> {
    let mut standstill = Standstill::begin(Some(longest));
    tokio::select! {
        biased;
        answer = answer => Ok(answer),
        () = standstill.over() => Err(TooLong),
    }
}
