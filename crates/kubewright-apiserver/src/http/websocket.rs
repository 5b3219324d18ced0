//! Watches over WebSocket (RFC 6455), as fabric8's client asks for them: each event is a message of text
//! (`HandleWS` in `k8s.io/apiserver/pkg/endpoints/handlers/watch.go`).

use std::io;
use std::pin::pin;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::request::Parts;
use http::{Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::response_body::ResponseBody;

/// What a server adds to the key of a client to show that it speaks this protocol (RFC 6455, 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The last frame of a message, with what is in it.
const FINAL: u8 = 0x80;
const TEXT: u8 = 0x1;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

/// A connection that a client wants to go on with as a WebSocket.
pub(super) struct Upgrade {
    accept: HeaderValue,
    connection: OnUpgrade,
}

impl Upgrade {
    /// `None` when the client does not want that, or the connection is none that can.
    pub(super) fn of(request: &Parts) -> Option<Self> {
        let headers = &request.headers;
        let wanted = says(headers, &CONNECTION, "upgrade")
            && says(headers, &UPGRADE, "websocket")
            && says(headers, &SEC_WEBSOCKET_VERSION, "13");
        let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| wanted)?;
        let connection = request.extensions.get::<OnUpgrade>()?.clone();
        Some(Self { accept: HeaderValue::from_str(&accept(key.as_bytes())).ok()?, connection })
    }

    /// Switches over, and sends events (lines of JSON) until there are no more or the client goes.
    pub(super) fn answer(
        &self,
        events: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Response<ResponseBody> {
        let connection = self.connection.clone();
        tokio::spawn(async move {
            let sent = match connection.await {
                Ok(upgraded) => send(TokioIo::new(upgraded), events).await,
                Err(error) => Err(io::Error::other(error)),
            };
            if let Err(error) = sent {
                tracing::debug!(%error, "a watch over WebSocket ended");
            }
        });
        let mut response = Response::new(ResponseBody::whole(Bytes::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, self.accept.clone());
        response
    }
}

/// Whether a header has this word among its values.
fn says(headers: &HeaderMap, name: &http::HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
}

/// The answer to a client's key.
fn accept(key: &[u8]) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID.as_bytes()].concat()))
}

async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    events: impl Stream<Item = Bytes>,
) -> io::Result<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let (pings, mut asked) = mpsc::channel(1);
    let mut reading = pin!(read(reader, pings));
    let mut events = pin!(events);
    loop {
        tokio::select! {
            biased;
            Some(payload) = asked.recv() => writer.write_all(&frame(PONG, &payload)).await?,
            ended = &mut reading => {
                ended?;
                break;
            }
            event = events.next() => {
                let Some(bytes) = event else { break };
                for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                    writer.write_all(&frame(TEXT, line)).await?;
                }
            }
        }
        writer.flush().await?;
    }
    writer.write_all(&frame(CLOSE, &[])).await?;
    writer.shutdown().await
}

/// A whole message, or a control frame. A server does not mask what it sends.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![FINAL | kind];
    match payload.len() {
        length @ ..126 => frame.push(length as u8),
        length => match u16::try_from(length) {
            Ok(length) => {
                frame.push(126);
                frame.extend(length.to_be_bytes());
            }
            Err(_) => {
                frame.push(127);
                frame.extend((length as u64).to_be_bytes());
            }
        },
    }
    frame.extend(payload);
    frame
}

/// Reads what the client sends until it says farewell. Messages are skipped: a watch listens to nothing.
async fn read(mut reader: impl AsyncRead + Unpin, pings: mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    loop {
        let [kind, length] = read_array(&mut reader).await?;
        let length = match length & 0x7f {
            126 => u64::from(u16::from_be_bytes(read_array(&mut reader).await?)),
            127 => u64::from_be_bytes(read_array(&mut reader).await?),
            length => u64::from(length),
        };
        let mask: [u8; 4] = read_array(&mut reader).await?;
        match kind & 0xf {
            PING if length < 126 => {
                let mut payload = vec![0; usize::try_from(length).unwrap_or_default()];
                reader.read_exact(&mut payload).await?;
                for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
                    *byte ^= mask;
                }
                if pings.send(payload).await.is_err() {
                    return Ok(());
                }
            }
            CLOSE => return Ok(()),
            _ => {
                let skipped =
                    tokio::io::copy(&mut (&mut reader).take(length), &mut tokio::io::sink()).await?;
                if skipped < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
}

async fn read_array<const N: usize>(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as a client sends it: masked.
    fn masked(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let mut bytes = vec![FINAL | kind, 0x80 | payload.len() as u8];
        bytes.extend(mask);
        bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        bytes
    }

    /// The example of RFC 6455, 1.3.
    #[test]
    fn a_client_knows_by_the_answer_to_its_key_that_it_was_understood() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn the_length_of_a_frame_takes_the_bytes_that_it_needs() {
        assert_eq!(frame(TEXT, b"abc"), b"\x81\x03abc");
        assert_eq!(frame(TEXT, &[0; 126])[..4], [0x81, 126, 0, 126]);
        assert_eq!(frame(TEXT, &[0; 65536])[..10], [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[tokio::test]
    async fn each_event_is_a_message_and_a_ping_is_answered() {
        let (client, server) = tokio::io::duplex(1 << 16);
        let (mut reader, mut writer) = tokio::io::split(client);
        writer.write_all(&masked(TEXT, b"is ignored")).await.expect("sent");
        writer.write_all(&masked(PING, b"there?")).await.expect("sent");
        let (events, seen) = mpsc::channel(2);
        let stream = futures::stream::unfold(seen, async |mut seen| Some((seen.recv().await?, seen)));
        let sending = tokio::spawn(send(server, stream));
        let mut pong = [0; 8];
        reader.read_exact(&mut pong).await.expect("a pong");
        assert_eq!(&pong, b"\x8a\x06there?");
        events.send(Bytes::from_static(b"{1}\n{2}\n")).await.expect("sent");
        drop(events);
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).await.expect("until it ends");
        assert_eq!(rest, b"\x81\x04{1}\n\x81\x04{2}\n\x88\x00", "two messages and a close");
        sending.await.expect("no panic").expect("no error");
    }

    #[tokio::test]
    async fn a_client_that_closes_or_goes_ends_it() {
        for farewell in [masked(CLOSE, &[]), Vec::new()] {
            let (mut client, server) = tokio::io::duplex(1 << 10);
            let sending = tokio::spawn(send(server, futures::stream::pending()));
            client.write_all(&farewell).await.expect("sent");
            client.shutdown().await.expect("closed");
            let ended = sending.await.expect("no panic");
            assert_eq!(ended.is_ok(), !farewell.is_empty(), "{ended:?}");
        }
    }
}
