//! A server, and webhooks that are functions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use kubewright_engine::bootstrap::bootstrap;
use kubewright_engine::{Engine, Settings};
use kubewright_identity::authn::{Authenticator, User};
use kubewright_identity::webhook::Local;
use kubewright_store::Memory;
use kubewright_world::World;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use kubewright_apiserver::http::{ApiServer, Config};
use kubewright_apiserver::kubelet::Kubelets;

/// What a webhook answers to a request: members of the response, and how long it takes.
type Behaviour = Box<dyn Fn(&Value) -> (Value, Duration) + Send + Sync>;

pub(super) struct Cluster {
    server: ApiServer,
    user: User,
}

/// A webhook at `https://NAME.test/`, and the requests that it has got.
pub(super) struct Hook {
    host: String,
    behaviour: Behaviour,
    pub(super) seen: Mutex<Vec<Value>>,
}

impl Local for Hook {
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        if request.uri().host() != Some(&self.host) {
            return None;
        }
        let review: Value = serde_json::from_slice(request.body()).expect("a review is JSON");
        let request = &review["request"];
        self.seen.lock().push(request.clone());
        let (members, delay) = (self.behaviour)(request);
        let mut response = json!({"uid": request["uid"], "allowed": true});
        for (name, value) in members.as_object().expect("members of a response") {
            response[name] = value.clone();
        }
        let review =
            json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response});
        let answer = Response::new(Bytes::from(review.to_string()));
        Some(
            async move {
                tokio::time::sleep(delay).await;
                answer
            }
            .boxed(),
        )
    }
}

/// A response that patches.
pub(super) fn patch(operations: &Value) -> Value {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(operations.to_string());
    json!({"patch": encoded, "patchType": "JSONPatch"})
}

impl Cluster {
    pub(super) async fn start() -> Self {
        Self::with(Settings::default()).await
    }

    pub(super) async fn with(settings: Settings) -> Self {
        let world = World::simulated(7);
        let engine = Arc::new(Engine::with(world.clone(), Arc::new(Memory::new()), settings));
        bootstrap(&engine).await.expect("the first objects are accepted");
        let server = ApiServer::new(Config {
            engine,
            authenticator: Authenticator::new(&world).expect("there is entropy"),
            shutdown: CancellationToken::new(),
            address: "127.0.0.1:6443".to_owned(),
            kubelets: Kubelets::default(),
        });
        Self { server, user: User::new("admin", ["system:masters"]) }
    }

    pub(super) fn engine(&self) -> &Engine {
        self.server.engine()
    }

    /// The same server for somebody else, who is in no group but that of all who are known.
    pub(super) fn as_user(&self, name: &str) -> Self {
        Self { server: self.server.clone(), user: User::new(name, ["system:authenticated"]) }
    }

    /// Code, body and warnings of an answer. A PATCH is a merge patch.
    pub(super) async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value, Vec<String>) {
        let media_type =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        self.send_as(media_type, method, path, body).await
    }

    /// Applies a configuration, as `t`.
    pub(super) async fn apply(&self, path: &str, body: &Value) -> (u16, Value, Vec<String>) {
        let path = format!("{path}?fieldManager=t&force=true");
        self.send_as("application/apply-patch+yaml", Method::PATCH, &path, body).await
    }

    async fn send_as(
        &self,
        media_type: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> (u16, Value, Vec<String>) {
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media_type)
            .body(Full::new(body))
            .expect("a good request");
        request.extensions_mut().insert(self.user.clone());
        let response = self.server.clone().oneshot(request).await.expect("the service never fails");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("a body cannot fail").to_bytes();
        let warnings = parts.headers.get_all("warning").iter();
        let warnings = warnings.map(|value| value.to_str().expect("text").to_owned()).collect();
        (parts.status.as_u16(), serde_json::from_slice(&body).unwrap_or_default(), warnings)
    }

    #[track_caller]
    pub(super) fn made(&self, plural: &str, object: &Value) -> impl Future<Output = ()> {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        async move {
            let (code, body, _) = self.send(Method::POST, &path, object).await;
            assert_eq!(code, 201, "{body}");
        }
    }

    /// Creates a config map, as a dry run if wanted.
    pub(super) async fn create(&self, name: &str, query: &str) -> (u16, Value, Vec<String>) {
        let object = json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {"k": "v"}});
        self.send(Method::POST, &format!("/api/v1/namespaces/default/configmaps{query}"), &object).await
    }

    /// A webhook `NAME` with this behaviour, and its configuration with these members beside the usual ones.
    pub(super) async fn hook(
        &self,
        mutating: bool,
        name: &str,
        members: Value,
        behaviour: impl Fn(&Value) -> (Value, Duration) + Send + Sync + 'static,
    ) -> Arc<Hook> {
        let host = format!("{name}.test");
        let hook = Hook { host: host.clone(), behaviour: Box::new(behaviour), seen: Mutex::default() };
        let hook = Arc::new(hook);
        self.server.engine().webhooks().attach(Arc::clone(&hook) as Arc<dyn Local>);
        let mut webhook = json!({
            "name": format!("{name}.hooks.test"),
            "clientConfig": {"url": format!("https://{host}/")},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"]
        });
        for (member, value) in members.as_object().expect("members of a webhook") {
            webhook[member] = value.clone();
        }
        let plural =
            if mutating { "mutatingwebhookconfigurations" } else { "validatingwebhookconfigurations" };
        self.made(plural, &json!({"metadata": {"name": name}, "webhooks": [webhook]})).await;
        hook
    }
}

/// An answer without delay.
pub(super) fn at_once(members: Value) -> (Value, Duration) {
    (members, Duration::ZERO)
}
