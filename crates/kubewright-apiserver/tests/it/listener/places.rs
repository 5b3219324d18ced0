//! What takes long is computed beside the threads that serve sockets.

use std::convert::Infallible;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use futures::FutureExt;
use http::Request;
use hyper::body::Incoming;
use kubewright_apiserver::http::listener::Limits;
use kubewright_apiserver::http::{ResponseBody, Settings};
use kubewright_identity::authn::User;
use kubewright_store::{Name, NoRoom};
use kubewright_world::World;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tower::{Service, ServiceExt};

use super::server::Server;
use crate::support::Api;
use crate::support::hooked::{Hook, Hooked};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Keeps the thread of whoever comes to it.
#[derive(Default)]
struct Latch {
    open: Mutex<bool>,
    opened: Condvar,
    arrived: Notify,
}

impl Latch {
    /// A test that has gone wrong ends.
    const LONGEST: Duration = Duration::from_secs(20);

    fn pass(&self) {
        self.arrived.notify_one();
        let open = self.open.lock().expect("nobody panics");
        let (mut open, _) =
            self.opened.wait_timeout_while(open, Self::LONGEST, |open| !*open).expect("nobody panics");
        *open = true;
    }

    fn is_open(&self) -> bool {
        *self.open.lock().expect("nobody panics")
    }

    fn open(&self) {
        *self.open.lock().expect("nobody panics") = true;
        self.opened.notify_all();
    }
}

/// Keeps the thread of whoever commits the object `held`, as a long computation does.
struct Holding(Arc<Latch>);

impl Hook for Holding {
    fn before(&self, key: &Name) -> Result<(), NoRoom> {
        if key.ends_with("/held") {
            self.0.pass();
        }
        Ok(())
    }
}

/// The API of an administrator, as the listener serves it.
fn administrators(
    api: &Api,
) -> impl Service<Request<Incoming>, Response = http::Response<ResponseBody>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ 'static {
    let server = api.server.clone();
    tower::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(User::new("admin", ["system:masters"]));
        server.clone().oneshot(request).boxed()
    })
}

struct Held {
    server: Server,
    latch: Arc<Latch>,
    /// The write that is being computed.
    write: JoinHandle<String>,
}

impl Held {
    /// A server that is computing a large write.
    async fn start(query: &str) -> Self {
        let latch = Arc::new(Latch::default());
        let store = Hooked::new(Holding(Arc::clone(&latch)));
        let edge = Settings { places: 1, ..Settings::default() };
        let api = Api::start_as(store, kubewright_engine::Settings::default(), edge).await;
        let server = Server::start_around(&World::real(), Limits::default(), |_| administrators(&api)).await;
        let object = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "held"}, "data": {"large": "x".repeat(100_000)},
        });
        let write = send(&server, &format!("POST {MAPS}{query}"), &object.to_string()).await;
        tokio::time::timeout(Latch::LONGEST, latch.arrived.notified()).await.expect("it is begun");
        Self { server, latch, write }
    }
}

/// Sends a request on a connection of its own; gives the answer.
async fn send(server: &Server, what: &str, body: &str) -> JoinHandle<String> {
    let length = body.len();
    let request = format!(
        "{what} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let mut stream = server.tls("http/1.1", None).await.expect("a connection");
    tokio::spawn(async move {
        stream.write_all(request.as_bytes()).await.expect("it is sent");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    })
}

/// One thread serves all sockets here: were the write computed on it, nobody would be answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn who_computes_for_long_keeps_nobody_else_from_being_answered() {
    let Held { server, latch, write } = Held::start("").await;
    for path in ["/api/v1/namespaces/default", "/apis", "/openapi/v3", "/readyz"] {
        let answer = send(&server, &format!("GET {path}"), "").await.await.expect("it is read");
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    let table = format!("GET {MAPS} HTTP/1.1\r\naccept: application/json;as=Table;v=v1;g=meta.k8s.io\r\nx:");
    let answer = send(&server, &table, "").await.await.expect("it is read");
    assert!(answer.contains("\"kind\":\"Table\""), "{answer}");
    let small = r#"{"metadata":{"name":"small"}}"#;
    let answer = send(&server, &format!("POST {MAPS}"), small).await.await.expect("it is read");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert!(!latch.is_open(), "they are answered meanwhile");
    latch.open();
    let answer = write.await.expect("it is read");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_whose_time_is_over_is_answered_though_its_work_does_not_yield() {
    let Held { latch, write, .. } = Held::start("?timeout=2s").await;
    let answer = write.await.expect("it is read");
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    assert!(answer.contains("Timeout: request did not complete within the allotted timeout"), "{answer}");
    assert!(!latch.is_open(), "the work is still being done");
    latch.open();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn long_work_waits_for_a_place_and_a_request_that_gets_none_in_time_is_never_begun() {
    let Held { server, latch, write } = Held::start("").await;
    let other = serde_json::json!({"metadata": {"name": "other"}, "data": {"large": "x".repeat(100_000)}});
    let late = send(&server, &format!("POST {MAPS}?timeout=1ms"), &other.to_string()).await;
    assert!(late.await.expect("it is read").starts_with("HTTP/1.1 504"));
    let waits = send(&server, &format!("POST {MAPS}"), &other.to_string()).await;
    assert!(!waits.is_finished(), "the only place is taken");
    latch.open();
    for write in [write, waits] {
        let answer = write.await.expect("it is read");
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    }
}
