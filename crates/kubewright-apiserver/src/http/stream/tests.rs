//! Clients of all kinds, and a process that they talk to.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_util::codec::{BytesCodec, Decoder, FramedWrite};

use super::super::websocket;
use super::spdy::frame::{Frame, Reader, Writer};
use super::*;
use crate::kubelet::{Duplex, Kubelet, LogOptions, Refusal, Session, Streams, Target, TerminalSize};

/// The process's side of a session.
struct Process {
    stdin: DuplexStream,
    stdout: DuplexStream,
    sizes: mpsc::Receiver<TerminalSize>,
    exit: oneshot::Sender<Result<i32, String>>,
}

const ALL: Streams = Streams { stdin: true, stdout: true, stderr: true, tty: false };

fn session() -> (Session, Process) {
    let (near_in, stdin) = duplex(1 << 10);
    let (near_out, stdout) = duplex(1 << 10);
    let (resize, sizes) = mpsc::channel(1);
    let (exit, ended) = oneshot::channel();
    let session = Session {
        stdin: Some(Box::new(near_in)),
        stdout: Some(Box::new(near_out)),
        stderr: None,
        resize: Some(resize),
        exit: async { ended.await.unwrap_or_else(|_| Err("lost".to_owned())) }.boxed(),
    };
    (session, Process { stdin, stdout, sizes, exit })
}

type Client = WebSocketStream<DuplexStream>;

/// A client on channels of this protocol.
async fn on_channels(protocol: &'static str) -> (Client, Process, JoinHandle<()>) {
    let (near, far) = duplex(1 << 16);
    let (session, process) = session();
    let form = channels::Form { base64: protocol.contains("base64"), closes: protocol.starts_with("v5") };
    let told = if form.closes { status::Form::Nested } else { status::Form::Status };
    let serving = tokio::spawn(async move {
        let socket = websocket::open(far).await;
        remote_command::over_channels(socket, form, told, ALL, session, Purpose::Exec).await;
    });
    (WebSocketStream::from_raw_socket(near, Role::Client, None).await, process, serving)
}

async fn message(client: &mut Client) -> Message {
    client.next().await.expect("a message").expect("no error")
}

#[tokio::test(start_paused = true)]
async fn a_channel_is_ended_by_its_number_behind_255() {
    let (mut client, mut process, serving) = on_channels("v5.channel.k8s.io").await;
    assert_eq!(message(&mut client).await, Message::binary(&b"\x01"[..]), "it is connected");
    client.send(Message::binary(&b"\x00abc"[..])).await.expect("sent");
    client.send(Message::binary(&b"\xff\x00"[..])).await.expect("sent");
    let mut text = String::new();
    process.stdin.read_to_string(&mut text).await.expect("it ends");
    assert_eq!(text, "abc");
    process.stdout.write_all(b"def").await.expect("written");
    drop(process.stdout);
    process.exit.send(Ok(3)).expect("somebody asks");
    assert_eq!(message(&mut client).await, Message::binary(&b"\x01def"[..]));
    let Message::Binary(status) = message(&mut client).await else { panic!("a status") };
    assert_eq!(status[0], 3);
    assert!(String::from_utf8_lossy(&status).contains(r#""reason":"NonZeroExitCode""#));
    let Message::Close(Some(close)) = message(&mut client).await else { panic!("a farewell") };
    assert_eq!(u16::from(close.code), 1000);
    assert!(client.next().await.is_none());
    serving.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn channels_may_be_written_in_base64() {
    let (mut client, mut process, _serving) = on_channels("v4.base64.channel.k8s.io").await;
    assert_eq!(message(&mut client).await, Message::text("1"));
    let sent = format!("0{}", base64::engine::general_purpose::STANDARD.encode("abc"));
    client.send(Message::text(sent)).await.expect("sent");
    client.send(Message::text("4eyJXaWR0aCI6ODAsIkhlaWdodCI6MjR9")).await.expect("sent");
    let mut text = [0; 3];
    process.stdin.read_exact(&mut text).await.expect("it comes");
    assert_eq!(&text, b"abc");
    assert_eq!(process.sizes.recv().await, Some(TerminalSize { width: 80, height: 24 }));
    process.stdout.write_all(b"def").await.expect("written");
    assert_eq!(message(&mut client).await, Message::text("1ZGVm"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_the_session_even_when_nobody_reads_what_it_has_sent() {
    for leaves in [true, false] {
        let (mut client, process, serving) = on_channels("v5.channel.k8s.io").await;
        message(&mut client).await;
        // More than all buffers on the way take, so its farewell is not read.
        let flood = async {
            for _ in 0..1000 {
                client.send(Message::binary(vec![0; 1 << 10])).await?;
            }
            Ok::<_, tokio_tungstenite::tungstenite::Error>(())
        };
        let flooded = tokio::time::timeout(Duration::from_secs(10), flood).await;
        assert!(flooded.is_err(), "it is held up");
        if leaves {
            drop(client);
            tokio::time::timeout(Duration::from_secs(120), serving)
                .await
                .expect("it ends")
                .expect("no panic");
            assert!(process.exit.is_closed());
        } else {
            assert!(!process.exit.is_closed(), "it goes on");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_ends_the_connection() {
    for (nonsense, code) in [(&b"\xff\x09"[..], 1000), (b"\xff", 1000)] {
        let (mut client, process, serving) = on_channels("v5.channel.k8s.io").await;
        message(&mut client).await;
        client.send(Message::binary(nonsense)).await.expect("sent");
        let Message::Close(Some(close)) = message(&mut client).await else { panic!("a farewell") };
        assert_eq!(u16::from(close.code), code);
        serving.await.expect("no panic");
        assert!(process.exit.is_closed());
    }
    let (mut client, _process, _serving) = on_channels("v5.channel.k8s.io").await;
    message(&mut client).await;
    client.send(Message::binary(&b"\x07no such channel"[..])).await.expect("sent");
    client.send(Message::binary(&b""[..])).await.expect("sent");
    client.send(Message::Ping(Bytes::from_static(b"?"))).await.expect("sent");
    assert_eq!(message(&mut client).await, Message::Pong(Bytes::from_static(b"?")), "it goes on");
}

/// A client that speaks SPDY.
struct Spdy {
    connection: DuplexStream,
    writer: Writer,
    reader: Reader,
    buffer: BytesMut,
    next: u32,
}

impl Spdy {
    fn new(connection: DuplexStream) -> Self {
        let writer = Writer::new().expect("a writer");
        Self { connection, writer, reader: Reader::new(), buffer: BytesMut::new(), next: 1 }
    }

    async fn open(&mut self, headers: &[(&str, &str)]) -> u32 {
        let stream = self.next;
        self.next += 2;
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let frame = self.writer.open(stream, &headers, false).expect("a frame");
        self.connection.write_all(&frame).await.expect("sent");
        stream
    }

    async fn send(&mut self, stream: u32, bytes: &[u8], last: bool) {
        self.connection.write_all(&Writer::data(stream, bytes, last)).await.expect("sent");
    }

    /// The next frame; `None` at the end.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.reader.decode(&mut self.buffer).expect("SPDY") {
                return Some(frame);
            }
            if self.connection.read_buf(&mut self.buffer).await.expect("no error") == 0 {
                return None;
            }
        }
    }

    /// What comes on a stream until it ends; whether it was reset.
    async fn all(&mut self, stream: u32) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        loop {
            match self.next().await.expect("the stream ends first") {
                Frame::Data { stream: on, bytes, last } if on == stream => {
                    all.extend(bytes);
                    if last {
                        return (all, false);
                    }
                }
                Frame::Reset { stream: on } if on == stream => return (all, true),
                _ => {}
            }
        }
    }
}

fn on_spdy(version: u8, streams: Streams) -> (Spdy, Process, JoinHandle<()>) {
    let (near, far) = duplex(1 << 16);
    let (session, process) = session();
    let serving = tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(far);
        let writer = FramedWrite::new(writer, BytesCodec::new());
        remote_command::over_spdy(reader, writer, version, streams, session, Purpose::Exec).await;
    });
    (Spdy::new(near), process, serving)
}

#[tokio::test(start_paused = true)]
async fn a_session_has_a_stream_of_spdy_for_each_of_its_own() {
    let (mut client, mut process, serving) = on_spdy(4, Streams { stderr: false, ..ALL });
    let error = client.open(&[("streamtype", "error")]).await;
    let stdin = client.open(&[("streamtype", "stdin")]).await;
    let stdout = client.open(&[("streamtype", "stdout")]).await;
    for stream in [error, stdin, stdout] {
        assert_eq!(client.next().await, Some(Frame::Reply { stream }));
    }
    client.send(stdin, b"abc", false).await;
    client.send(stdin, b"def", true).await;
    let mut text = String::new();
    process.stdin.read_to_string(&mut text).await.expect("it ends");
    assert_eq!(text, "abcdef");
    process.stdout.write_all(b"ghi").await.expect("written");
    drop(process.stdout);
    process.exit.send(Ok(0)).expect("somebody asks");
    assert_eq!(client.all(stdout).await, (b"ghi".to_vec(), false));
    let (status, _) = client.all(error).await;
    assert!(String::from_utf8_lossy(&status).contains(r#""status":"Success""#));
    while let Some(frame) = client.next().await {
        assert!(matches!(frame, Frame::Data { last: true, .. } | Frame::GoAway), "{frame:?}");
    }
    drop(client);
    serving.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_opens_no_streams_is_left() {
    let (client, process, serving) = on_spdy(4, ALL);
    serving.await.expect("no panic");
    assert!(process.exit.is_closed());
    drop(client);
}

#[tokio::test(start_paused = true)]
async fn the_first_versions_of_spdy_tell_failures_in_words() {
    let (mut client, process, _serving) = on_spdy(2, Streams { stdin: false, stderr: false, ..ALL });
    let error = client.open(&[("streamtype", "error")]).await;
    let _stdout = client.open(&[("streamtype", "stdout")]).await;
    drop(process.stdout);
    process.exit.send(Ok(9)).expect("somebody asks");
    let (text, _) = client.all(error).await;
    assert!(String::from_utf8_lossy(&text).ends_with("exit code 9"));
}

/// Its port 7 sends back what comes; nothing listens on others.
#[derive(Debug)]
struct Echo;

impl Kubelet for Echo {
    fn logs(
        &self,
        _: Target,
        _: LogOptions,
    ) -> BoxFuture<'_, Result<BoxStream<'static, std::io::Result<Bytes>>, Refusal>> {
        async { Err(Refusal::Failed(String::new())) }.boxed()
    }

    fn exec(&self, _: Target, _: Vec<String>, _: Streams) -> BoxFuture<'_, Result<Session, Refusal>> {
        async { Err(Refusal::Failed(String::new())) }.boxed()
    }

    fn attach(&self, _: Target, _: Streams) -> BoxFuture<'_, Result<Session, Refusal>> {
        async { Err(Refusal::Failed(String::new())) }.boxed()
    }

    fn port_forward(&self, _: Target, port: u16) -> BoxFuture<'_, Result<Box<dyn Duplex>, Refusal>> {
        async move {
            if port != 7 {
                return Err(Refusal::Failed("connection refused".to_owned()));
            }
            let (near, far) = duplex(64);
            tokio::spawn(async move {
                let (mut reader, mut writer) = tokio::io::split(far);
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
            Ok(Box::new(near) as Box<dyn Duplex>)
        }
        .boxed()
    }
}

fn ports() -> Ports {
    let target = Target {
        namespace: "n".to_owned(),
        pod: "p".to_owned(),
        uid: "u".to_owned(),
        container: String::new(),
    };
    Ports { kubelet: Arc::new(Echo), target }
}

fn forwarding() -> Spdy {
    let (near, far) = duplex(1 << 16);
    tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(far);
        port_forward::over_spdy(reader, FramedWrite::new(writer, BytesCodec::new()), ports()).await;
    });
    Spdy::new(near)
}

#[tokio::test(start_paused = true)]
async fn connections_to_ports_share_a_connection_of_spdy() {
    let mut client = forwarding();
    let mut pairs = Vec::new();
    for request in 0..100 {
        let (request, port) = (request.to_string(), if request % 10 == 9 { "8" } else { "7" });
        let of = |kind| [("streamtype", kind), ("port", port), ("requestid", &*request)];
        pairs.push((port, client.open(&of("error")).await, client.open(&of("data")).await));
        // Answers are read on the way: neither side may wait for the other.
        while !matches!(client.next().await, Some(Frame::Reply { stream }) if stream == client.next - 2) {}
    }
    for (port, error, data) in pairs {
        match port {
            "7" => {
                client.send(data, request_of(data).as_bytes(), true).await;
                assert_eq!(client.all(data).await, (request_of(data).into_bytes(), false));
                assert_eq!(client.all(error).await, (Vec::new(), false));
            }
            // Its failure came while others were opened.
            _ => assert!(error < data),
        }
    }
}

fn request_of(stream: u32) -> String {
    format!("this is stream {stream}")
}

#[tokio::test(start_paused = true)]
async fn a_port_on_which_nobody_listens_is_told_of() {
    let mut client = forwarding();
    let error = client.open(&[("streamtype", "error"), ("port", "8")]).await;
    let data = client.open(&[("streamtype", "data"), ("port", "8")]).await;
    let (text, _) = client.all(error).await;
    let told = "error forwarding port 8 to pod p, uid u: connection refused";
    assert_eq!(String::from_utf8_lossy(&text), told);
    let _ = data;
}

#[tokio::test(start_paused = true)]
async fn a_stream_for_no_port_is_reset_and_half_a_connection_given_up() {
    let mut client = forwarding();
    let wrong = client.open(&[("streamtype", "data"), ("port", "70000")]).await;
    assert_eq!(client.next().await, Some(Frame::Reset { stream: wrong }));
    let half = client.open(&[("streamtype", "error"), ("port", "7"), ("requestid", "1")]).await;
    let (text, _) = client.all(half).await;
    assert_eq!(String::from_utf8_lossy(&text), "(request=1) timed out waiting for streams");
}

#[tokio::test(start_paused = true)]
async fn ports_on_channels_begin_with_their_numbers() {
    let (near, far) = duplex(1 << 16);
    tokio::spawn(async move {
        let form = channels::Form { base64: false, closes: false };
        port_forward::over_channels(websocket::open(far).await, form, ports(), vec![7]).await;
    });
    let mut client = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
    assert_eq!(message(&mut client).await, Message::binary(&b"\x00\x07\x00"[..]));
    assert_eq!(message(&mut client).await, Message::binary(&b"\x01\x07\x00"[..]));
    client.send(Message::binary(&b"\x00abc"[..])).await.expect("sent");
    assert_eq!(message(&mut client).await, Message::binary(&b"\x00abc"[..]));
}
