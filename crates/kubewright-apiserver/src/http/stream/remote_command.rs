//! A command, or the first process of a container, at the other end of a client's streams
//! (`k8s.io/cri-streaming/pkg/streaming/remotecommand`).

use std::fmt::Display;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::Sink;
use serde::Deserialize;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::super::websocket::Socket;
use super::channels::{self, Channels};
use super::pipe::{Input, Output};
use super::spdy;
use super::status;
use crate::kubelet::{Session, Streams, TerminalSize};

/// Time for a client to open its streams (`DefaultStreamCreationTimeout`).
const OPENING: Duration = Duration::from_secs(30);
/// The most bytes that the size of a terminal is told in.
const LONGEST_SIZE: usize = 4 << 10;

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Purpose {
    /// A command.
    Exec,
    /// The first process of a container.
    Attach,
}

/// The client's ends of a session.
struct Client {
    stdin: Option<Input>,
    stdout: Option<Output>,
    stderr: Option<Output>,
    /// How it ended is told here.
    error: Output,
    resize: Option<Input>,
}

/// Serves a session on the channels of a WebSocket.
pub(in super::super) async fn over_channels(
    socket: impl Socket,
    form: channels::Form,
    told: status::Form,
    streams: Streams,
    session: Session,
    purpose: Purpose,
) {
    let mut channels = Channels::new(5);
    let client = Client {
        stdin: streams.stdin.then(|| channels.input(0)),
        stdout: streams.stdout.then(|| channels.output(1)),
        stderr: streams.stderr.then(|| channels.output(2)),
        error: channels.output(3),
        resize: Some(channels.input(4)),
    };
    let work = async move {
        let first = client.stdout.as_ref().or(client.stderr.as_ref()).unwrap_or(&client.error);
        // An empty message tells the client that it is connected.
        if first.write(Bytes::new()).await.is_ok() {
            run(session, client, told, purpose).await;
        }
    };
    channels.serve(socket, form, work).await;
}

/// Which of the streams of a client are there so far.
#[derive(Default)]
struct Opening {
    stdin: Option<Input>,
    stdout: Option<Output>,
    stderr: Option<Output>,
    error: Option<Output>,
    resize: Option<Input>,
}

/// Serves a session on the streams of SPDY, of the protocol with this version.
pub(in super::super) async fn over_spdy(
    reader: impl AsyncRead + Unpin,
    writer: impl Sink<Bytes, Error: Display> + Unpin,
    version: u8,
    streams: Streams,
    session: Session,
    purpose: Purpose,
) {
    let told = if version < 4 { status::Form::Text } else { status::Form::Status };
    let resizes = streams.tty && version >= 3;
    let expected =
        1 + [streams.stdin, streams.stdout, streams.stderr, resizes].map(usize::from).iter().sum::<usize>();
    let work = async |mut opened| {
        let Ok(opening) = timeout(OPENING, collect(&mut opened, expected)).await else {
            return tracing::debug!("a client did not open its streams in time");
        };
        let Opening { stdin, stdout, stderr, error: Some(error), resize } = opening else { return };
        run(session, Client { stdin, stdout, stderr, error, resize }, told, purpose).await;
    };
    spdy::serve(reader, writer, |_| true, work).await;
}

async fn collect(opened: &mut mpsc::Receiver<spdy::Stream>, expected: usize) -> Opening {
    let mut opening = Opening::default();
    let mut count = 0;
    while count < expected {
        let Some(stream) = opened.recv().await else { break };
        match stream.headers.get("streamtype").map(String::as_str) {
            Some("stdin") => opening.stdin = Some(stream.input),
            Some("stdout") => opening.stdout = Some(stream.output),
            Some("stderr") => opening.stderr = Some(stream.output),
            Some("error") => opening.error = Some(stream.output),
            Some("resize") => opening.resize = Some(stream.input),
            _ => continue,
        }
        count += 1;
    }
    opening
}

/// Carries everything both ways until the process has ended and all that it has written is sent; tells how it ended.
async fn run(session: Session, client: Client, told: status::Form, purpose: Purpose) {
    let Client { stdin, stdout, stderr, error, resize } = client;
    let input = async {
        match (stdin, session.stdin) {
            (Some(input), Some(writer)) => input.copy_to(writer).await,
            (Some(input), None) => input.copy_to(tokio::io::sink()).await,
            (None, _) => {}
        }
    };
    let sizes = async {
        match (resize, session.resize) {
            (Some(input), Some(terminal)) => send_resizes(input, &terminal).await,
            (Some(input), None) => input.copy_to(tokio::io::sink()).await,
            (None, _) => {}
        }
    };
    let forwards = async {
        tokio::join!(input, sizes);
        std::future::pending().await
    };
    let ended = async {
        let (exit, (), ()) =
            tokio::join!(session.exit, output(session.stdout, stdout), output(session.stderr, stderr));
        exit
    };
    let ended: Result<i32, String> = tokio::select! {
        biased;
        ended = ended => ended,
        ended = forwards => ended,
    };
    let ended = match purpose {
        Purpose::Exec => ended.map_err(|why| format!("error executing command in container: {why}")),
        // Whose client leaves when it ends does not ask how.
        Purpose::Attach => ended.map(|_| 0).map_err(|why| format!("error attaching to container: {why}")),
    };
    if let Some(text) = status::of(&ended, told) {
        // Who has left is not told.
        let _ = error.write(text.into()).await;
    }
    error.end().await;
}

async fn output(reader: Option<Box<dyn AsyncRead + Send + Unpin>>, output: Option<Output>) {
    let Some(output) = output else { return };
    if let Some(reader) = reader
        && let Err(error) = output.copy_from(reader).await
    {
        tracing::debug!(%error, "the output of a process cannot be read");
    }
    output.end().await;
}

/// A size as clients tell it.
#[derive(Deserialize)]
struct Size {
    #[serde(rename = "Width", alias = "width", default)]
    width: u16,
    #[serde(rename = "Height", alias = "height", default)]
    height: u16,
}

/// Gives on the sizes of the client's terminal: JSON objects one behind the other, cut anywhere.
async fn send_resizes(mut input: Input, terminal: &mpsc::Sender<TerminalSize>) {
    let mut text = BytesMut::new();
    while let Some(bytes) = input.next().await {
        if text.len() + bytes.len() > LONGEST_SIZE {
            break;
        }
        text.extend_from_slice(&bytes);
        let (sizes, read) = sizes(&text);
        let _ = text.split_to(read);
        for size in sizes {
            if terminal.send(size).await.is_err() {
                break;
            }
        }
    }
    while input.next().await.is_some() {}
}

/// The sizes that are there, and how many bytes they take.
fn sizes(text: &[u8]) -> (Vec<TerminalSize>, usize) {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Size>();
    let mut sizes = Vec::new();
    while let Some(Ok(Size { width, height })) = values.next() {
        sizes.push(TerminalSize { width, height });
    }
    (sizes, values.byte_offset())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_may_be_cut_anywhere() {
        let text = br#"{"Width":80,"Height":24}{"Width":132,"Height":50}{"Wid"#;
        let (told, read) = sizes(text);
        assert_eq!(told, [TerminalSize { width: 80, height: 24 }, TerminalSize { width: 132, height: 50 }]);
        assert_eq!(&text[read..], br#"{"Wid"#);
        assert_eq!(sizes(b"garbage").0, []);
    }
}
