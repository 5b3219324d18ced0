//! WebSockets (RFC 6455): how a client asks for one, and what a server tells on one without listening.

use std::pin::pin;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{Sink, SinkExt, Stream, StreamExt};
use http::header::{
    HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Method, Response, StatusCode};
use kubewright_codec::rope::WholeLines;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::response_body::ResponseBody;
use super::stream::FAREWELL;
use super::upgrade::{Refused, Upgrade, says};

/// What a server adds to the key of a client to show that it speaks this protocol (RFC 6455, 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest message of a client (`golang.org/x/net/websocket`, `DefaultMaxPayloadBytes`).
const LONGEST: usize = 32 << 20;
/// Bytes that are read or written at a time.
const BUFFER: usize = 16 << 10;

/// The messages of a connection, both ways.
pub(super) trait Socket:
    Stream<Item = Result<Message, Error>> + Sink<Message, Error = Error> + Send + Unpin
{
}

impl<S> Socket for S where
    S: Stream<Item = Result<Message, Error>> + Sink<Message, Error = Error> + Send + Unpin
{
}

/// Whether a client wants a WebSocket.
pub(super) fn is_asked(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// What shows a client that it was understood.
#[derive(Debug)]
pub(super) struct Handshake(HeaderValue);

impl Handshake {
    /// Reads what a client says who wants a WebSocket.
    ///
    /// # Errors
    /// The answer to one who does not ask well (`golang.org/x/net/websocket/hybi.go`, `ReadHandshake`).
    pub(super) fn read(method: &Method, headers: &HeaderMap) -> Result<Self, Refused> {
        if *method != Method::GET {
            return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "bad method").into());
        }
        let Some(key) = headers.get(SEC_WEBSOCKET_KEY).filter(|key| !key.is_empty()) else {
            return Err(refusal(StatusCode::BAD_REQUEST, "mismatch challenge/response").into());
        };
        if !says(headers, &SEC_WEBSOCKET_VERSION, "13") {
            let mut response = refusal(StatusCode::BAD_REQUEST, "missing or bad WebSocket Version");
            response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            return Err(response.into());
        }
        match HeaderValue::try_from(accept(key.as_bytes())) {
            Ok(accept) => Ok(Self(accept)),
            Err(_) => Err(refusal(StatusCode::BAD_REQUEST, "mismatch challenge/response").into()),
        }
    }

    /// Switches over, to the protocol inside it if there is one.
    pub(super) fn accept(self, protocol: &str) -> Response<ResponseBody> {
        let mut response = Upgrade::response("websocket");
        let headers = response.headers_mut();
        headers.insert(SEC_WEBSOCKET_ACCEPT, self.0);
        if !protocol.is_empty()
            && let Ok(protocol) = HeaderValue::from_str(protocol)
        {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

/// The protocols inside a WebSocket that a client speaks, as it likes them.
pub(super) fn protocols(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|value| !value.is_empty()).collect()
}

/// The protocol inside a WebSocket: the first of the client's that is `known`; the one without a name for who asks for none.
///
/// # Errors
/// The answer to a client that speaks none of them.
pub(super) fn protocol(headers: &HeaderMap, known: &[&'static str]) -> Result<&'static str, Refused> {
    let asked = protocols(headers);
    if asked.is_empty() {
        return Ok("");
    }
    let find = |wanted: &&str| known.iter().find(|name| *name == wanted).copied();
    asked.iter().find_map(find).ok_or_else(|| refusal(StatusCode::FORBIDDEN, "").into())
}

/// An answer to who asks for a WebSocket and does not get one.
fn refusal(code: StatusCode, text: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(text));
    *response.status_mut() = code;
    response
}

/// The answer to a client's key.
fn accept(key: &[u8]) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID.as_bytes()].concat()))
}

/// The server's side of a connection that was switched over. Frames that are not masked, or too long, are errors.
pub(super) async fn open<S: AsyncRead + AsyncWrite + Send + Unpin>(connection: S) -> impl Socket {
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(Some(LONGEST))
        .max_frame_size(Some(LONGEST));
    WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await
}

/// A farewell.
pub(super) fn close(code: CloseCode) -> Message {
    Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::from_static("") }))
}

/// What a client is told whose connection cannot go on.
pub(super) fn close_code(error: &Error) -> CloseCode {
    match error {
        Error::Capacity(_) => CloseCode::Size,
        Error::Utf8(_) => CloseCode::Invalid,
        _ => CloseCode::Protocol,
    }
}

/// Switches over to a protocol, and sends messages until there are no more or the client goes.
pub(super) fn answer(
    upgrade: &Upgrade,
    handshake: Handshake,
    protocol: &str,
    messages: impl Stream<Item = Message> + Send + 'static,
) -> Response<ResponseBody> {
    upgrade.go_on(async move |connection| {
        if let Err(error) = send(open(connection).await, messages).await {
            tracing::debug!(%error, "messages to a client ended");
        }
    });
    handshake.accept(protocol)
}

/// The events of a watch: each line of JSON is a message of text, as fabric8's client reads them
/// (`HandleWS` in `k8s.io/apiserver/pkg/endpoints/handlers/watch.go`).
pub(super) fn lines(events: impl Stream<Item = Bytes>) -> impl Stream<Item = Message> {
    let mut whole = WholeLines::default();
    let events = events.filter_map(move |piece| std::future::ready(whole.add(piece)));
    events.flat_map(|bytes| {
        let whole = bytes.clone();
        let lines: Vec<Bytes> =
            bytes.split_inclusive(|byte| *byte == b'\n').map(|line| whole.slice_ref(line)).collect();
        // What is no UTF-8 is no JSON either.
        let texts = lines.into_iter().filter_map(|line| Utf8Bytes::try_from(line).ok());
        futures::stream::iter(texts.map(Message::Text))
    })
}

async fn send(mut socket: impl Socket, messages: impl Stream<Item = Message>) -> Result<(), Error> {
    /// Messages that are there already are sent together.
    const TOGETHER: usize = 64;
    let mut messages = pin!(messages.ready_chunks(TOGETHER));
    loop {
        tokio::select! {
            biased;
            // What it says is passed over.
            message = socket.next() => match message {
                Some(message) => { message?; }
                None => return Ok(()),
            },
            some = messages.next() => {
                let Some(some) = some else { break };
                for message in some {
                    socket.feed(message).await?;
                }
                socket.flush().await?;
            }
        }
    }
    socket.send(close(CloseCode::Normal)).await?;
    let farewell = async { while let Some(Ok(_)) = socket.next().await {} };
    // Who does not answer is left.
    let _ = timeout(FAREWELL, farewell).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    async fn pair() -> (impl Socket, impl Socket) {
        let (client, server) = tokio::io::duplex(1 << 16);
        (WebSocketStream::from_raw_socket(client, Role::Client, None).await, open(server).await)
    }

    /// The example of RFC 6455, 1.3.
    #[test]
    fn a_client_knows_by_the_answer_to_its_key_that_it_was_understood() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[tokio::test]
    async fn each_event_is_a_message_and_a_ping_is_answered() {
        let (mut client, server) = pair().await;
        let (events, seen) = mpsc::channel(2);
        let stream = futures::stream::unfold(seen, async |mut seen| Some((seen.recv().await?, seen)));
        let sending = tokio::spawn(send(server, lines(stream)));
        client.send(Message::text("is ignored")).await.expect("sent");
        client.send(Message::Ping(Bytes::from_static(b"there?"))).await.expect("sent");
        let mut next = async || client.next().await.expect("a message").expect("no error");
        assert_eq!(next().await, Message::Pong(Bytes::from_static(b"there?")));
        events.send(Bytes::from_static(b"{1}\n{2}\n")).await.expect("sent");
        drop(events);
        assert_eq!(next().await, Message::text("{1}\n"));
        assert_eq!(next().await, Message::text("{2}\n"));
        assert_eq!(next().await, close(CloseCode::Normal));
        assert!(client.next().await.is_none(), "and then it ends");
        sending.await.expect("no panic").expect("no error");
    }

    #[tokio::test]
    async fn a_client_that_closes_or_goes_ends_it() {
        for says_farewell in [true, false] {
            let (mut client, server) = pair().await;
            let sending = tokio::spawn(send(server, futures::stream::pending()));
            if says_farewell {
                client.send(close(CloseCode::Normal)).await.expect("sent");
            } else {
                drop(client);
            }
            assert_eq!(sending.await.expect("no panic").is_ok(), says_farewell);
        }
    }

    #[tokio::test]
    async fn frames_that_are_not_masked_are_an_error() {
        use tokio::io::AsyncWriteExt;

        let (mut client, server) = tokio::io::duplex(1 << 10);
        client.write_all(b"\x81\x02ab").await.expect("sent");
        let error = send(open(server).await, futures::stream::pending()).await.unwrap_err();
        assert_eq!(close_code(&error), CloseCode::Protocol);
    }
}
