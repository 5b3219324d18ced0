//! How the listener ends.

use std::time::Duration;

use http_body_util::BodyExt;
use kubewright_apiserver::http::listener::Limits;
use kubewright_world::World;
use tokio::net::TcpStream;

use super::client::{get, text};
use super::server::Server;

/// Less than the grace period.
const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn shutdown_ends_watches_and_idle_connections_and_stops_listening() {
    let server = Server::start().await;
    let unused = server.tls("http/1.1", None).await.unwrap();
    let mut http1 = server.http1().await;
    let mut http2 = server.http2().await;
    let mut idle = server.http1().await;
    idle.send_request(get("/who")).await.unwrap();
    let in_handshake = TcpStream::connect(server.address).await.unwrap();
    let mut watches =
        [http1.send_request(get("/watch")).await.unwrap(), http2.send_request(get("/watch")).await.unwrap()];
    for watch in &mut watches {
        assert_eq!(watch.frame().await.unwrap().unwrap().into_data().unwrap(), "ADDED\n");
    }

    server.shutdown.cancel();
    tokio::time::timeout(PATIENCE, server.serving)
        .await
        .expect("it does not wait for the grace period")
        .unwrap();
    for watch in watches {
        let rest = watch.collect().await.expect("it ends as a complete response, not as a broken one");
        assert!(rest.to_bytes().is_empty());
    }
    assert!(TcpStream::connect(server.address).await.is_err());
    drop((unused, in_handshake));
}

#[tokio::test]
async fn after_shutdown_requests_in_flight_are_answered_and_nobody_new_is_accepted() {
    let server = Server::start().await;
    let mut http1 = server.http1().await;
    let mut http2 = server.http2().await;
    let first = tokio::spawn(async move { text(http1.send_request(get("/wait")).await.unwrap()).await });
    server.service.arrived.notified().await;
    let second = tokio::spawn(async move { text(http2.send_request(get("/wait")).await.unwrap()).await });
    server.service.arrived.notified().await;

    server.shutdown.cancel();
    let refused = async { while TcpStream::connect(server.address).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, refused).await.expect("it stops to listen while requests are in flight");
    server.service.go_on.cancel();
    assert_eq!(first.await.unwrap(), "went on");
    assert_eq!(second.await.unwrap(), "went on");
    server.serving.await.unwrap();
}

#[tokio::test]
async fn requests_that_do_not_finish_are_ended_after_the_grace_period() {
    let limits = Limits { grace: Duration::from_millis(50), ..Limits::default() };
    let mut server = Server::start_with(&World::real(), limits).await;
    let mut http1 = server.http1().await;
    let mut http2 = server.http2().await;
    let first = tokio::spawn(async move { http1.send_request(get("/hang")).await.map(drop) });
    server.service.arrived.notified().await;
    let second = tokio::spawn(async move { http2.send_request(get("/hang")).await.map(drop) });
    server.service.arrived.notified().await;

    server.shutdown.cancel();
    server.serving.await.unwrap();
    assert!(first.await.unwrap().is_err());
    assert!(second.await.unwrap().is_err());
    for _ in 0..2 {
        assert_eq!(server.ended.recv().await.unwrap(), "/hang", "the service's work is dropped, too");
    }
}

#[tokio::test]
async fn dropping_the_server_ends_everything_at_once() {
    let mut server = Server::start().await;
    let mut http1 = server.http1().await;
    let mut http2 = server.http2().await;
    let first = tokio::spawn(async move { http1.send_request(get("/hang")).await.map(drop) });
    server.service.arrived.notified().await;
    let second = tokio::spawn(async move { http2.send_request(get("/hang")).await.map(drop) });
    server.service.arrived.notified().await;

    server.serving.abort();
    assert!(server.serving.await.unwrap_err().is_cancelled());
    assert!(first.await.unwrap().is_err());
    assert!(second.await.unwrap().is_err());
    for _ in 0..2 {
        assert_eq!(server.ended.recv().await.unwrap(), "/hang");
    }
    assert!(TcpStream::connect(server.address).await.is_err());
}
