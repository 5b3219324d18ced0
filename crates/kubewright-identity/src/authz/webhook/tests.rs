use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use kubewright_world::World;
use parking_lot::Mutex;

use super::*;
use crate::webhook::Local;

/// Answers each question with this, and remembers them.
pub(crate) struct Server {
    pub(crate) status: Mutex<(u16, Value)>,
    pub(crate) asked: Mutex<Vec<Value>>,
}

impl Server {
    pub(crate) fn new(status: Value) -> Arc<Self> {
        Arc::new(Self { status: Mutex::new((200, status)), asked: Mutex::default() })
    }
}

impl Local for Server {
    fn call(&self, request: &Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        self.asked.lock().push(serde_json::from_slice(request.body()).unwrap());
        let (code, status) = self.status.lock().clone();
        let body = Bytes::from(json!({"status": status}).to_string());
        let answer = Response::builder().status(code).body(body).unwrap();
        Some(async move { answer }.boxed())
    }
}

pub(crate) fn remote() -> Remote {
    let text = "current-context: x\nclusters: [{name: c, cluster: {server: 'https://hook/authorize'}}]\n\
                users: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]";
    Remote::of_kubeconfig(text, &|_| Err(std::io::ErrorKind::NotFound.into())).unwrap()
}

struct Test {
    reviewer: Reviewer,
    client: Client,
    server: Arc<Server>,
    world: World,
}

impl Test {
    fn new(status: Value) -> Self {
        let world = World::simulated(1);
        let client = Client::new(world.clock);
        let server = Server::new(status);
        client.attach(Arc::clone(&server) as Arc<dyn Local>);
        Self { reviewer: Reviewer::new(remote(), ReviewVersion::V1), client, server, world }
    }

    async fn ask(&self, what: &Attributes<'_>) -> Decision {
        match self.reviewer.question(&alice(), what) {
            Ok(question) => self.reviewer.ask(&self.client, self.world.clock, &question).await,
            Err(decision) => decision,
        }
    }
}

fn alice() -> User {
    User {
        uid: "7".to_owned(),
        extra: [("scope".to_owned(), vec!["a".to_owned()])].into(),
        ..User::new("alice", ["dev"])
    }
}

const LIST: Attributes<'_> = Attributes {
    verb: "list",
    group: "apps",
    version: "v1",
    resource: "deployments",
    subresource: "",
    namespace: "ns",
    name: "",
    path: None,
    field_selector: "metadata.name!=x",
    label_selector: "app=a,tier in (b,c)",
};

/// As kube-apiserver sends it.
#[test]
fn a_question_is_a_review_in_the_version_asked_for() {
    let spec = |version, what: &Attributes<'_>| {
        serde_json::from_str::<Value>(&Question::new(version, &alice(), what).spec).unwrap()
    };
    assert_eq!(
        spec(ReviewVersion::V1, &LIST),
        json!({"resourceAttributes": {"namespace": "ns", "verb": "list", "group": "apps", "version": "v1",
                "resource": "deployments",
                "fieldSelector": {"requirements": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}]},
                "labelSelector": {"requirements": [{"key": "app", "operator": "In", "values": ["a"]},
                    {"key": "tier", "operator": "In", "values": ["b", "c"]}]}},
            "user": "alice", "groups": ["dev"], "extra": {"scope": ["a"]}, "uid": "7"})
    );
    let path = Attributes { verb: "get", path: Some("/healthz"), ..Attributes::default() };
    assert_eq!(
        spec(ReviewVersion::V1Beta1, &path),
        json!({"nonResourceAttributes": {"path": "/healthz", "verb": "get"}, "user": "alice", "group": ["dev"],
            "extra": {"scope": ["a"]}, "uid": "7"})
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_server_says_is_the_decision() {
    let decision = |verdict, reason: &str| Decision { verdict, reason: reason.to_owned(), error: None };
    for (status, told) in [
        (json!({"allowed": true, "reason": "friend"}), decision(DecisionKind::Allow, "friend")),
        (json!({"allowed": false, "reason": "no idea"}), decision(DecisionKind::NoOpinion, "no idea")),
        (json!({"allowed": false, "denied": true, "reason": "foe"}), decision(DecisionKind::Deny, "foe")),
        (
            json!({"allowed": true, "denied": true}),
            Decision {
                error: Some("webhook subject access review returned both allow and deny response".to_owned()),
                ..decision(DecisionKind::Deny, "")
            },
        ),
    ] {
        let test = Test::new(status);
        assert_eq!(test.ask(&LIST).await, told);
        assert_eq!(test.server.asked.lock()[0]["apiVersion"], "authorization.k8s.io/v1");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_hold_for_a_while_of_the_clusters_time() {
    for (allowed, lives) in [(true, 300), (false, 30)] {
        let test = Test::new(json!({"allowed": allowed}));
        let asked = || test.server.asked.lock().len();
        test.ask(&LIST).await;
        tokio::time::advance(Duration::from_secs(lives - 1)).await;
        test.ask(&LIST).await;
        assert_eq!(asked(), 1, "{allowed}");
        test.ask(&Attributes { name: "other", ..LIST }).await;
        assert_eq!(asked(), 2, "another question");
        tokio::time::advance(Duration::from_secs(1)).await;
        test.ask(&LIST).await;
        assert_eq!(asked(), 3, "{allowed}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_not_remembered_where_that_is_not_wanted() {
    let mut test = Test::new(json!({"allowed": true}));
    test.reviewer = test.reviewer.remembering(Duration::ZERO, Duration::ZERO);
    test.ask(&LIST).await;
    test.ask(&LIST).await;
    assert_eq!(test.server.asked.lock().len(), 2);
    let long = "x".repeat(10_000);
    let test = Test::new(json!({"allowed": true}));
    test.ask(&Attributes { name: &long, ..LIST }).await;
    test.ask(&Attributes { name: &long, ..LIST }).await;
    assert_eq!(test.server.asked.lock().len(), 2, "too long to be kept");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_gives_no_answer_has_no_opinion_and_is_asked_again() {
    let test = Test::new(json!({}));
    test.server.status.lock().0 = 403;
    let decision = test.ask(&LIST).await;
    assert_eq!((decision.verdict, decision.reason.as_str()), (DecisionKind::NoOpinion, ""));
    assert!(decision.error.is_some());
    *test.server.status.lock() = (200, json!({"allowed": true}));
    assert!(test.ask(&LIST).await.allowed());
}
