//! What is on its way to a client: how much of it there may be on one connection, and how long a client may leave it.
//!
//! hyper asks for a piece of an answer before it knows whether the client takes one, and keeps it until then. So no piece is
//! made that has no room on its connection, and it gives the room back when hyper has written it and drops it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::rt::Executor;
use kubewright_codec::rope::PIECE;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::PollSemaphore;

/// How much of a large piece is handed over at once: what a slow client takes counts as often.
const SLICE: usize = 64 * 1024;

/// How many bytes of all answers on a connection may wait for its client. A large piece counts
/// as what is free of three quarters, so that one that nobody takes does not stop the other answers.
#[derive(Clone, Debug)]
pub(super) struct Room {
    bytes: Arc<Semaphore>,
    /// What a piece has to find before it is made.
    piece: u32,
    /// What large pieces leave to others.
    left: usize,
}

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        let bytes = bytes.clamp(1, Semaphore::MAX_PERMITS);
        let piece = u32::try_from(bytes.min(PIECE)).unwrap_or(u32::MAX);
        Self { bytes: Arc::new(Semaphore::new(bytes)), piece, left: bytes / 4 }
    }

    /// Adds to what a piece has, now that it is known how large it is.
    fn widen(&self, room: &mut OwnedSemaphorePermit, length: usize) {
        let free = self.bytes.available_permits().saturating_sub(self.left);
        let lacks = length.saturating_sub(room.num_permits()).min(free);
        let lacks = u32::try_from(lacks).unwrap_or(u32::MAX);
        if let Ok(more) = Arc::clone(&self.bytes).try_acquire_many_owned(lacks) {
            room.merge(more);
        }
    }
}

/// What the client of one answer has still to take: of a stream of HTTP/2, or a connection of HTTP/1.1.
#[derive(Debug)]
struct Reader(Mutex<Waiting>);

#[derive(Debug)]
struct Waiting {
    /// Slices that hyper has not written yet.
    slices: usize,
    /// Whether hyper was given one and has not asked for the next. (What it has written may still be in a buffer of TLS.)
    is_given: bool,
    /// When the client took something, or the first of what waits was there.
    since: Instant,
    /// When the time of the answer that is sent is over, whether it waits for its client or for room.
    until: Option<Instant>,
}

impl Waiting {
    fn is_over(&self) -> bool {
        self.slices == 0 && !self.is_given
    }
}

impl Reader {
    fn new() -> Arc<Self> {
        let since = Instant::now();
        Arc::new(Self(Mutex::new(Waiting { slices: 0, is_given: false, since, until: None })))
    }

    fn given(&self) {
        let mut waiting = self.0.lock();
        if waiting.is_over() {
            waiting.since = Instant::now();
        }
        waiting.slices += 1;
        waiting.is_given = true;
    }

    fn took(&self) {
        let mut waiting = self.0.lock();
        waiting.slices -= 1;
        waiting.since = Instant::now();
    }

    /// It asks for the next, or there is none.
    fn asks(&self) {
        self.0.lock().is_given = false;
    }

    /// The answer is sent, or given up.
    fn ends(&self) {
        let mut waiting = self.0.lock();
        waiting.is_given = false;
        waiting.until = None;
    }

    /// When the answer is given up: its time is over, or its client has left for so long what there is for it. `None` while
    /// neither is to come.
    fn end(&self, patience: Duration) -> Option<Instant> {
        let waiting = self.0.lock();
        let idle = (!waiting.is_over()).then(|| waiting.since + patience);
        idle.into_iter().chain(waiting.until).min()
    }
}

tokio::task_local! {
    /// Whose answer is being made by the task that runs.
    static READER: Arc<Reader>;
}

/// Gives up the answer that the running task makes when it is not sent by then.
pub(super) fn give_up_at(end: Instant) {
    let _ = READER.try_with(|reader| reader.0.lock().until = Some(end));
}

/// Runs what sends answers, and ends it when a client takes nothing for so long, or an answer has had its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience(pub(super) Duration);

impl Patience {
    /// Drives what sends the answers of a stream or a connection to its end; `None` when one was given up.
    pub(super) fn drive<F: Future>(self, sending: F) -> Patient<F> {
        Patient { sending: Box::pin(sending), reader: Reader::new(), patience: self.0, timer: None }
    }
}

/// An executor for the streams of HTTP/2: what it drops is reset.
impl<F> Executor<F> for Patience
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        tokio::spawn(self.drive(stream));
    }
}

/// See [`Patience::drive`].
#[derive(Debug)]
pub(super) struct Patient<F> {
    sending: Pin<Box<F>>,
    reader: Arc<Reader>,
    patience: Duration,
    /// There is none while nothing waits for the client.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for Patient<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let Self { sending, reader, patience, timer } = self.get_mut();
        if let Poll::Ready(sent) = READER.sync_scope(Arc::clone(reader), || sending.as_mut().poll(context)) {
            return Poll::Ready(Some(sent));
        }
        loop {
            let Some(end) = reader.end(*patience) else {
                *timer = None;
                return Poll::Pending;
            };
            if end <= Instant::now() {
                return Poll::Ready(None);
            }
            let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
            if timer.deadline() > end || (timer.deadline() < end && timer.is_elapsed()) {
                timer.as_mut().reset(end);
            }
            ready!(timer.as_mut().poll(context));
        }
    }
}

/// An answer on its way: the pieces that there is room for. `G` is held until it is sent.
#[derive(Debug)]
pub(super) struct Sending<B, G> {
    answer: B,
    room: Room,
    waits: PollSemaphore,
    reader: Arc<Reader>,
    /// What of a large piece is not handed over yet.
    rest: Option<(Bytes, Arc<OwnedSemaphorePermit>)>,
    _guard: G,
}

impl<B, G> Sending<B, G> {
    /// Sends an answer in the task that [`Patience`] runs.
    pub(super) fn new(answer: B, room: &Room, guard: G) -> Self {
        let reader = READER.try_with(Arc::clone).unwrap_or_else(|_| Reader::new());
        let waits = PollSemaphore::new(Arc::clone(&room.bytes));
        Self { answer, room: room.clone(), waits, reader, rest: None, _guard: guard }
    }

    /// The next of what is there.
    fn slice(&mut self) -> Option<Bytes> {
        let (mut bytes, room) = self.rest.take()?;
        let slice = bytes.split_to(bytes.len().min(SLICE));
        if !bytes.is_empty() {
            self.rest = Some((bytes, Arc::clone(&room)));
        }
        self.reader.given();
        let reader = Arc::clone(&self.reader);
        Some(Bytes::from_owner(Slice { bytes: slice, reader, _room: room }))
    }
}

impl<B, G> Drop for Sending<B, G> {
    fn drop(&mut self) {
        self.reader.ends();
    }
}

impl<B, G> Body for Sending<B, G>
where
    B: Body<Data = Bytes> + Unpin,
    G: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        this.reader.asks();
        if this.rest.is_none() {
            let Some(mut room) = ready!(this.waits.poll_acquire_many(context, this.room.piece)) else {
                return Poll::Ready(None);
            };
            let frame = ready!(Pin::new(&mut this.answer).poll_frame(context));
            let piece = match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(piece))) if !piece.is_empty() => piece,
                Some(Ok(Ok(piece))) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            };
            this.room.widen(&mut room, piece.len());
            this.rest = Some((piece, Arc::new(room)));
        }
        Poll::Ready(this.slice().map(|slice| Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_none() && self.answer.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.answer.size_hint()
    }
}

/// A part of a piece that hyper has, and drops when it is written.
struct Slice {
    bytes: Bytes,
    reader: Arc<Reader>,
    _room: Arc<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        self.reader.took();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{FutureExt, stream};
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// An answer of pieces of this size, without end.
    fn endless(size: usize, room: &Room) -> Sending<impl Body<Data = Bytes, Error = Infallible> + Unpin, ()> {
        let pieces = stream::repeat_with(move || Ok(Frame::data(Bytes::from(vec![0; size]))));
        Sending::new(StreamBody::new(pieces), room, ())
    }

    /// Takes what there is, and keeps it.
    fn all_there_is<B: Body<Data = Bytes, Error = Infallible> + Unpin>(body: &mut B) -> Vec<Bytes> {
        let next = || body.frame().now_or_never().flatten()?.ok()?.into_data().ok();
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn no_more_is_made_than_a_connection_has_room_for_whatever_the_number_of_its_streams() {
        let room = Room::new(1 << 20);
        let mut streams: Vec<_> = (0..2000).map(|_| endless(PIECE, &room)).collect();
        for _ in 0..3 {
            // And what is sent gives its room to those that wait.
            let held: Vec<_> = streams.iter_mut().flat_map(all_there_is).collect();
            assert_eq!(held.iter().map(Bytes::len).sum::<usize>(), 1 << 20);
        }
        drop(streams);
        assert_eq!(room.bytes.available_permits(), 1 << 20);
    }

    #[test]
    fn a_large_piece_is_handed_over_in_slices_and_leaves_room_for_others() {
        let room = Room::new(1 << 20);
        let (mut one, mut other) = (endless(5 << 20, &room), endless(PIECE, &room));
        let mut slices = Vec::new();
        while slices.len() < (5 << 20) / SLICE {
            slices.extend(one.frame().now_or_never().flatten().and_then(Result::ok).map(Frame::into_data));
        }
        assert!(slices.iter().flatten().all(|slice| slice.len() == SLICE));
        assert_eq!(room.bytes.available_permits(), 1 << 18);
        let small = all_there_is(&mut other);
        assert_eq!(small.iter().map(Bytes::len).sum::<usize>(), 1 << 18);
        drop((slices, small, other));
        assert_eq!(room.bytes.available_permits(), 1 << 20);
    }

    #[test]
    fn who_waits_for_something_to_tell_takes_no_room() {
        let room = Room::new(PIECE);
        let never = stream::pending::<Result<Frame<Bytes>, Infallible>>();
        let mut idle = Sending::new(StreamBody::new(never), &room, ());
        assert!(all_there_is(&mut idle).is_empty());
        assert_eq!(all_there_is(&mut endless(PIECE, &room)).len(), 1);
    }

    /// A client that is given a piece, and takes it after so long.
    async fn reads_after(patience: Patience, time: Duration) -> Option<()> {
        let room = Room::new(1 << 20);
        patience
            .drive(async {
                let mut answer = endless(PIECE, &room);
                for _ in 0..3 {
                    let piece = answer.frame().await;
                    tokio::time::sleep(time).await;
                    drop(piece);
                    tokio::time::sleep(time).await;
                }
            })
            .await
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_is_ended_and_one_that_is_read_slowly_is_not() {
        let start = Instant::now();
        assert_eq!(reads_after(Patience(MINUTE), MINUTE * 10).await, None);
        assert_eq!(start.elapsed(), MINUTE);
        assert_eq!(reads_after(Patience(MINUTE), MINUTE / 2).await, Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_waits_for_room_ends_with_its_time() {
        let (room, start) = (Room::new(PIECE), Instant::now());
        let _all = all_there_is(&mut endless(PIECE, &room));
        let (end, waits) = (start + MINUTE, async {
            give_up_at(start + MINUTE);
            endless(PIECE, &room).frame().await.is_some()
        });
        assert_eq!(Patience(MINUTE * 10).drive(waits).await, None);
        assert_eq!(Instant::now(), end);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_one_answer_is_not_that_of_the_next() {
        let connection = async {
            give_up_at(Instant::now() + MINUTE);
            drop(endless(PIECE, &Room::new(PIECE)));
            tokio::time::sleep(MINUTE * 10).await;
        };
        assert_eq!(Patience(MINUTE).drive(connection).await, Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_nothing_to_read_may_wait() {
        let waits = async { tokio::time::sleep(MINUTE * 10).await };
        assert_eq!(Patience(MINUTE).drive(waits).await, Some(()));
    }
}
