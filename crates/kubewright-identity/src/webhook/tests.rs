//! Webhooks behind real sockets on the loopback (in real time), and in this process (in virtual time).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kubewright_world::World;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{Client, Failure, Local, Place, Resolve, Target};

/// No cluster has a service.
struct NoServices;

impl Resolve for NoServices {
    fn resolve(&self, _: &str, name: &str, _: u16) -> Result<Place, String> {
        Err(format!("service {name:?} not found"))
    }
}

/// A certificate authority and a serving certificate of its own.
struct Certificates {
    authority: String,
    leaf: String,
    server: Arc<ServerConfig>,
}

fn certificates(names: &[&str], until: (i32, u8, u8)) -> Certificates {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("entropy"));
    let issuer = issuer.expect("a good authority");
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).expect("good names");
    params.not_after = rcgen::date_time_ymd(until.0, until.1, until.2);
    let key = KeyPair::generate().expect("entropy");
    let leaf = params.signed_by(&key, &issuer).expect("a good certificate");
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key.into());
    let mut server = server.expect("a good key");
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Certificates { authority: issuer.pem(), leaf: leaf.pem(), server: Arc::new(server) }
}

/// A server that answers what it is sent, after `delay`; counts its connections.
async fn serve(tls: Arc<ServerConfig>, delay: Duration) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let tls = TlsAcceptor::from(Arc::clone(&tls));
            tokio::spawn(async move {
                let Ok(stream) = tls.accept(stream).await else { return };
                let echo = service_fn(move |request: Request<Incoming>| async move {
                    tokio::time::sleep(delay).await;
                    let version = format!("{:?}", request.version());
                    let query = request.uri().to_string();
                    let body = request.into_body().collect().await?.to_bytes();
                    let answer = Response::builder().header("content-type", "application/json").body(
                        Full::new(Bytes::from(format!(
                            "{version} {} {}",
                            query.split("//").last().unwrap_or(""),
                            String::from_utf8_lossy(&body)
                        ))),
                    );
                    Ok::<_, hyper::Error>(answer.expect("a good response"))
                });
                let _ = auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), echo)
                    .await;
            });
        }
    });
    (address, connections)
}

async fn post(client: &Client, url: &str, bundle: &str) -> Result<String, Failure> {
    let config = json!({"url": url, "caBundle": STANDARD.encode(bundle)});
    let target = Target::read(&config).map_err(Failure::Setup)?;
    let body = Bytes::from_static(b"{}");
    let answer = client.post(&target, &NoServices, body, Duration::from_millis(500)).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn client() -> Client {
    Client::new(World::simulated(1).clock)
}

#[tokio::test]
async fn a_bundle_may_be_the_authority_or_the_leaf_itself() {
    let found = certificates(&["127.0.0.1"], (2096, 1, 1));
    let (address, connections) = serve(found.server, Duration::ZERO).await;
    let url = format!("https://{address}/validate");
    for bundle in [&found.authority, &found.leaf] {
        let client = client();
        for _ in 0..3 {
            let answer = post(&client, &url, bundle).await.expect("a good answer");
            assert!(
                answer.starts_with("HTTP/2.0 ") && answer.ends_with("/validate?timeout=1s {}"),
                "{answer}"
            );
        }
    }
    assert_eq!(connections.load(Ordering::SeqCst), 2, "a connection is used again");
}

#[tokio::test]
async fn certificates_that_nobody_vouches_for_are_refused_in_gos_words() {
    let (good, other) =
        (certificates(&["127.0.0.1"], (2096, 1, 1)), certificates(&["127.0.0.1"], (2096, 1, 1)));
    let named = certificates(&["hook.example.com"], (2096, 1, 1));
    let expired = certificates(&["127.0.0.1"], (2020, 1, 1));
    for (server, bundle, why) in [
        (
            &good,
            &other.authority,
            "certificate signed by unknown authority (possibly because of \"x509: ECDSA verification failure\" while trying to verify candidate authority certificate \"rcgen self signed cert\")",
        ),
        (&good, &String::new(), "certificate signed by unknown authority"),
        (
            &named,
            &named.leaf,
            "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
        ),
        (&expired, &expired.leaf, "certificate has expired or is not yet valid: current time "),
    ] {
        let (address, _) = serve(Arc::clone(&server.server), Duration::ZERO).await;
        let url = format!("https://{address}/x");
        let failure = post(&client(), &url, bundle).await.expect_err(why).to_string();
        let expected = format!("Post \"{url}?timeout=1s\": tls: failed to verify certificate: x509: {why}");
        assert!(failure.starts_with(&expected), "{failure}");
    }
    let failure = post(&client(), "https://127.0.0.1:1/x", "nonsense").await;
    let why = "unable to load root certificates: unable to parse bytes as PEM block";
    assert_eq!(failure, Err(Failure::Setup(why.to_owned())));
}

#[tokio::test]
async fn what_does_not_answer_says_why() {
    let failure = post(&client(), "https://127.0.0.1:1/x", "").await.expect_err("nobody listens");
    assert_eq!(
        failure.to_string(),
        r#"Post "https://127.0.0.1:1/x?timeout=1s": dial tcp 127.0.0.1:1: connect: connection refused"#
    );
    let slow = certificates(&["127.0.0.1"], (2096, 1, 1));
    let (address, _) = serve(slow.server, Duration::from_secs(60)).await;
    let failure = post(&client(), &format!("https://{address}/x"), &slow.leaf).await.expect_err("too slow");
    assert_eq!(
        failure.to_string(),
        format!(r#"Post "https://{address}/x?timeout=1s": context deadline exceeded"#)
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, answer).await.expect("the client is there");
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
    let failure = post(&client(), &format!("https://{address}/x"), "").await.expect_err("no TLS");
    assert!(failure.to_string().ends_with("http: server gave HTTP response to HTTPS client"), "{failure}");
}

/// Answers after a minute.
struct Slow;

impl Local for Slow {
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        (request.uri().host() == Some("slow.ns.svc")).then(|| {
            async {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Response::new(Bytes::from_static(b"{}"))
            }
            .boxed()
        })
    }
}

/// Sends everybody from `/old` to `/new`, and from `/round` in circles.
struct Moved;

impl Local for Moved {
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        let answer = match request.uri().path() {
            "/old" => Response::builder().status(307).header("location", "/new").body(Bytes::new()),
            "/round" => Response::builder().status(308).header("location", "/round").body(Bytes::new()),
            _ => Response::builder().body(Bytes::from(format!("{} {}", request.method(), request.uri()))),
        };
        Some(async move { answer.expect("a good response") }.boxed())
    }
}

#[tokio::test(start_paused = true)]
async fn redirects_are_followed_ten_times_at_most() {
    let client = client();
    client.attach(Arc::new(Moved));
    assert_eq!(post(&client, "https://a.test/old", "").await.as_deref(), Ok("POST https://a.test/new"));
    let failure = post(&client, "https://a.test/round", "").await.expect_err("no end").to_string();
    assert_eq!(failure, r#"Post "https://a.test/round": stopped after 10 redirects"#);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_of_this_process_needs_no_socket_and_is_timed_by_the_worlds_clock() {
    let client = client();
    client.attach(Arc::new(Slow));
    let call = |name: &str, seconds: u64| {
        let target = Target::read(&json!({"service": {"namespace": "ns", "name": name}}));
        let client = &client;
        async move {
            let body = Bytes::from_static(b"{}");
            let target = target.expect("a good target");
            client.post(&target, &NoServices, body, Duration::from_secs(seconds)).await
        }
    };
    assert_eq!(call("slow", 61).await, Ok(Bytes::from_static(b"{}")));
    let failure = call("slow", 59).await.expect_err("too slow");
    assert_eq!(
        failure.to_string(),
        r#"Post "https://slow.ns.svc:443/?timeout=59s": context deadline exceeded"#
    );
    let failure = call("other", 5).await.expect_err("no such service");
    assert_eq!(
        failure.to_string(),
        r#"Post "https://other.ns.svc:443/?timeout=5s": service "other" not found"#
    );
}
