use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use kubewright_world::World;
use serde_json::Value;

use super::super::{AUTHENTICATED, Authenticator, ISSUER};
use super::*;
use crate::webhook::Local;

/// Answers each review with this, and remembers them.
struct Server {
    status: Mutex<Value>,
    asked: Mutex<Vec<Value>>,
}

impl Local for Server {
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        self.asked.lock().push(serde_json::from_slice(request.body()).unwrap());
        let body = Bytes::from(json!({"status": *self.status.lock()}).to_string());
        Some(async move { Response::new(body) }.boxed())
    }
}

fn remote() -> Remote {
    let text = "current-context: x\nclusters: [{name: c, cluster: {server: 'https://hook/authenticate'}}]\n\
                users: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]";
    Remote::of_kubeconfig(text, &|_| Err(std::io::ErrorKind::NotFound.into())).unwrap()
}

fn start(status: Value) -> (Authenticator, Arc<Server>) {
    let webhook = TokenWebhook::new(remote(), "v1beta1").unwrap();
    let authenticator = Authenticator::new(&World::simulated(1)).unwrap().with_token_webhook(webhook);
    let server = Arc::new(Server { status: Mutex::new(status), asked: Mutex::default() });
    let (_, client) = authenticator.webhook.as_ref().unwrap();
    client.attach(Arc::clone(&server) as Arc<dyn Local>);
    (authenticator, server)
}

async fn ask(authenticator: &Authenticator, token: &str, audiences: &[&str]) -> Found {
    let audiences: Vec<String> = audiences.iter().map(|audience| (*audience).to_owned()).collect();
    authenticator.or_ask(Err(TokenError::Unknown), token, &audiences).await
}

#[tokio::test(start_paused = true)]
async fn a_server_says_whose_token_it_is() {
    let (authenticator, server) =
        start(json!({"authenticated": true, "user": {"username": "alice", "uid": "7",
        "groups": ["dev"], "extra": {"scope": ["a"]}}}));
    let mut headers = HeaderMap::new();
    assert_eq!(authenticator.ask(&headers).await, None, "nobody is asked without a token");
    headers.insert(AUTHORIZATION, "Bearer sesame".parse().unwrap());
    let user = authenticator.ask(&headers).await.unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("alice", "7"));
    assert_eq!(user.groups, ["dev", AUTHENTICATED]);
    assert_eq!(user.extra["scope"], ["a"]);
    assert_eq!(
        *server.asked.lock(),
        [json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1beta1", "metadata": {},
            "spec": {"token": "sesame", "audiences": [ISSUER]}, "status": {"user": {}}})]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_known_already_is_not_asked_about() {
    let (authenticator, server) = start(json!({"authenticated": true, "user": {"username": "alice"}}));
    let known = Identity { user: User::new("bob", ["g"]), audiences: vec![] };
    assert_eq!(authenticator.or_ask(Ok(known.clone()), "t", &[]).await, Ok(known));
    assert!(server.asked.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn answers_are_remembered_for_a_while_and_errors_are_not() {
    let (authenticator, server) = start(json!({"authenticated": false, "error": "out of order"}));
    let error = ask(&authenticator, "t", &[]).await.unwrap_err();
    assert_eq!(error.to_string(), "[invalid bearer token, out of order]");
    *server.status.lock() = json!({"authenticated": false});
    assert_eq!(ask(&authenticator, "t", &[]).await, Err(TokenError::Unknown));
    *server.status.lock() = json!({"authenticated": true, "user": {"username": "alice"}});
    assert_eq!(ask(&authenticator, "t", &[]).await, Err(TokenError::Unknown), "remembered");
    tokio::time::advance(Duration::from_secs(120)).await;
    assert!(ask(&authenticator, "t", &[]).await.is_ok());
    assert_eq!(server.asked.lock().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_token_must_be_for_the_audiences_asked_about() {
    let user = json!({"username": "alice"});
    for (meant, asked, found) in [
        (json!([]), &[][..], Some(&[ISSUER][..])),
        (json!(["a", "b"]), &["b", "c"][..], Some(&["b"][..])),
        (json!([]), &["a"][..], None),
        (json!(["a"]), &[][..], None),
    ] {
        let (authenticator, _) = start(json!({"authenticated": true, "user": user, "audiences": meant}));
        let audiences = ask(&authenticator, "t", asked).await.ok().map(|identity| identity.audiences);
        assert_eq!(
            audiences,
            found.map(|found| found.iter().map(|one| (*one).to_owned()).collect()),
            "{meant}"
        );
    }
}

#[test]
fn only_two_versions_are_spoken() {
    assert_eq!(
        TokenWebhook::new(remote(), "v2").unwrap_err().to_string(),
        "unsupported authentication webhook version \"v2\", supported versions are \"v1\", \"v1beta1\""
    );
}
