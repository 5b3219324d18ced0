//! What operators tell.

use http_body_util::BodyExt;

use super::*;

const PATH: &str = "/kubewright/reconciles";

fn report() -> Value {
    let one = json!({"key": "default/a", "began": "2026-01-01T00:00:00Z", "reasons": "created Page default/a",
        "waitedSeconds": 0.5, "tookSeconds": 1.5, "outcome": "error: no", "failed": true});
    json!({"controllers": [{"controller": "press", "waiting": 2, "reconciles": [one],
        "failing": [{"key": "default/a", "error": "no", "failedSecondsAgo": 1.0, "retryInSeconds": 4.0}]}]})
}

fn operator() -> User {
    User::new("system:serviceaccount:shop:press", ["system:authenticated"])
}

async fn header(cluster: &ControlPlane) -> Option<String> {
    let request = Request::get("/version").body(Body::empty()).unwrap();
    let response = cluster.client_as(operator()).send(request).await.unwrap();
    response.headers().get("kubewright-reconciles").map(|path| path.to_str().unwrap().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_looked_at_asks_for_reconciles_and_takes_them_from_every_user() {
    let cluster = ControlPlane::builder().request_log(true).start().await.unwrap();
    assert_eq!(header(&cluster).await, None);
    let posted = async |user, body| send(&cluster, user, Request::post(PATH), &body).await.0.as_u16();
    assert_eq!(posted(operator(), report()).await, 403, "nobody looks");
    let admin = admin(&cluster);
    admin.ask_for_reconciles();
    assert_eq!(header(&cluster).await.as_deref(), Some(PATH));
    assert_eq!(posted(operator(), report()).await, 200);
    let (told, _) = admin.reconciles_since(0);
    assert_eq!(
        (&*told[0].by.user, &*told[0].key, told[0].failed),
        ("system:serviceaccount:shop:press", "default/a", true)
    );
    let queues = admin.queues();
    assert_eq!((queues[0].waiting, &*queues[0].failing[0].error), (2, "no"));
    assert_eq!(posted(User::new("system:anonymous", ["system:unauthenticated"]), report()).await, 401);
    assert_eq!(posted(operator(), json!({"controllers": 1})).await, 400);
    assert_eq!(
        admin.requests(&Match::default(), 100).requests.iter().filter(|one| one.info.path == PATH).count(),
        1,
        "only what was refused at first is in the log"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_refused() {
    let cluster = cluster().await;
    admin(&cluster).ask_for_reconciles();
    let body = vec![b' '; 5 << 20];
    let request = Request::post(PATH).body(Body::from(body)).unwrap();
    let response = cluster.client_as(operator()).send(request).await.unwrap();
    assert_eq!(response.status(), 413);
    assert!(!response.into_body().collect().await.unwrap().to_bytes().is_empty());
}
