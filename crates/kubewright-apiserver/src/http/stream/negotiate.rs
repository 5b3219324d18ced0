//! Which protocol a client speaks of those that there are, and the answer to one who speaks none of them.

use std::fmt::Display;

use bytes::Bytes;
use futures::{Sink, SinkExt, StreamExt};
use http::header::{HeaderMap, HeaderName, HeaderValue, UPGRADE};
use http::{Method, Response, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncRead;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::codec::{BytesCodec, FramedWrite};
use tokio_util::io::StreamReader;
use tokio_util::sync::CancellationToken;

use super::super::respond::{self, ResponseBody};
use super::super::upgrade::{Refused, Upgrade};
use super::super::websocket::{self, Handshake, Socket};
use super::channels;
use super::port_forward::{self, Ports};
use super::remote_command::{self, Purpose};
use super::status;
use crate::kubelet::{Session, Streams};

const SPDY: &str = "SPDY/3.1";
/// What a protocol of SPDY is called inside a WebSocket: this, and its name.
const TUNNEL: &str = "SPDY/3.1+";
const ASKED: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const ACCEPTED: HeaderName = HeaderName::from_static("x-accepted-stream-protocol-versions");

/// How a client carries a session with a process.
#[derive(Debug)]
pub(in super::super) enum Sessions {
    /// On channels of a WebSocket.
    Channels { handshake: Handshake, protocol: &'static str, form: channels::Form, told: status::Form },
    /// On streams of SPDY.
    Spdy { protocol: &'static str, version: u8 },
}

impl Sessions {
    /// Finds what a client speaks. Who speaks the fifth version of the channels is served with that; of others the first
    /// one is taken that the client names.
    ///
    /// # Errors
    /// The answer to a client that speaks nothing that is known here.
    pub(in super::super) fn negotiate(method: &Method, headers: &HeaderMap) -> Result<Self, Refused> {
        if !websocket::is_asked(headers) {
            let names = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
            let protocol = spdy_protocol(headers, &names)?;
            let version = names.iter().zip([4, 3, 2, 1]).find(|(name, _)| **name == protocol);
            return Ok(Self::Spdy { protocol, version: version.map_or(1, |(_, version)| version) });
        }
        let handshake = Handshake::read(method, headers)?;
        let asked = websocket::protocols(headers);
        let known: &[&'static str] = match asked.contains(&"v5.channel.k8s.io") {
            true => &["v5.channel.k8s.io"],
            false => {
                &["channel.k8s.io", "base64.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"]
            }
        };
        let protocol = websocket::protocol(headers, known)?;
        let told = match protocol {
            "v5.channel.k8s.io" => status::Form::Nested,
            protocol if protocol.starts_with("v4.") => status::Form::Status,
            _ => status::Form::Text,
        };
        Ok(Self::Channels { handshake, protocol, form: form(protocol), told })
    }

    /// Serves a session, until the server is to stop.
    pub(in super::super) fn serve(
        self,
        upgrade: &Upgrade,
        shutdown: &CancellationToken,
        streams: Streams,
        session: Session,
        purpose: Purpose,
    ) -> Response<ResponseBody> {
        let shutdown = shutdown.clone();
        match self {
            Self::Channels { handshake, protocol, form, told } => {
                upgrade.go_on(move |connection| {
                    until(shutdown, async move {
                        let socket = websocket::open(connection).await;
                        remote_command::over_channels(socket, form, told, streams, session, purpose).await;
                    })
                });
                handshake.accept(protocol)
            }
            Self::Spdy { protocol, version } => {
                upgrade.go_on(move |connection| {
                    until(shutdown, async move {
                        let (reader, writer) = split(connection);
                        remote_command::over_spdy(reader, writer, version, streams, session, purpose).await;
                    })
                });
                spdy_response(protocol)
            }
        }
    }
}

/// How a client carries connections to ports.
#[derive(Debug)]
pub(in super::super) enum Forwarding {
    /// On channels of a WebSocket.
    Channels { handshake: Handshake, protocol: &'static str, form: channels::Form },
    /// On streams of SPDY inside a WebSocket.
    Tunnel { handshake: Handshake, protocol: String },
    /// On streams of SPDY.
    Spdy { protocol: &'static str },
}

impl Forwarding {
    /// Finds what a client speaks.
    ///
    /// # Errors
    /// The answer to a client that speaks nothing that is known here.
    pub(in super::super) fn negotiate(method: &Method, headers: &HeaderMap) -> Result<Self, Refused> {
        let names = ["portforward.k8s.io"];
        if !websocket::is_asked(headers) {
            return Ok(Self::Spdy { protocol: spdy_protocol(headers, &names)? });
        }
        let handshake = Handshake::read(method, headers)?;
        let asked = websocket::protocols(headers);
        let inside = asked.iter().filter_map(|protocol| protocol.strip_prefix(TUNNEL));
        let inside: Vec<&str> = inside.filter(|protocol| protocol.ends_with(".k8s.io")).collect();
        if !inside.is_empty() {
            let protocol = format!("{TUNNEL}{}", choose_spdy(&inside, &names)?);
            return Ok(Self::Tunnel { handshake, protocol });
        }
        let protocol = websocket::protocol(headers, &["v4.channel.k8s.io", "v4.base64.channel.k8s.io"])?;
        Ok(Self::Channels { handshake, protocol, form: form(protocol) })
    }

    /// Whether the ports have to be named beforehand.
    pub(in super::super) fn needs_ports(&self) -> bool {
        matches!(self, Self::Channels { .. })
    }

    /// Forwards to ports, until the server is to stop.
    pub(in super::super) fn serve(
        self,
        upgrade: &Upgrade,
        shutdown: &CancellationToken,
        ports: Ports,
        numbers: Vec<u16>,
    ) -> Response<ResponseBody> {
        let shutdown = shutdown.clone();
        match self {
            Self::Channels { handshake, protocol, form } => {
                upgrade.go_on(move |connection| {
                    until(shutdown, async move {
                        let socket = websocket::open(connection).await;
                        port_forward::over_channels(socket, form, ports, numbers).await;
                    })
                });
                handshake.accept(protocol)
            }
            Self::Tunnel { handshake, protocol } => {
                upgrade.go_on(move |connection| {
                    until(shutdown, async move {
                        let (reader, writer) = tunnel(websocket::open(connection).await);
                        port_forward::over_spdy(reader, writer, ports).await;
                    })
                });
                handshake.accept(&protocol)
            }
            Self::Spdy { protocol } => {
                upgrade.go_on(move |connection| {
                    until(shutdown, async move {
                        let (reader, writer) = split(connection);
                        port_forward::over_spdy(reader, writer, ports).await;
                    })
                });
                spdy_response(protocol)
            }
        }
    }
}

async fn until(shutdown: CancellationToken, work: impl Future<Output = ()>) {
    shutdown.run_until_cancelled(work).await;
}

/// A connection that is SPDY and nothing else.
fn split(
    connection: TokioIo<Upgraded>,
) -> (impl AsyncRead + Unpin, impl Sink<Bytes, Error: Display + Send> + Unpin) {
    let (reader, writer) = tokio::io::split(connection);
    (reader, FramedWrite::new(writer, BytesCodec::new()))
}

/// The bytes inside the messages of a WebSocket.
fn tunnel(socket: impl Socket) -> (impl AsyncRead + Unpin, impl Sink<Bytes, Error: Display + Send> + Unpin) {
    use std::io::{Error, ErrorKind};

    use tokio_tungstenite::tungstenite::Error as Mistake;

    let (sink, messages) = socket.split();
    let bytes = messages.filter_map(async |message| match message {
        Ok(Message::Binary(bytes)) => Some(Ok(bytes)),
        Ok(Message::Text(_)) => Some(Err(Error::new(ErrorKind::InvalidData, "a message of text"))),
        Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_)) => None,
        Err(error) => Some(Err(Error::other(error))),
    });
    let sink = sink.with(|bytes| std::future::ready(Ok::<_, Mistake>(Message::Binary(bytes))));
    (StreamReader::new(Box::pin(bytes)), sink)
}

fn form(protocol: &str) -> channels::Form {
    channels::Form { base64: protocol.contains("base64."), closes: protocol.starts_with("v5.") }
}

/// The protocol on SPDY that a client asks for
/// (`Handshake` and `UpgradeResponse` in `k8s.io/streaming/pkg/httpstream`).
fn spdy_protocol(headers: &HeaderMap, known: &[&'static str]) -> Result<&'static str, Refused> {
    let bad = |why: String| {
        respond::plain_error(StatusCode::BAD_REQUEST, format!("unable to upgrade: {why}\n")).into()
    };
    let values: Vec<&str> = headers.get_all(ASKED).iter().filter_map(|value| value.to_str().ok()).collect();
    if values.is_empty() {
        let count = headers.keys_len();
        return Err(bad(format!(
            "header X-Stream-Protocol-Version does not exist in request with {count} headers"
        )));
    }
    let asked: Vec<&str> = values.iter().flat_map(|value| value.split(',')).map(str::trim).collect();
    let asked: Vec<&str> = asked.into_iter().filter(|protocol| !protocol.is_empty()).collect();
    if asked.is_empty() {
        return Err(bad(format!(
            "header X-Stream-Protocol-Version contains [{}], but no valid protocols",
            values.join(" ")
        )));
    }
    let protocol = choose_spdy(&asked, known)?;
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !upgrade.to_ascii_lowercase().contains("spdy/3.1") {
        return Err(bad("missing upgrade headers in request".to_owned()));
    }
    Ok(protocol)
}

fn choose_spdy(asked: &[&str], known: &[&'static str]) -> Result<&'static str, Refused> {
    let find = |wanted: &&str| known.iter().find(|name| *name == wanted).copied();
    asked.iter().find_map(find).ok_or_else(|| {
        let why = format!(
            "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]\n",
            asked.join(" "),
            known.join(" ")
        );
        let mut response = respond::plain_error(StatusCode::FORBIDDEN, why);
        for name in known {
            response.headers_mut().append(ACCEPTED, HeaderValue::from_static(name));
        }
        response.into()
    })
}

fn spdy_response(protocol: &'static str) -> Response<ResponseBody> {
    let mut response = Upgrade::response(SPDY);
    response.headers_mut().insert(ASKED, HeaderValue::from_static(protocol));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        all.iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn websocket(protocols: &'static str) -> HeaderMap {
        let mut headers = headers(&[
            ("upgrade", "WebSocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ]);
        if !protocols.is_empty() {
            headers.insert("sec-websocket-protocol", HeaderValue::from_static(protocols));
        }
        headers
    }

    #[test]
    fn the_fifth_version_is_taken_wherever_it_stands() {
        let chosen = |protocols| match Sessions::negotiate(&Method::GET, &websocket(protocols)) {
            Ok(Sessions::Channels { protocol, form, told, .. }) => {
                Ok((protocol, form.base64, form.closes, told))
            }
            Ok(other) => panic!("{other:?}"),
            Err(refused) => Err(refused.status().as_u16()),
        };
        use status::Form::{Nested, Status, Text};
        for (asked, expected) in [
            ("v4.channel.k8s.io, v5.channel.k8s.io", Ok(("v5.channel.k8s.io", false, true, Nested))),
            ("x,v4.channel.k8s.io,channel.k8s.io", Ok(("v4.channel.k8s.io", false, false, Status))),
            ("v4.base64.channel.k8s.io", Ok(("v4.base64.channel.k8s.io", true, false, Status))),
            ("base64.channel.k8s.io", Ok(("base64.channel.k8s.io", true, false, Text))),
            ("", Ok(("", false, false, Text))),
            ("v3.channel.k8s.io", Err(403)),
        ] {
            assert_eq!(chosen(asked), expected, "{asked}");
        }
    }

    #[test]
    fn ports_are_forwarded_on_channels_or_in_a_tunnel() {
        let chosen = |protocols| match Forwarding::negotiate(&Method::GET, &websocket(protocols)) {
            Ok(Forwarding::Channels { protocol, .. }) => Ok(protocol.to_owned()),
            Ok(Forwarding::Tunnel { protocol, .. }) => Ok(protocol),
            Ok(other) => panic!("{other:?}"),
            Err(refused) => Err(refused.status().as_u16()),
        };
        let tunnel = "SPDY/3.1+portforward.k8s.io";
        assert_eq!(chosen("SPDY/3.1+portforward.k8s.io"), Ok(tunnel.to_owned()));
        assert_eq!(chosen("SPDY/3.1+other.k8s.io"), Err(403));
        assert_eq!(chosen("v5.channel.k8s.io,v4.channel.k8s.io"), Ok("v4.channel.k8s.io".to_owned()));
        assert_eq!(chosen("v5.channel.k8s.io"), Err(403));
    }

    #[test]
    fn a_websocket_is_asked_for_with_a_key_and_a_version() {
        let refused = |method: &Method, headers: &HeaderMap| {
            Sessions::negotiate(method, headers).map(|_| ()).unwrap_err().status().as_u16()
        };
        assert_eq!(refused(&Method::POST, &websocket("v4.channel.k8s.io")), 405);
        assert_eq!(refused(&Method::GET, &headers(&[("upgrade", "websocket")])), 400);
        let mut old = websocket("v4.channel.k8s.io");
        old.insert("sec-websocket-version", HeaderValue::from_static("8"));
        assert_eq!(refused(&Method::GET, &old), 400);
    }

    #[test]
    fn spdy_has_four_versions() {
        let chosen = |version| {
            let asked = headers(&[("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", version)]);
            match Sessions::negotiate(&Method::POST, &asked) {
                Ok(Sessions::Spdy { version, .. }) => Ok(version),
                Ok(other) => panic!("{other:?}"),
                Err(refused) => {
                    Err((refused.status().as_u16(), refused.headers().get_all(ACCEPTED).iter().count()))
                }
            }
        };
        assert_eq!(chosen("v5.channel.k8s.io,v4.channel.k8s.io,v3.channel.k8s.io"), Ok(4));
        assert_eq!(chosen("channel.k8s.io"), Ok(1));
        assert_eq!(chosen("v9.channel.k8s.io"), Err((403, 4)));
        assert_eq!(chosen(" , "), Err((400, 0)));
        let none = Sessions::negotiate(&Method::POST, &headers(&[("upgrade", "SPDY/3.1")])).unwrap_err();
        assert_eq!(none.status(), 400);
    }
}
