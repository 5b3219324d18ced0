//! The streams of one connection, as its server.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::pin::pin;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures::{Sink, SinkExt, StreamExt};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::codec::FramedRead;
use tokio_util::sync::CancellationToken;

use super::super::life::{ASK, Activity, FAREWELL};
use super::super::pipe::{self, Input, Output, Piece, What};
use super::Error;
use super::frame::{Frame, Reader, Reason, Writer};
use super::headers::Headers;

/// Streams at a time: two for each forwarded connection. More are refused.
const STREAMS: usize = 4096;
/// Bytes that are read at a time.
const BUFFER: usize = 32 << 10;

/// A stream that a client has opened.
#[derive(Debug)]
pub(in super::super) struct Stream {
    /// Its number: odd, and higher than those before.
    pub(in super::super) id: u32,
    /// What it is for.
    pub(in super::super) headers: Headers,
    /// What the client sends on it.
    pub(in super::super) input: Input,
    /// What the client is sent on it.
    pub(in super::super) output: Output,
}

/// Serves a connection until `work` has done what it wants with the streams that are opened, or the client goes: then
/// `work` is dropped. A stream with headers that are not `accepted` is reset.
pub(in super::super) async fn serve<S, W>(
    reader: impl AsyncRead + Unpin,
    mut writer: S,
    accepted: fn(&Headers) -> bool,
    work: impl FnOnce(mpsc::Receiver<Stream>) -> W,
) where
    S: Sink<Bytes, Error: Display> + Unpin,
    W: Future<Output = ()>,
{
    let (connection, pieces) = pipe::to_client();
    let (answers, to_answer) = mpsc::channel(16);
    let (opened, streams) = mpsc::channel(1);
    let activity = Activity::default();
    let reading = Reading {
        streams: BTreeMap::new(),
        next: 1,
        accepted,
        connection,
        answers,
        opened,
        activity: &activity,
    };
    let mut reading = pin!(reading.read(FramedRead::with_capacity(reader, Reader::new(), BUFFER)));

    let finished = CancellationToken::new();
    let writing = Writing { pieces, to_answer, open: BTreeSet::new(), last: 0, activity: &activity };
    let writing = writing.write(&mut writer, &finished);
    let working = async {
        work(streams).await;
        finished.cancel();
        Ok(())
    };
    let done = tokio::select! {
        biased;
        read = &mut reading => read.map(|()| false),
        () = activity.ceased() => Ok(false),
        written = async { tokio::try_join!(working, writing) } => written.map(|_| true),
    };
    match done {
        Ok(true) => {
            // What it still sends is of no interest.
            let _ = timeout(FAREWELL, reading).await;
        }
        Ok(false) => {}
        Err(error) => tracing::debug!(%error, "a connection of SPDY ended"),
    }
}

/// What the reading side asks the writing side to send.
#[derive(Debug)]
enum Answer {
    Reply(u32),
    Reset(u32, Reason),
    Ping(u32),
}

/// A stream as its connection sees it.
struct Open {
    /// `None` when the client will send no more.
    input: Option<mpsc::Sender<Bytes>>,
    /// Held by who sends on it.
    gone: Weak<CancellationToken>,
}

struct Reading<'a> {
    streams: BTreeMap<u32, Open>,
    /// The lowest number of the next stream.
    next: u32,
    accepted: fn(&Headers) -> bool,
    connection: mpsc::Sender<Piece>,
    answers: mpsc::Sender<Answer>,
    opened: mpsc::Sender<Stream>,
    activity: &'a Activity,
}

impl Reading<'_> {
    async fn read(
        mut self,
        mut frames: impl futures::Stream<Item = Result<Frame, Error>> + Unpin,
    ) -> Result<(), Error> {
        while let Some(frame) = frames.next().await {
            match frame? {
                Frame::Open { stream, headers, last } => self.open(stream, headers, last).await,
                Frame::Data { stream, bytes, last } => self.data(stream, bytes, last).await,
                Frame::Reset { stream } => {
                    if let Some(open) = self.streams.remove(&stream)
                        && let Some(gone) = open.gone.upgrade()
                    {
                        gone.cancel();
                    }
                }
                // Even ones are answers.
                Frame::Ping(number) if number % 2 == 1 => self.answer(Answer::Ping(number)).await,
                Frame::GoAway => return Ok(()),
                Frame::Ping(_) | Frame::Reply { .. } | Frame::Other => {}
            }
        }
        Ok(())
    }

    async fn open(&mut self, id: u32, headers: Headers, last: bool) {
        self.activity.seen();
        if id.is_multiple_of(2) || id < self.next || id >> 31 != 0 {
            return self.answer(Answer::Reset(id, Reason::Protocol)).await;
        }
        self.next = id + 2;
        self.streams.retain(|_, open| {
            open.input.as_ref().is_some_and(|input| !input.is_closed()) || open.gone.strong_count() > 0
        });
        if self.streams.len() >= STREAMS {
            return self.answer(Answer::Reset(id, Reason::Refused)).await;
        }
        if !(self.accepted)(&headers) {
            return self.answer(Answer::Reset(id, Reason::Cancel)).await;
        }
        let (sender, input) = pipe::from_client();
        let gone = Arc::new(CancellationToken::new());
        self.streams.insert(id, Open { input: (!last).then_some(sender), gone: Arc::downgrade(&gone) });
        self.answer(Answer::Reply(id)).await;
        let output = Output::new(id, self.connection.clone(), gone);
        // Who does not take streams any more is about to say farewell.
        let _ = self.opened.send(Stream { id, headers, input, output }).await;
    }

    async fn data(&mut self, id: u32, bytes: Bytes, last: bool) {
        self.activity.seen();
        let Some(Open { input, .. }) = self.streams.get_mut(&id) else { return };
        let taken = match input {
            Some(sender) if !bytes.is_empty() => sender.send(bytes).await.is_ok(),
            _ => true,
        };
        if last || !taken {
            *input = None;
        }
    }

    async fn answer(&self, answer: Answer) {
        // Without a writing side the connection is about to end.
        let _ = self.answers.send(answer).await;
    }
}

struct Writing<'a> {
    pieces: mpsc::Receiver<Piece>,
    to_answer: mpsc::Receiver<Answer>,
    /// The streams on which more may be sent.
    open: BTreeSet<u32>,
    /// The last one that was accepted.
    last: u32,
    activity: &'a Activity,
}

impl Writing<'_> {
    /// Writes what there is to be sent; once it is `finished`, the rest, and a farewell.
    async fn write<S>(mut self, writer: &mut S, finished: &CancellationToken) -> Result<(), Error>
    where
        S: Sink<Bytes, Error: Display> + Unpin,
    {
        let broken = |error: S::Error| Error::Io(std::io::Error::other(error.to_string()));
        let mut frames = Writer::new()?;
        loop {
            // Answers come first: that a stream is accepted is told before anything is sent on it.
            let frame = tokio::select! {
                biased;
                Some(answer) = self.to_answer.recv() => self.answer(&mut frames, &answer)?,
                Some(piece) = self.pieces.recv() => self.piece(&piece),
                () = finished.cancelled() => break,
                () = sleep(ASK) => Writer::ping(2),
            };
            writer.send(frame).await.map_err(broken)?;
        }
        for stream in std::mem::take(&mut self.open) {
            writer.feed(Writer::data(stream, &[], true)).await.map_err(broken)?;
        }
        writer.send(Writer::go_away(self.last)).await.map_err(broken)?;
        writer.close().await.map_err(broken)
    }

    fn answer(&mut self, frames: &mut Writer, answer: &Answer) -> Result<Bytes, Error> {
        Ok(match *answer {
            Answer::Reply(stream) => {
                self.open.insert(stream);
                self.last = stream;
                frames.reply(stream)?
            }
            Answer::Reset(stream, reason) => Writer::reset(stream, reason),
            Answer::Ping(number) => Writer::ping(number),
        })
    }

    fn piece(&mut self, piece: &Piece) -> Bytes {
        self.activity.seen();
        match &piece.what {
            What::Bytes(bytes) => Writer::data(piece.stream, bytes, false),
            What::End => {
                self.open.remove(&piece.stream);
                Writer::data(piece.stream, &[], true)
            }
            What::Reset => {
                self.open.remove(&piece.stream);
                Writer::reset(piece.stream, Reason::Cancel)
            }
        }
    }
}
