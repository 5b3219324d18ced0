//! What the listener refuses, and that this costs nobody else anything.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::try_join_all;
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewright_apiserver::http::listener::{Limits, Listener};
use kubewright_serve::authority::Authority;
use kubewright_world::World;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::client::{Http2, get};
use super::server::Server;

const HOUR: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(100);

/// The server is well: it answers a new client.
async fn is_well(server: &Server) {
    assert!(server.http2().await.send_request(get("/who")).await.is_ok());
}

#[tokio::test]
async fn a_port_in_use_is_a_clear_and_early_error() {
    let taken = Listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let error = Listener::bind(taken.local_addr()).await.unwrap_err();
    assert_eq!(error.source.kind(), std::io::ErrorKind::AddrInUse);
    let expected = format!("cannot listen on {}: another program listens there already", taken.local_addr());
    assert_eq!(error.to_string(), expected);
}

/// Who is trusted is for the service to say, as in kube-apiserver: `authn::certificate` has the tests.
#[tokio::test]
async fn a_certificate_of_a_stranger_does_not_break_the_handshake() {
    let server = Server::start().await;
    let stranger = Authority::new(&World::real()).unwrap();
    let forged = stranger.client_certificate("admin", &["system:masters"], HOUR).unwrap();
    for alpn in ["http/1.1", "h2"] {
        assert!(server.tls(alpn, Some(&forged)).await.is_ok());
    }
    is_well(&server).await;
}

#[tokio::test]
async fn who_shows_a_certificate_must_have_its_key() {
    let server = Server::start().await;
    let admin = server.authority.client_certificate("admin", &["system:masters"], HOUR).unwrap();
    let other = server.authority.client_certificate("other", &[], HOUR).unwrap();
    let stolen = server.tls_with(admin.certificate_der(), other.key_der()).await;
    let refused = match stolen {
        Err(_) => true,
        // With TLS 1.3 a client learns that it was refused only after its own part of the handshake.
        Ok(mut stream) => {
            let _ = stream.write_all(b"GET /who HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
            !matches!(stream.read(&mut [0; 64]).await, Ok(1..))
        }
    };
    assert!(refused);
    is_well(&server).await;
}

#[tokio::test]
async fn oversized_heads_are_answered_with_431() {
    let server = Server::start().await;
    let mut long = get("/who");
    long.headers_mut().insert("x-long", HeaderValue::from_str(&"x".repeat(70_000)).unwrap());
    let answer = server.http1().await.send_request(long.clone()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    let answer = server.http2().await.send_request(long).await.unwrap();
    assert_eq!(answer.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);

    let mut stream = server.tls("http/1.1", None).await.unwrap();
    stream.write_all(format!("GET /{} HTTP/1.1\r\n", "x".repeat(70_000)).as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 4"), "{answer:?}");

    let mut many = get("/who");
    for _ in 0..200 {
        many.headers_mut().append("x-many", HeaderValue::from_static("1"));
    }
    let answer = server.http1().await.send_request(many).await.unwrap();
    assert_eq!(answer.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}

#[tokio::test]
async fn a_long_token_and_many_groups_to_impersonate_fit() {
    let server = Server::start().await;
    let mut big = get("/who");
    big.headers_mut().insert("authorization", HeaderValue::from_str(&"x".repeat(16_000)).unwrap());
    for _ in 0..100 {
        big.headers_mut()
            .append("impersonate-group", HeaderValue::from_static("system:serviceaccounts:some-namespace"));
    }
    assert_eq!(server.http1().await.send_request(big.clone()).await.unwrap().status(), StatusCode::OK);
    assert_eq!(server.http2().await.send_request(big).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn plain_http_on_the_port_is_told_so() {
    let server = Server::start().await;
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
    is_well(&server).await;
}

#[tokio::test]
async fn rubbish_and_clients_that_leave_at_once_do_no_harm() {
    let server = Server::start().await;
    for rubbish in [&b"\x16\x03\x01\xff\xff\x00"[..], b"\x00\x00\x00", b"\xff", b"SSH-2.0-x\r\n", b""] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(rubbish).await.unwrap();
        stream.shutdown().await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
        drop(TcpStream::connect(server.address).await.unwrap());
    }
    is_well(&server).await;
}

#[tokio::test]
async fn a_client_that_never_finishes_its_handshake_blocks_nobody() {
    let server = Server::start().await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"\x16\x03\x01").await.unwrap();
        silent.push(stream);
    }
    is_well(&server).await;
}

/// The server ends this connection, and not only after one of the default limits.
async fn is_cut_off(mut stream: impl AsyncRead + Unpin) {
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(SOON * 50, stream.read_to_end(&mut rest)).await.expect("it is cut off");
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_is_cut_off() {
    let server = Server::start_with(&World::real(), Limits { handshake: SOON, ..Limits::default() }).await;
    for sent in [&b""[..], b"\x16\x03\x01"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        is_cut_off(stream).await;
    }
}

#[tokio::test]
async fn a_head_that_takes_too_long_is_cut_off_but_a_watch_may_be_quiet() {
    let server = Server::start_with(&World::real(), Limits { request_head: SOON, ..Limits::default() }).await;
    let (mut http1, mut http2) = (server.http1().await, server.http2().await);
    let mut watches =
        [http1.send_request(get("/watch")).await.unwrap(), http2.send_request(get("/watch")).await.unwrap()];

    for (alpn, sent) in
        [("http/1.1", &b""[..]), ("http/1.1", b"GET /who HT"), ("h2", b""), ("h2", b"PRI * HTTP/2.0\r\n")]
    {
        let mut stream = server.tls(alpn, None).await.unwrap();
        stream.write_all(sent).await.unwrap();
        is_cut_off(stream).await;
    }
    for watch in &mut watches {
        assert_eq!(watch.frame().await.unwrap().unwrap().into_data().unwrap(), "ADDED\n");
    }
    server.shutdown.cancel();
    for watch in watches {
        assert!(watch.collect().await.unwrap().to_bytes().is_empty());
    }
}

#[tokio::test]
async fn a_client_that_stops_reading_costs_little_and_is_dropped() {
    let limits = Limits { ping_after: SOON, ping_answer: SOON, ..Limits::default() };
    let mut server = Server::start_with(&World::real(), limits).await;
    // A client whose system takes little, that allows the server any amount, asks, and never reads an answer.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let connected = socket.connect(server.address).await.unwrap();
    let mut stream = server.tls_on(connected, "h2", None).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    // SETTINGS: an initial window of 2^31 - 1 bytes; WINDOW_UPDATE: as much for the connection.
    stream.write_all(b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff").await.unwrap();
    stream.write_all(b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0").await.unwrap();
    // HEADERS, the last of stream 1: GET, https, a path and an authority.
    stream.write_all(b"\0\0\x15\x01\x05\0\0\0\x01\x82\x87\x04\x06/flood\x01\x09localhost").await.unwrap();

    let ended = tokio::time::timeout(SOON * 100, server.ended.recv()).await.expect("it is dropped");
    assert_eq!(ended.unwrap(), "/flood");
    let flooded = server.service.flooded.load(Ordering::Relaxed);
    // Most of it is in the send buffer of the server's system, which takes 4 MiB at most.
    assert!(flooded < 8 << 20, "{flooded} bytes");
    is_well(&server).await;
}

/// A client on which streams have a window of `stream` bytes, and all of them together one of 64 KiB.
async fn narrow_http2(server: &Server, stream: u32) -> Http2 {
    let tls = server.tls("h2", None).await.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(stream).initial_connection_window_size(64 << 10);
    let (client, connection) = builder.handshake(TokioIo::new(tls)).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn no_more_is_made_than_one_connection_has_room_for_whatever_the_number_of_its_streams() {
    let server = Server::start().await;
    let client = narrow_http2(&server, 0).await;
    let flood = || client.clone().send_request(get("/flood"));
    let floods = try_join_all((0..2000).map(|_| flood())).await.unwrap();
    // By the time that the head of a response is there, its first piece was asked for.
    let flooded = server.service.flooded.load(Ordering::Relaxed);
    assert!((1..=1 << 20).contains(&flooded), "{flooded} bytes");
    drop(floods);
}

#[tokio::test]
async fn a_response_that_is_not_read_is_cut_off_and_the_connection_goes_on() {
    let limits = Limits { unread: SOON, ..Limits::default() };
    let mut server = Server::start_with(&World::real(), limits).await;
    let (mut http1, mut http2) = (server.http1().await, narrow_http2(&server, 1 << 14).await);
    let mut watch = http2.send_request(get("/watch")).await.unwrap();
    let unread =
        [http1.send_request(get("/flood")).await.unwrap(), http2.send_request(get("/flood")).await.unwrap()];
    for _ in &unread {
        let ended = tokio::time::timeout(SOON * 100, server.ended.recv()).await.expect("it is cut off");
        assert_eq!(ended.unwrap(), "/flood");
    }
    for response in unread {
        assert!(response.collect().await.is_err(), "it does not look like a complete one");
    }
    assert_eq!(watch.frame().await.unwrap().unwrap().into_data().unwrap(), "ADDED\n");
    assert!(http2.send_request(get("/who")).await.is_ok());
}

#[tokio::test]
async fn a_connection_of_http_2_on_which_nobody_is_known_ends_after_its_request() {
    let server = Server::start().await;
    let tls = server.tls("h2", None).await.unwrap();
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(tls)).await.unwrap();
    let connection = tokio::spawn(connection);
    assert_eq!(client.send_request(get("/stranger")).await.unwrap().status(), StatusCode::OK);
    let ended = tokio::time::timeout(SOON * 100, connection).await.expect("it is ended");
    ended.unwrap().expect("in good order");
    drop(client);
}

#[tokio::test]
async fn idle_strangers_make_room_and_who_waits_for_an_answer_stays() {
    let limits = Limits { connections: 8, ..Limits::default() };
    let server = Server::start_with(&World::real(), limits).await;
    let mut known = server.http1().await;
    let mut watch = known.send_request(get("/watch")).await.unwrap();
    let mut strangers = Vec::new();
    for _ in 0..20 {
        strangers.push(TcpStream::connect(server.address).await.unwrap());
        let mut asks = server.http1().await;
        assert!(asks.send_request(get("/stranger")).await.is_ok());
    }
    is_well(&server).await;
    is_cut_off(strangers.remove(0)).await;
    assert_eq!(watch.frame().await.unwrap().unwrap().into_data().unwrap(), "ADDED\n");
}

#[tokio::test]
async fn a_cancelled_watch_ends_in_the_service() {
    let mut server = Server::start().await;
    let (mut http1, mut http2) = (server.http1().await, server.http2().await);
    for watch in
        [http1.send_request(get("/flood")).await.unwrap(), http2.send_request(get("/flood")).await.unwrap()]
    {
        drop(watch);
        assert_eq!(server.ended.recv().await.unwrap(), "/flood");
    }
}
