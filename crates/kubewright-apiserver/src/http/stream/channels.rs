//! The streams of a WebSocket: each message begins with the number of its channel
//! (`k8s.io/streaming/pkg/httpstream/wsstream/conn.go`).

use std::pin::pin;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes, BytesMut};
use futures::{Sink, SinkExt, Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;

use super::super::websocket::{self, Socket};
use super::life::{ASK, Activity, FAREWELL};
use super::pipe::{self, Input, Output, Piece, What};

/// The channel on which a client says that it sends no more on another one.
const CLOSE: u8 = 255;

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Form {
    /// The number is a digit, and what follows is text.
    pub(super) base64: bool,
    /// A client can end a channel.
    pub(super) closes: bool,
}

/// Channels of a connection that is to be opened.
pub(super) struct Channels {
    inputs: Vec<Option<mpsc::Sender<Bytes>>>,
    connection: mpsc::Sender<Piece>,
    pieces: mpsc::Receiver<Piece>,
}

impl Channels {
    /// So many, on which nothing is listened to.
    pub(super) fn new(count: usize) -> Self {
        let (connection, pieces) = pipe::to_client();
        Self { inputs: vec![None; count], connection, pieces }
    }

    /// What the client sends on a channel.
    pub(super) fn input(&mut self, channel: usize) -> Input {
        let (sender, input) = pipe::from_client();
        if let Some(slot) = self.inputs.get_mut(channel) {
            *slot = Some(sender);
        }
        input
    }

    /// What the client is sent on a channel.
    pub(super) fn output(&self, channel: usize) -> Output {
        Output::new(channel as u32, self.connection.clone(), std::sync::Arc::default())
    }

    /// Serves the connection until `work` is done with the channels, or the client goes: then `work` is dropped.
    pub(super) async fn serve<S: Socket>(self, socket: S, form: Form, work: impl Future<Output = ()>) {
        let (mut sink, messages) = socket.split();
        let activity = Activity::default();
        let mut reading = pin!(read(messages, self.inputs, form, &activity));
        let finished = CancellationToken::new();
        let working = async {
            work.await;
            finished.cancel();
            Ok(())
        };
        let done = {
            let writing = write(&mut sink, self.pieces, form, &finished, &activity);
            tokio::select! {
                biased;
                read = &mut reading => read.map(|()| false),
                () = activity.ceased() => Ok(false),
                written = async { tokio::try_join!(working, writing) } => written.map(|_| true),
            }
        };
        let code = match &done {
            Ok(_) => CloseCode::Normal,
            Err(error) => {
                tracing::debug!(%error, "a connection of channels ended");
                websocket::close_code(error)
            }
        };
        let farewell = async {
            // Who has left hears nothing.
            let _ = sink.send(websocket::close(code)).await;
            if let Ok(true) = done {
                let _ = reading.await;
            }
        };
        let _ = timeout(FAREWELL, farewell).await;
    }
}

async fn read(
    mut messages: impl Stream<Item = Result<Message, Error>> + Unpin,
    mut inputs: Vec<Option<mpsc::Sender<Bytes>>>,
    form: Form,
    activity: &Activity,
) -> Result<(), Error> {
    while let Some(message) = messages.next().await {
        let data = match message? {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => text.into(),
            // The library answers, and ends.
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => continue,
        };
        activity.seen();
        let Some(&first) = data.first() else { continue };
        let rest = data.slice(1..);
        if form.closes && first == CLOSE {
            match rest[..] {
                [channel] if usize::from(channel) < inputs.len() => inputs[usize::from(channel)] = None,
                // What it means is not known, so nothing that follows is.
                _ => return Ok(()),
            }
            continue;
        }
        let channel = if form.base64 { first.wrapping_sub(b'0') } else { first };
        let Some(input) = inputs.get_mut(usize::from(channel)) else { continue };
        let bytes = match form.base64 {
            true => STANDARD.decode(&rest).unwrap_or_default().into(),
            false => rest,
        };
        if let Some(sender) = input
            && !bytes.is_empty()
            && sender.send(bytes).await.is_err()
        {
            *input = None;
        }
    }
    Ok(())
}

async fn write(
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
    mut pieces: mpsc::Receiver<Piece>,
    form: Form,
    finished: &CancellationToken,
    activity: &Activity,
) -> Result<(), Error> {
    loop {
        let message = tokio::select! {
            biased;
            Some(piece) = pieces.recv() => match piece.what {
                What::Bytes(bytes) => {
                    activity.seen();
                    message(piece.stream as u8, &bytes, form)
                }
                // A server has no words for it.
                What::End | What::Reset => continue,
            },
            () = finished.cancelled() => return Ok(()),
            () = sleep(ASK) => Message::Ping(Bytes::new()),
        };
        sink.send(message).await?;
    }
}

fn message(channel: u8, bytes: &[u8], form: Form) -> Message {
    if form.base64 {
        let mut text = String::from(char::from(b'0' + channel));
        STANDARD.encode_string(bytes, &mut text);
        return Message::Text(text.into());
    }
    let mut message = BytesMut::with_capacity(1 + bytes.len());
    message.put_u8(channel);
    message.put(bytes);
    Message::Binary(message.freeze())
}
