//! Places among the requests in flight: no client takes all of them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Method, Request, Response};
use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kubewright_apiserver::http::{ResponseBody, Settings};
use kubewright_identity::authn::User;
use kubewright_store::Memory;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::support::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
/// What everybody may ask.
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// An API with two users who may read and write in a namespace, and one who has no right.
struct Users {
    admin: Api,
    one: Api,
    other: Api,
    without: Api,
}

async fn start(edge: Settings) -> Users {
    let admin = Api::start_as(Arc::new(Memory::new()), kubewright_engine::Settings::default(), edge).await;
    let subjects = json!([{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "writers"}]);
    let role = json!({"metadata": {"name": "writer"}, "rules": [
        {"apiGroups": ["", "coordination.k8s.io"], "resources": ["configmaps", "leases"], "verbs": ["*"]}]});
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role).await.expect(201);
    let binding = json!({"metadata": {"name": "writers"}, "subjects": subjects, "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "writer"}});
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await.expect(201);
    let user = |name: &str, group: &str| admin.as_user(User::new(name, [group, "system:authenticated"]));
    Users {
        one: user("one", "writers"),
        other: user("other", "writers"),
        without: user("without", "nothing"),
        admin,
    }
}

fn map() -> Value {
    json!({"metadata": {"generateName": "a-"}})
}

/// Sends requests whose bodies do not come, and lets them go on as far as they can.
async fn without_bodies(
    api: &Api,
    count: usize,
    path: &str,
) -> Vec<tokio::task::JoinHandle<Response<ResponseBody>>> {
    let send = || {
        let body = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let mut request = Request::post(path).body(body).expect("a good request");
        request.extensions_mut().insert(api.user().clone());
        let answer = api.server.clone().oneshot(request);
        tokio::spawn(async move { answer.await.expect("the service never fails") })
    };
    let sent = (0..count).map(|_| send()).collect();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    sent
}

#[tokio::test(start_paused = true)]
async fn requests_whose_bodies_do_not_come_keep_nobody_from_writing() {
    let users = start(Settings::default()).await;
    let start = Instant::now();
    let mut hanging = without_bodies(&users.one, 205, MAPS).await;
    hanging.extend(without_bodies(&users.without, 205, REVIEWS).await);
    users.other.post(MAPS, map()).await.expect(201);
    users.admin.post(MAPS, map()).await.expect(201);
    users.one.post(LEASES, map()).await.expect(201);
    assert_eq!(start.elapsed(), Duration::ZERO);
    let mut codes: Vec<u16> = Vec::new();
    for answer in hanging {
        codes.push(answer.await.expect("no panic").status().as_u16());
    }
    let of = |code: u16| codes.iter().filter(|one| **one == code).count();
    assert_eq!((of(504) + of(429), of(504) > 0), (410, true), "{codes:?}");
    assert!((60..62).contains(&start.elapsed().as_secs()), "each is given up after its time");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_do_it_is_told_so_without_a_place_or_a_body() {
    let users = start(Settings { max_writes: 1, ..Settings::default() }).await;
    // Its place is kept until its answer is read.
    let held = users.one.open(Method::POST, MAPS, &[], map().to_string()).await;
    assert_eq!(users.other.post(MAPS, map()).await.code, 429);
    for answer in without_bodies(&users.without, 10, MAPS).await {
        assert_eq!(answer.await.expect("no panic").status(), 403);
    }
    drop(held);
    users.other.post(MAPS, map()).await.expect(201);
}

/// A streamed list is in flight as long as somebody reads it, and no longer than any request.
#[tokio::test(start_paused = true)]
async fn a_list_has_its_place_until_it_is_read_and_not_for_ever() {
    let users = start(Settings { max_reads: 1, ..Settings::default() }).await;
    for _ in 0..4 {
        let mut large = map();
        large["data"] = json!({"k": "x".repeat(50_000)});
        users.admin.post(MAPS, large).await.expect(201);
    }
    let list = users.one.open(Method::GET, MAPS, &[], "").await;
    let refused = users.other.get(&format!("{MAPS}/a")).await;
    assert_eq!((refused.code.as_u16(), &refused.headers["retry-after"]), (429, &"1".parse().expect("text")));
    assert_eq!(&refused.bytes[..], b"Too many requests, please try again later.\n");
    users.admin.get(MAPS).await.expect(200);
    let mut body = list.into_body();
    assert!(body.frame().await.expect("a piece").is_ok());
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(body.frame().await.expect("an end").is_err(), "what is cut does not look complete");
    drop(body);
    users.other.get(MAPS).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_watch_has_a_place_until_what_was_there_is_told() {
    let users = start(Settings { max_reads: 1, ..Settings::default() }).await;
    users.admin.post(MAPS, map()).await.expect(201);
    let mut watch = users.one.watch(&format!("{MAPS}?watch=1")).await;
    assert_eq!(users.other.get(MAPS).await.code, 429);
    assert_eq!(watch.next().await.expect("an event")["type"], "ADDED");
    users.other.get(MAPS).await.expect(200);
    users.admin.post(MAPS, map()).await.expect(201);
    assert_eq!(watch.next().await.expect("an event")["type"], "ADDED");
}
