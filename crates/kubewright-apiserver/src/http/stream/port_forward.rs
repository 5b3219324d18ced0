//! Connections to ports of a pod (`k8s.io/cri-streaming/pkg/streaming/portforward`).

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Sink;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::super::websocket::Socket;
use super::channels::{self, Channels};
use super::pipe::{Input, Output};
use super::spdy::{self, Headers, Stream};
use crate::kubelet::{Kubelet, Target};

/// Time for a client to open the second of two streams that belong together.
const OPENING: Duration = Duration::from_secs(30);
/// Streams that wait for their second one.
const HALVES: usize = 256;

/// Whose ports are meant.
#[derive(Clone, Debug)]
pub(in super::super) struct Ports {
    pub(in super::super) kubelet: Arc<dyn Kubelet>,
    pub(in super::super) target: Target,
}

impl Ports {
    /// Connects to a port, and carries everything both ways until the port has no more to send or the client has reset the
    /// stream.
    ///
    /// # Errors
    /// What the client is to be told.
    async fn forward(&self, port: u16, input: Input, output: &Output) -> Result<(), String> {
        let failed = |why: &dyn Display| {
            let Target { pod, uid, .. } = &self.target;
            format!("error forwarding port {port} to pod {pod}, uid {uid}: {why}")
        };
        let connection = self.kubelet.port_forward(self.target.clone(), port).await;
        let (reader, writer) = tokio::io::split(connection.map_err(|refusal| failed(&refusal))?);
        let forth = async {
            input.copy_to(writer).await;
            std::future::pending().await
        };
        tokio::select! {
            biased;
            () = output.gone() => Ok(()),
            sent = output.copy_from(reader) => sent.map_err(|error| failed(&error)),
            never = forth => never,
        }
    }

    /// Forwards to a port, and tells what goes wrong.
    async fn serve(&self, port: u16, input: Input, data: Output, error: Output) {
        let forwarded = self.forward(port, input, &data).await;
        match forwarded {
            Ok(()) => data.end().await,
            Err(why) => {
                tracing::debug!(why);
                // Who has left is not told.
                let _ = error.write(why.into()).await;
                data.reset().await;
            }
        }
        error.end().await;
    }
}

/// Forwards to ports on the channels of a WebSocket, two for each port. Both begin with the number of their port.
pub(in super::super) async fn over_channels(
    socket: impl Socket,
    form: channels::Form,
    ports: Ports,
    numbers: Vec<u16>,
) {
    let mut channels = Channels::new(numbers.len() * 2);
    let mut forwards = JoinSet::new();
    for (at, port) in numbers.into_iter().enumerate() {
        let (input, data, error) =
            (channels.input(at * 2), channels.output(at * 2), channels.output(at * 2 + 1));
        let ports = ports.clone();
        forwards.spawn(async move {
            for output in [&data, &error] {
                if output.write(Bytes::copy_from_slice(&port.to_le_bytes())).await.is_err() {
                    return;
                }
            }
            ports.serve(port, input, data, error).await;
        });
    }
    let work = async { while forwards.join_next().await.is_some() {} };
    channels.serve(socket, form, work).await;
}

/// Forwards to ports on the streams of SPDY: two for each connection, with the same request id.
pub(in super::super) async fn over_spdy(
    reader: impl AsyncRead + Unpin,
    writer: impl Sink<Bytes, Error: Display> + Unpin,
    ports: Ports,
) {
    spdy::serve(reader, writer, is_for_a_port, |opened| Forwards::new(ports).run(opened)).await;
}

fn is_for_a_port(headers: &Headers) -> bool {
    port(headers).is_some() && is_data(headers).is_some()
}

fn port(headers: &Headers) -> Option<u16> {
    headers.get("port")?.parse().ok().filter(|port| *port != 0)
}

/// Whether a stream is for data, or for what goes wrong.
fn is_data(headers: &Headers) -> Option<bool> {
    match headers.get("streamtype")?.as_str() {
        "data" => Some(true),
        "error" => Some(false),
        _ => None,
    }
}

/// What belongs to a stream. Old clients name no requests: theirs opens the error stream first and then that for data.
fn request(stream: &Stream) -> String {
    match stream.headers.get("requestid").filter(|id| !id.is_empty()) {
        Some(id) => id.clone(),
        None if is_data(&stream.headers) == Some(true) => stream.id.saturating_sub(2).to_string(),
        None => stream.id.to_string(),
    }
}

/// One of two streams.
struct Half {
    stream: Stream,
    /// The wait for the other one.
    wait: AbortHandle,
}

/// The forwarded connections of one client.
struct Forwards {
    ports: Ports,
    /// Streams whose second one is not there yet, by their requests.
    halves: BTreeMap<String, Half>,
    /// Connections, and waits for the second streams; these say whose time is over.
    running: JoinSet<Option<String>>,
}

impl Forwards {
    fn new(ports: Ports) -> Self {
        Self { ports, halves: BTreeMap::new(), running: JoinSet::new() }
    }

    /// Runs until the client goes.
    async fn run(mut self, mut opened: mpsc::Receiver<Stream>) {
        loop {
            tokio::select! {
                biased;
                stream = opened.recv() => match stream {
                    Some(stream) => self.add(stream).await,
                    None => return,
                },
                Some(ended) = self.running.join_next() => {
                    if let Ok(Some(request)) = ended {
                        self.give_up(&request).await;
                    }
                }
            }
        }
    }

    async fn add(&mut self, stream: Stream) {
        let request = request(&stream);
        let Some(Half { stream: first, wait }) = self.halves.remove(&request) else {
            if self.halves.len() >= HALVES {
                return stream.output.reset().await;
            }
            let waited = request.clone();
            let wait = self.running.spawn(async move {
                sleep(OPENING).await;
                Some(waited)
            });
            self.halves.insert(request, Half { stream, wait });
            return;
        };
        if is_data(&first.headers) == is_data(&stream.headers) {
            self.halves.insert(request, Half { stream: first, wait });
            return stream.output.reset().await;
        }
        wait.abort();
        let is_second = is_data(&stream.headers) == Some(true);
        let (data, error) = if is_second { (stream, first) } else { (first, stream) };
        let (ports, port) = (self.ports.clone(), port(&data.headers));
        self.running.spawn(async move {
            if let Some(port) = port {
                ports.serve(port, data.input, data.output, error.output).await;
            }
            None
        });
    }

    async fn give_up(&mut self, request: &str) {
        let Some(Half { stream, .. }) = self.halves.remove(request) else { return };
        if is_data(&stream.headers) == Some(false) {
            let why = format!("(request={request}) timed out waiting for streams");
            let _ = stream.output.write(why.into()).await;
        }
        stream.output.end().await;
    }
}
