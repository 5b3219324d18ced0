//! The endpoints without a socket, in virtual time; one test with sockets.

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::{Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::service_fn;
use tracing_subscriber::Registry;

use super::{
    Access, HealthServer, MetricsServer, Servers, Tls,
    access::Guard,
    debug::DebugHandlers,
    endpoint::{Endpoint, HttpResponse, respond},
    health::Health,
    metrics::{Scrape, is_loopback},
};
use crate::{Metrics, health::Checks, journal::Journals, logging::LogLevel};

/// An API server that knows the tokens `reader` and `stranger`, of which the first may read `/metrics` and change the log level; and
/// the reviews that it was asked for. The token `down` makes it fail.
fn reviewer() -> (Client, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let service = service_fn(move |request: Request<Body>| {
        let log = log.clone();
        async move {
            let bytes = request.into_body().collect_bytes().await?;
            let mut review: Value = serde_json::from_slice(&bytes)?;
            log.lock().push(review["kind"].as_str().unwrap_or_default().to_owned());
            let mut code = StatusCode::CREATED;
            if review["kind"] == "TokenReview" {
                let token = review["spec"]["token"].as_str().unwrap_or_default().to_owned();
                if token == "down" {
                    code = StatusCode::INTERNAL_SERVER_ERROR;
                }
                let known = token == "reader" || token == "stranger";
                review["status"] =
                    json!({"authenticated": known, "user": {"username": token, "groups": ["g"]}});
            } else {
                let spec = &review["spec"];
                let questions = [
                    json!({"path": "/metrics", "verb": "get"}),
                    json!({"path": "/debug/loglevel", "verb": "put"}),
                ];
                let allowed = spec["user"] == "reader"
                    && questions.contains(&spec["nonResourceAttributes"])
                    && spec["groups"] == json!(["g"]);
                review["status"] = json!({"allowed": allowed});
            }
            let answer = if code.is_success() { review } else { json!({"kind": "Status", "code": 500}) };
            Response::builder()
                .status(code)
                .body(Body::from(serde_json::to_vec(&answer)?))
                .map_err(crate::BoxError::from)
        }
    });
    (Client::new(service, "default"), asked)
}

fn request(path: &str, token: Option<&str>) -> Parts {
    let mut request = Request::get(path);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    request.body(()).expect("a request").into_parts().0
}

async fn read(answer: HttpResponse) -> (u16, String) {
    let status = answer.status().as_u16();
    let Ok(body) = answer.into_body().collect().await;
    (status, String::from_utf8(body.to_bytes().to_vec()).expect("text"))
}

fn scrape(access: Access, client: Client) -> Scrape {
    let (metrics, journals, guard) = (Metrics::new(), Journals::default(), Guard::new(access, client));
    let (debug, may_change) = (DebugHandlers::default(), access == Access::Authorized);
    Scrape { metrics, journals, debug, guard, level: None, may_change }
}

/// A log level that nothing is logged by.
fn level() -> &'static LogLevel {
    let (filter, level) = LogLevel::new::<Registry>("info").expect("a level");
    Box::leak(Box::new(filter));
    Box::leak(Box::new(level))
}

fn put(path: &str, token: Option<&str>) -> Parts {
    let mut parts = request(path, token);
    parts.method = Method::PUT;
    parts
}

#[tokio::test(start_paused = true)]
async fn the_log_level_is_changed_by_who_may_put_it() {
    let (client, _) = reviewer();
    let guarded = Scrape { level: Some(level()), ..scrape(Access::Authorized, client) };
    let ask = async |request: Parts| read(respond(&guarded, &request).await).await;
    let path = "/debug/loglevel?level=debug,kube%3Dwarn";
    assert_eq!(ask(put(path, None)).await.0, 401);
    assert_eq!(ask(put(path, Some("stranger"))).await.0, 403);
    assert_eq!(ask(request("/debug/loglevel", Some("reader"))).await.0, 403, "to read it is another right");
    let changed = r#"{"level":"debug,kube=warn"}"#.to_owned();
    assert_eq!(ask(put(path, Some("reader"))).await, (200, changed.clone()));
    for (wrong, why) in [
        ("?level=kube%3Dloud", "the log level \"kube=loud\": "),
        ("", "which level? "),
        ("?level=", "which level? "),
    ] {
        let (status, text) = ask(put(&format!("/debug/loglevel{wrong}"), Some("reader"))).await;
        assert!(status == 400 && text.starts_with(why), "{wrong}: {status} {text}");
    }
    assert_eq!(guarded.level.map(LogLevel::get), Some("debug,kube=warn".to_owned()));
    assert_eq!(ask(put("/metrics", Some("reader"))).await.0, 405);
}

#[tokio::test(start_paused = true)]
async fn where_everybody_may_read_the_log_level_is_changed_on_this_machine_alone() {
    let (client, _) = reviewer();
    let mut open = Scrape { level: Some(level()), ..scrape(Access::Everybody, client) };
    let path = "/debug/loglevel?level=trace";
    let told = (200, r#"{"level":"info"}"#.to_owned());
    assert_eq!(read(respond(&open, &put(path, None)).await).await.0, 403);
    assert_eq!(read(respond(&open, &request("/debug/loglevel", None)).await).await, told);
    for (address, is_local) in [
        ("127.0.0.1:8080", true),
        ("[::1]:8080", true),
        ("localhost:8080", true),
        (":8080", false),
        ("0.0.0.0:8080", false),
        ("10.1.2.3:8080", false),
    ] {
        assert_eq!(is_loopback(address), is_local, "{address}");
    }
    open.may_change = true;
    assert_eq!(read(respond(&open, &put(path, None)).await).await, (200, r#"{"level":"trace"}"#.to_owned()));
    open.level = None;
    let status = read(respond(&open, &request("/debug/loglevel", None)).await).await.0;
    assert_eq!(status, 404, "somebody else writes the logs");
}

#[test]
fn all_addresses_are_those_that_the_program_has_to_itself() {
    for (address, own, there) in [
        (":8081", None, "[::]:8081"),
        (":8081", Some("127.64.0.7"), "127.64.0.7:8081"),
        (":8081", Some("fd00::7"), "[fd00::7]:8081"),
        (":8081", Some("a name"), "[::]:8081"),
        ("0.0.0.0:8081", Some("127.64.0.7"), "0.0.0.0:8081"),
        ("localhost:8081", Some("127.64.0.7"), "localhost:8081"),
    ] {
        assert_eq!(super::endpoint::on(address, own), there, "{address} {own:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_who_may_reads_the_metrics_and_the_others_are_told_why_not() {
    let (client, _) = reviewer();
    let scrape = scrape(Access::Authorized, client);
    let ask = async |token| read(respond(&scrape, &request("/metrics", token)).await).await;
    assert_eq!(ask(None).await, (401, "Unauthorized\n".to_owned()));
    assert_eq!(ask(Some("unknown")).await, (401, "Unauthorized\n".to_owned()));
    let denied = "Authorization denied for user stranger\n";
    assert_eq!(ask(Some("stranger")).await, (403, denied.to_owned()));
    assert_eq!(ask(Some("down")).await, (500, "Authentication failed\n".to_owned()));
    let (status, text) = ask(Some("reader")).await;
    assert!(status == 200 && text.contains("# TYPE certwatcher_read_certificate_total counter\n"));
    let (status, _) = read(respond(&scrape, &request("/debug", Some("reader"))).await).await;
    assert_eq!(status, 403, "another path is another right");
}

#[tokio::test(start_paused = true)]
async fn what_controllers_did_last_is_told_to_who_may_see_it() {
    let path = "/debug/reconciles";
    let (client, _) = reviewer();
    let guarded = scrape(Access::Authorized, client.clone());
    assert_eq!(read(respond(&guarded, &request(path, None)).await).await.0, 401);
    assert_eq!(read(respond(&guarded, &request(path, Some("reader"))).await).await.0, 403);
    let open = scrape(Access::Everybody, client);
    open.journals.begin("web".into());
    let (status, text) = read(respond(&open, &request(path, None)).await).await;
    let told: Value = serde_json::from_str(&text).expect("JSON");
    let of_web = json!({"controller": "web", "waiting": 0, "failing": [], "reconciles": []});
    assert_eq!((status, told), (200, json!({"controllers": [of_web]})));
}

#[tokio::test(start_paused = true)]
async fn an_operators_own_handlers_are_for_those_who_may_see_them() {
    let own = |debug: &mut DebugHandlers| {
        let told =
            |request: Parts| async move { Response::new(request.uri.query().unwrap_or("none").into()) };
        debug.add("/debug/own".to_owned(), told).expect("the path is free");
        let taken = debug.add("/debug/own".to_owned(), told).expect_err("it is not free any more");
        assert!(taken.contains("there is a handler of /debug/own already"), "{taken}");
        assert!(debug.add("/debug/loglevel".to_owned(), told).is_err());
        for path in ["/own", "/debug", "/metrics", "/debug/a?b"] {
            let wrong = debug.add(path.to_owned(), told).expect_err("no path of a handler");
            assert!(wrong.contains("is one below /debug/"), "{wrong}");
        }
        let broken = |_: Parts| async { panic!("broken") };
        debug.add("/debug/broken".to_owned(), broken).expect("the path is free");
    };
    let (client, _) = reviewer();
    let mut guarded = scrape(Access::Authorized, client.clone());
    own(&mut guarded.debug);
    assert_eq!(read(respond(&guarded, &request("/debug/own", None)).await).await.0, 401);
    assert_eq!(read(respond(&guarded, &request("/debug/own", Some("reader"))).await).await.0, 403);
    let mut open = scrape(Access::Everybody, client);
    own(&mut open.debug);
    let ask = async |path| read(respond(&open, &request(path, None)).await).await;
    assert_eq!(ask("/debug/own?a=b").await, (200, "a=b".to_owned()));
    assert_eq!(ask("/debug/broken").await, (500, "the handler panicked\n".to_owned()));
    assert_eq!(ask("/debug/other").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn the_api_servers_answers_are_remembered_for_a_time() {
    let (client, asked) = reviewer();
    let scrape = scrape(Access::Authorized, client);
    let count = async |seconds| {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        respond(&scrape, &request("/metrics", Some("reader"))).await;
        respond(&scrape, &request("/metrics", Some("stranger"))).await;
        std::mem::take(&mut *asked.lock())
    };
    let (token, access) = ("TokenReview", "SubjectAccessReview");
    assert_eq!(count(0).await, [token, access, token, access]);
    assert_eq!(count(20).await, [""; 0]);
    assert_eq!(count(20).await, [access], "a refusal holds for 30 s");
    assert_eq!(count(30).await, [token, token, access], "a token holds for 60 s");
    assert_eq!(count(300).await, [token, access, token, access], "a right holds for 300 s");
}

#[tokio::test(start_paused = true)]
async fn nothing_but_reading_is_answered() {
    let (client, _) = reviewer();
    let scrape = scrape(Access::Everybody, client);
    let mut post = request("/metrics", None);
    post.method = Method::POST;
    let answer = respond(&scrape, &post).await;
    assert_eq!(answer.headers()[header::ALLOW], "GET, HEAD");
    assert_eq!(read(answer).await.0, 405);
    assert_eq!(read(respond(&scrape, &request("/", None)).await).await.0, 404);
    let answer = respond(&scrape, &request("/metrics", None)).await;
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/plain; version=0.0.4");
}

#[tokio::test(start_paused = true)]
async fn health_and_readiness_have_paths_of_their_own() {
    let (alive, ready) = (Checks::default(), Checks::default());
    ready.add("informer-sync", || Err("not filled: pods"));
    let health = Health { alive, ready };
    let ask = async |path| read(respond(&health, &request(path, None)).await).await;
    assert_eq!(ask("/healthz").await, (200, "ok".to_owned()));
    assert_eq!(ask("/healthz?verbose").await.1, "[+]ping ok\nhealthz check passed\n");
    let failed = "[-]informer-sync failed: reason withheld\nhealthz check failed\n";
    assert_eq!(ask("/readyz").await, (500, failed.to_owned()));
    let reason = "internal server error: not filled: pods\n";
    assert_eq!(ask("/readyz/informer-sync").await, (500, reason.to_owned()));
    for path in ["/", "/healthzz", "/metrics"] {
        assert_eq!(ask(path).await, (404, "404 page not found\n".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_told_at_start() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let server = HealthServer::at(address.clone());
    let (announce, mut bound) = Endpoint::announce();
    let servers = Servers { health: Some((server, announce)), ..Servers::default() };
    let failed =
        servers.bind(&Metrics::new(), &Journals::default(), &reviewer().0, &CancellationToken::new()).await;
    let error = failed.err().expect("it is taken").to_string();
    assert!(error.starts_with(&format!("cannot serve health probes at {address}: ")), "{error}");
    assert_eq!(bound.address().await, None);
}

/// Speaks HTTP/1.1 over a TLS connection that verifies nothing but `certificate`.
async fn get_securely(address: std::net::SocketAddr, certificate: &str) -> String {
    use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
    let name = ServerName::try_from("localhost").expect("a name");
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.expect("the certificate is the one");
    let head = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

fn files() -> (PathBuf, PathBuf, String) {
    let folder = std::env::temp_dir().join(format!("kubewright-serving-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    let pem = renew(&certificate, &key);
    (certificate, key, pem)
}

fn renew(certificate: &std::path::Path, key: &std::path::Path) -> String {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(certificate, made.cert.pem()).expect("written");
    std::fs::write(key, made.signing_key.serialize_pem()).expect("written");
    made.cert.pem()
}

#[tokio::test]
async fn metrics_are_served_with_the_certificate_of_files_also_after_it_was_renewed() {
    let (certificate, key, first) = files();
    let tls = Tls::Files { certificate: certificate.clone(), key: key.clone() };
    let server = MetricsServer::at("127.0.0.1:0").tls(tls).access(Access::Everybody);
    let (announce, mut bound) = Endpoint::announce();
    let servers = Servers { metrics: Some((server, announce)), ..Servers::default() };
    let (metrics, stop) = (Metrics::new(), CancellationToken::new());
    let mut listening =
        servers.bind(&metrics, &Journals::default(), &reviewer().0, &stop).await.expect("it listens");
    let serving = tokio::spawn(listening.remove(0).serve(stop.clone()));
    let address = bound.address().await.expect("it listens");

    let answer = get_securely(address, &first).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("certwatcher_read_certificate_total 1\n"), "{answer}");
    let second = renew(&certificate, &key);
    // The files are looked at every ten seconds: of tokio's time, which a test may hurry.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(11)).await;
    tokio::time::resume();
    let answer = get_securely(address, &second).await;
    assert!(answer.contains("certwatcher_read_certificate_total 2\n"), "{answer}");

    stop.cancel();
    serving.await.expect("it ends");
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
    std::fs::remove_dir_all(certificate.parent().expect("a folder")).expect("it was there");
}
