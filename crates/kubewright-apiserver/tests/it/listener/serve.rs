//! What the listener serves.

use futures::future::try_join_all;
use http_body_util::BodyExt;
use kubewright_apiserver::http::listener::Limits;
use kubewright_world::World;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::client::{get, http1_on, http2_on, text};
use super::server::Server;

const HOUR: std::time::Duration = std::time::Duration::from_secs(3600);

#[tokio::test]
async fn http_1_and_2_are_spoken_as_the_client_asks() {
    let server = Server::start().await;
    let answer = server.http1().await.send_request(get("/who")).await.unwrap();
    assert!(text(answer).await.starts_with("HTTP/1.1 nobody from 127.0.0.1:"));
    let answer = server.http2().await.send_request(get("/who")).await.unwrap();
    assert!(text(answer).await.starts_with("HTTP/2.0 nobody from 127.0.0.1:"));
}

#[tokio::test]
async fn a_client_that_names_no_protocol_gets_http_1() {
    let server = Server::start().await;
    let mut stream = server.tls("", None).await.unwrap();
    stream.write_all(b"GET /who HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.contains("HTTP/1.1 nobody"), "{answer}");
}

#[tokio::test]
async fn the_service_sees_who_the_client_is_on_every_request_of_a_connection() {
    let server = Server::start().await;
    let admin = server.authority.client_certificate("admin", &["system:masters", "other"], HOUR).unwrap();
    let mut http1 = http1_on(server.tls("http/1.1", Some(&admin)).await.unwrap()).await;
    let mut http2 = http2_on(server.tls("h2", Some(&admin)).await.unwrap()).await;
    for _ in 0..2 {
        for answer in [http1.send_request(get("/who")).await, http2.send_request(get("/who")).await] {
            let answer = text(answer.unwrap()).await;
            assert!(answer.contains(" O=system:masters, O=other, CN=admin from 127.0.0.1:"), "{answer}");
        }
    }
}

#[tokio::test]
async fn two_thousand_watches_on_one_connection_leave_room_for_a_write() {
    let server = Server::start().await;
    let client = server.http2().await;
    let watch = || {
        let mut client = client.clone();
        async move {
            let mut watch = client.send_request(get("/watch")).await?;
            let first = watch.frame().await.unwrap()?.into_data().unwrap();
            assert_eq!(first, "ADDED\n");
            Ok::<_, hyper::Error>(watch)
        }
    };
    let watches = tokio::time::timeout(HOUR / 60, try_join_all((0..2000).map(|_| watch())));
    let watches = watches.await.expect("none has to wait for another to end").unwrap();
    assert_eq!(watches.len(), 2000);
    let answer = client.clone().send_request(get("/who")).await.unwrap();
    assert!(text(answer).await.starts_with("HTTP/2.0"));
}

#[tokio::test]
async fn a_panic_in_the_service_ends_at_most_its_own_connection() {
    let server = Server::start().await;
    assert!(server.http1().await.send_request(get("/panic")).await.is_err());
    assert!(server.http2().await.send_request(get("/panic")).await.is_err());
    assert!(server.http1().await.send_request(get("/who")).await.is_ok());
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_while_all_others_are_known_and_wait_for_answers() {
    let server = Server::start_with(&World::real(), Limits { connections: 1, ..Limits::default() }).await;
    let mut first = server.http2().await;
    let watch = first.send_request(get("/watch")).await.unwrap();
    let mut second = std::pin::pin!(server.http1());
    tokio::select! {
        biased;
        _ = &mut second => panic!("it was not made to wait"),
        answer = first.send_request(get("/who")) => assert!(answer.is_ok()),
    }
    drop(watch);
    assert!(second.await.send_request(get("/who")).await.is_ok(), "who asks for nothing makes room");
}
