//! Where that is computed which may take long: beside the threads that serve sockets, and only so much of it at once.
//!
//! A future that computes for seconds keeps the thread that polls it. Were that one of those that serve sockets, nobody's
//! requests would be read meanwhile, and no time-out could end it. So such work is a task of its own. It waits for a place, and
//! each of its turns leaves the thread's other tasks to another thread (`tokio::task::block_in_place`). Whoever waits for it stays
//! where sockets are served: a time-out is answered when it is due, and the work ends at its next turn. What is short has places of
//! its own, so that it never waits for what is long, and so has what must not wait for others.
//!
//! A runtime of one thread (a simulation, a server whose time is in somebody's hand, one with a seed) has no other thread: there
//! everything is computed where it is asked for, in one order, and nothing of what happens is decided by threads.

use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::Stream;
use kubewright_meta::ApiError;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinError, block_in_place};
use tokio_util::sync::PollSemaphore;
use tokio_util::task::AbortOnDropHandle;

use super::response_body::CutOff;
use crate::origin::carried;

/// How long a piece of work may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// No longer than it takes to find another thread for it.
    Moment,
    /// Some milliseconds: what walks over many objects, or makes one piece of an answer of them.
    Short,
    /// What a client decides: the work on a large body or object, or on all of a collection at once.
    Long,
    /// However long it is, it waits for nobody else's: an administrator's, and what is vital (`in_flight`).
    Urgent,
}

/// The places for work that may take long.
#[derive(Debug)]
pub(super) struct Places {
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
    urgent: Arc<Semaphore>,
    any: bool,
}

impl Places {
    /// So many for short and so many for long work; with 0 everything is computed where it is asked for.
    pub(super) fn new(most: usize) -> Self {
        let places = || Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self { short: places(), long: places(), urgent: places(), any: most > 0 }
    }

    /// The places for work of that length, where it is not to be done on the spot.
    fn of(&self, length: Length) -> Option<PollSemaphore> {
        let places = match length {
            Length::Moment => return None,
            Length::Short => &self.short,
            Length::Long => &self.long,
            Length::Urgent => &self.urgent,
        };
        let has_threads = || Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
        (self.any && has_threads()).then(|| PollSemaphore::new(Arc::clone(places)))
    }

    /// Does the work. When this is dropped, the work ends at its next turn.
    ///
    /// # Errors
    /// 500 when the runtime ends before the work.
    ///
    /// # Panics
    /// When the work does.
    pub(super) async fn run<F>(&self, length: Length, work: F) -> Result<F::Output, ApiError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let Some(places) = self.of(length) else { return Ok(work.await) };
        let turns = Turns { places, work: Box::pin(carried(work)) };
        output(AbortOnDropHandle::new(tokio::spawn(turns)).await)
    }

    /// Does the work to its end, even when this is dropped: what is committed has consequences that nobody else would see to.
    ///
    /// # Errors
    /// As [`Self::run`].
    ///
    /// # Panics
    /// When the work does.
    pub(super) async fn finish<F>(&self, length: Length, work: F) -> Result<F::Output, ApiError>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let work = carried(work);
        output(match self.of(length) {
            Some(places) => tokio::spawn(Turns { places, work: Box::pin(work) }).await,
            None => tokio::spawn(work).await,
        })
    }

    /// The pieces of an answer, each made in a place for short work: one is ready before it is asked for. The stream ends with an
    /// error when the making does not come to its end.
    pub(super) fn pieces<I>(
        &self,
        mut pieces: I,
    ) -> Result<impl Stream<Item = Result<I::Item, CutOff>> + Send + use<I>, I>
    where
        I: Iterator<Item: Send> + Send + 'static,
    {
        let Some(mut places) = self.of(Length::Short) else { return Err(pieces) };
        let (sender, mut receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Ok(room) = sender.reserve().await {
                let place = std::future::poll_fn(|context| places.poll_acquire(context)).await;
                let piece = block_in_place(|| pieces.next());
                drop(place);
                let is_end = piece.is_none();
                room.send(piece);
                if is_end {
                    return;
                }
            }
        });
        let mut ended = false;
        Ok(futures::stream::poll_fn(move |context| {
            if ended {
                return Poll::Ready(None);
            }
            let piece = ready!(receiver.poll_recv(context));
            ended = !matches!(piece, Some(Some(_)));
            // Who makes it says when there is no more; that nobody says so any more is no end.
            Poll::Ready(piece.map_or(Some(Err(CutOff)), |piece| piece.map(Ok)))
        }))
    }
}

/// What a task came to.
fn output<T>(ended: Result<T, JoinError>) -> Result<T, ApiError> {
    ended.map_err(|ended| match ended.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => ApiError::internal("the server is stopping"),
    })
}

/// Work each of whose turns takes a place. One that waits for something else has none.
struct Turns<F> {
    places: PollSemaphore,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for Turns<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let place = ready!(self.places.poll_acquire(context));
        let polled = block_in_place(|| self.work.as_mut().poll(context));
        drop(place);
        polled
    }
}
