//! A server in this process, spoken to as a client would, without a socket.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod hooked;
pub mod kubelet;

use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kubewright_apiserver::http::{self, ApiServer, Config, ResponseBody};
use kubewright_apiserver::kubelet::Kubelets;
use kubewright_engine::Engine;
use kubewright_engine::bootstrap::bootstrap;
use kubewright_identity::authn::{Authenticator, User};
use kubewright_kinds::Summary;
use kubewright_store::{Memory, Store};
use kubewright_world::World;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// `CN=x`, made by openssl.
pub const CERTIFICATE_REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlISE1HNENBUUF3RERFS01BZ0dBMVVFQXd3QmVEQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCQUtoaXU3eU14UDI0TU8rOXZuQTBnZDhyNzJLblJ1STRNMHd4QVhOQVlWeVlzK1RKSlpxTTRwUmplY2VvREhrCmFSQjUrUVZ5NnZWWVlERjd6V1htS2FXZ0FEQUtCZ2dxaGtqT1BRUURBZ05KQURCR0FpRUFrOWhSVGwxYkp0UXkKTE5IcGFpLzEvTjJNemJuYkpJTDNvR2xKV2VMYWRIa0NJUUNvRll6aEpaWnhzbzZNVmx6YTdMUHhFdVBaRUc3eQpFL3VFd1h4TXBYek1ldz09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

pub struct Api {
    pub server: ApiServer,
    pub shutdown: CancellationToken,
    user: User,
}

pub struct Answer {
    pub code: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Bytes,
    pub body: Value,
}

impl Answer {
    #[track_caller]
    pub fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.body);
        self.body
    }

    #[track_caller]
    pub fn refused(self, code: u16, reason: &str) -> String {
        assert_eq!((self.code.as_u16(), self.body["reason"].as_str()), (code, Some(reason)), "{}", self.body);
        assert_eq!(self.body["kind"], "Status");
        self.body["message"].as_str().unwrap_or_default().to_owned()
    }
}

impl Api {
    pub async fn start() -> Self {
        Self::start_on(Arc::new(Memory::new())).await
    }

    pub async fn start_on(store: Arc<dyn Store<Summary>>) -> Self {
        Self::start_as(store, kubewright_engine::Settings::default(), http::Settings::default()).await
    }

    pub async fn start_with(settings: kubewright_engine::Settings) -> Self {
        Self::start_as(Arc::new(Memory::new()), settings, http::Settings::default()).await
    }

    pub async fn start_as(
        store: Arc<dyn Store<Summary>>,
        objects: kubewright_engine::Settings,
        edge: http::Settings,
    ) -> Self {
        let world = World::simulated(7);
        let engine = Arc::new(Engine::with(world.clone(), store, objects));
        bootstrap(&engine).await.expect("the first objects are accepted");
        let shutdown = CancellationToken::new();
        let config = Config {
            engine,
            authenticator: Authenticator::new(&world).expect("there is entropy"),
            shutdown: shutdown.clone(),
            address: "127.0.0.1:6443".to_owned(),
            kubelets: Kubelets::default(),
        };
        let server = ApiServer::with(config, edge);
        Self { server, shutdown, user: User::new("admin", ["system:masters"]) }
    }

    /// A server as its administrator sees it.
    pub fn of(server: ApiServer, shutdown: CancellationToken) -> Self {
        Self { server, shutdown, user: User::new("admin", ["system:masters"]) }
    }

    pub fn as_user(&self, user: User) -> Self {
        Self { server: self.server.clone(), shutdown: self.shutdown.clone(), user }
    }

    pub fn user(&self) -> &User {
        &self.user
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let (parts, body) = self.open(method, path, headers, body).await.into_parts();
        let bytes = body.collect().await.expect("a body cannot fail").to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Answer { code: parts.status, headers: parts.headers, bytes, body }
    }

    pub async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> ::http::Response<ResponseBody> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Full::new(body.into())).expect("a good request");
        request.extensions_mut().insert(self.user.clone());
        self.server.clone().oneshot(request).await.expect("the service never fails")
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &[], body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, &[], body.to_string()).await
    }

    pub async fn patch(&self, path: &str, kind: &str, body: Value) -> Answer {
        let media_type = format!("application/{kind}-patch+json");
        self.send(Method::PATCH, path, &[("content-type", &media_type)], body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], "").await
    }

    pub async fn watch(&self, path: &str) -> Watch {
        let response = self.open(Method::GET, path, &[], "").await;
        assert_eq!(response.status(), 200);
        Watch { body: response.into_body(), buffer: Vec::new() }
    }
}

pub struct Watch {
    body: ResponseBody,
    buffer: Vec<u8>,
}

impl Watch {
    /// The next event; `None` when the stream has ended or a minute of virtual time has brought nothing.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("a line is JSON"));
            }
            let frame = tokio::time::timeout(Duration::from_secs(30), self.body.frame()).await.ok()??;
            if let Ok(data) = frame.expect("a body cannot fail").into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }

    pub async fn expect(&mut self, what: &str, name: &str) -> Value {
        let event = self.next().await.unwrap_or_else(|| panic!("no {what} of {name}"));
        assert_eq!(
            (event["type"].as_str(), event["object"]["metadata"]["name"].as_str()),
            (Some(what), Some(name)),
            "{event}"
        );
        event["object"].clone()
    }
}
