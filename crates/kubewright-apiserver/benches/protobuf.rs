//! What a request costs in JSON and in protobuf, through the whole service in one process: `cargo bench -p
//! kubewright-apiserver --bench protobuf`. Prints microseconds for each request, the best of several rounds.

#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kubewright_apiserver::http::{ApiServer, Config};
use kubewright_apiserver::kubelet::Kubelets;
use kubewright_codec::protobuf;
use kubewright_engine::Engine;
use kubewright_engine::bootstrap::bootstrap;
use kubewright_identity::authn::{Authenticator, User};
use kubewright_store::Memory;
use kubewright_world::World;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const ROUNDS: usize = 7;
const REQUESTS: usize = 2000;
const LISTED: usize = 500;

#[derive(Clone, Copy)]
enum Form {
    Json,
    Protobuf,
}

impl Form {
    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => protobuf::MEDIA_TYPE,
        }
    }

    fn body(self, object: &Value) -> Bytes {
        match self {
            Self::Json => object.to_string().into(),
            Self::Protobuf => protobuf::encode(object).expect("it has a message").into(),
        }
    }
}

struct Server(ApiServer);

impl Server {
    async fn start() -> Self {
        let world = World::simulated(7);
        let engine = Arc::new(Engine::new(world.clone(), Arc::new(Memory::new())));
        bootstrap(&engine).await.expect("the first objects are accepted");
        let server = Self(ApiServer::new(Config {
            engine,
            authenticator: Authenticator::new(&world).expect("there is entropy"),
            shutdown: CancellationToken::new(),
            address: "in-process".to_owned(),
            kubelets: Kubelets::default(),
        }));
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        server.send(Method::POST, "serviceaccounts", Form::Json, Form::Json.body(&account)).await;
        server
    }

    async fn send(&self, method: Method, path: &str, form: Form, body: Bytes) -> usize {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v1/namespaces/default/{path}"))
            .header("content-type", form.media_type())
            .header("accept", form.media_type())
            .body(Full::new(body))
            .expect("a good request");
        request.extensions_mut().insert(User::new("admin", ["system:masters"]));
        let response = self.0.clone().oneshot(request).await.expect("the service never fails");
        assert!(response.status().is_success(), "{}", response.status());
        response.into_body().collect().await.expect("a body cannot fail").to_bytes().len()
    }
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "a"}},
        "data": {"one": "x".repeat(200), "two": "line\nline\n", "three": "3"}})
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "a", "tier": "web"}},
        "spec": {"containers": [{"name": "c", "image": "registry.example.com/web:1.2.3", "args": ["--verbose", "--port=80"],
            "env": [{"name": "A", "value": "b"}, {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "ports": [{"name": "http", "containerPort": 80}], "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5}}],
            "volumes": [{"name": "v", "configMap": {"name": "m"}}]}})
}

/// Microseconds for one of `count` things.
fn each(elapsed: Duration, count: usize) -> f64 {
    elapsed.as_secs_f64() * 1e6 / count as f64
}

/// Create, get, and list `LISTED` objects: microseconds for each request.
async fn measure(plural: &str, object: fn(&str) -> Value, form: Form) -> [f64; 3] {
    let mut best = [f64::MAX; 3];
    for _ in 0..ROUNDS {
        let server = Server::start().await;
        let bodies: Vec<Bytes> = (0..REQUESTS).map(|at| form.body(&object(&format!("o{at}")))).collect();
        let start = Instant::now();
        for body in bodies {
            server.send(Method::POST, plural, form, body).await;
        }
        best[0] = best[0].min(each(start.elapsed(), REQUESTS));
        let start = Instant::now();
        for at in 0..REQUESTS {
            server.send(Method::GET, &format!("{plural}/o{at}"), form, Bytes::new()).await;
        }
        best[1] = best[1].min(each(start.elapsed(), REQUESTS));
        let lists = 20;
        let start = Instant::now();
        for _ in 0..lists {
            server.send(Method::GET, &format!("{plural}?limit={LISTED}"), form, Bytes::new()).await;
        }
        best[2] = best[2].min(each(start.elapsed(), lists));
    }
    best
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    println!("{:<12} {:<16} {:>10} {:>10} {:>7}", "", "", "json, us", "proto, us", "ratio");
    let lists = format!("list of {LISTED}");
    for (plural, object) in [("configmaps", config_map as fn(&str) -> Value), ("pods", pod)] {
        let (json, protobuf) =
            (measure(plural, object, Form::Json).await, measure(plural, object, Form::Protobuf).await);
        for (at, what) in ["create", "get", &lists].into_iter().enumerate() {
            let ratio = protobuf[at] / json[at];
            println!("{plural:<12} {what:<16} {:>10.1} {:>10.1} {ratio:>7.2}", json[at], protobuf[at]);
        }
        let sum = |times: [f64; 3]| times[0] + times[1] + times[2];
        println!(
            "{plural:<12} {:<16} {:>10.1} {:>10.1} {:>7.2}",
            "all three",
            sum(json),
            sum(protobuf),
            sum(protobuf) / sum(json)
        );
    }
}
