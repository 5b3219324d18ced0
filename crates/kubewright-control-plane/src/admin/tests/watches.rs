//! Faults of watches, and how kube's watcher gets over them.

use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt};
use http_body_util::BodyExt;
use kube::ResourceExt;
use kube::api::{WatchEvent, WatchParams};
use kube::runtime::watcher;
use kubewright_codec::protobuf;
use tokio::time::Instant;

use super::*;
use crate::admin::{Schedule, Verb, WatchEnd};

type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent<ConfigMap>, kube::Error>> + Send>>;

async fn watch(cluster: &ControlPlane, version: &str) -> Events {
    Box::pin(maps(cluster).watch(&WatchParams::default().disable_bookmarks(), version).await.unwrap().boxed())
}

async fn added(events: &mut Events) -> String {
    match events.next().await.expect("an event").unwrap() {
        WatchEvent::Added(map) => map.name_any(),
        other => panic!("{other:?}"),
    }
}

/// kube's watcher, and what it has told so far: names of objects, the marks of a list, and errors.
struct Watcher(Pin<Box<dyn Stream<Item = watcher::Result<watcher::Event<ConfigMap>>> + Send>>);

impl Watcher {
    fn new(cluster: &ControlPlane) -> Self {
        let backoff = watcher::DefaultBackoff::default();
        let config = watcher::Config::default().labels("followed");
        Self(Box::pin(kube::runtime::WatchStreamExt::backoff(watcher(maps(cluster), config), backoff)))
    }

    /// What it tells until it tells of an object of this name.
    async fn until(&mut self, name: &str) -> Vec<String> {
        let mut seen = Vec::new();
        while seen.last().is_none_or(|last| last != name) {
            seen.push(match self.0.next().await.expect("it never ends") {
                Ok(watcher::Event::Init) => "list".to_owned(),
                Ok(watcher::Event::InitDone) => "listed".to_owned(),
                Ok(watcher::Event::InitApply(map) | watcher::Event::Apply(map)) => map.name_any(),
                Ok(watcher::Event::Delete(map)) => format!("not {}", map.name_any()),
                Err(error) => format!("error {error}"),
            });
        }
        seen
    }
}

async fn follow(cluster: &ControlPlane, name: &str) {
    let map = json!({"metadata": {"name": name, "labels": {"followed": ""}}});
    let map: ConfigMap = kubewright_objects::from_value(map).unwrap();
    maps(cluster).create(&PostParams::default(), &map).await.unwrap();
}

fn watches(cluster: &ControlPlane) -> usize {
    admin(cluster).requests(&Match::default().verbs([Verb::Watch]), 100).requests.len()
}

#[tokio::test(start_paused = true)]
async fn a_watcher_goes_on_where_it_was_when_its_watch_ends() {
    for (how, errors) in [(WatchEnd::Cleanly, 0), (WatchEnd::Reset, 1)] {
        let cluster = cluster().await;
        follow(&cluster, "a").await;
        let mut watcher = Watcher::new(&cluster);
        assert_eq!(watcher.until("a").await, ["list", "a"]);
        follow(&cluster, "b").await;
        assert_eq!(watcher.until("b").await, ["listed", "b"]);
        assert_eq!(watches(&cluster), 1);

        let id = admin(&cluster).inject(Rule::new(ApiFault::DropWatch { how }));
        assert_eq!(admin(&cluster).hits(id), Some(1));
        follow(&cluster, "c").await;
        let seen = watcher.until("c").await;
        assert_eq!(seen.len(), errors + 1, "{seen:?}");
        assert_eq!(watches(&cluster), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_again_when_its_history_is_gone() {
    let cluster = cluster().await;
    follow(&cluster, "a").await;
    let mut watcher = Watcher::new(&cluster);
    watcher.until("a").await;
    follow(&cluster, "b").await;
    watcher.until("b").await;
    create(&cluster, "not-followed").await;
    admin(&cluster).inject(Rule::new(ApiFault::ExpireWatch {}));
    let seen = watcher.until("listed").await;
    assert!(seen[0].starts_with("error") && seen[0].contains("too old"), "{seen:?}");
    assert_eq!(seen[1..], ["list", "a", "b", "listed"]);
    follow(&cluster, "c").await;
    assert_eq!(watcher.until("c").await, ["c"]);
}

#[tokio::test(start_paused = true)]
async fn who_watches_from_before_is_told_that_it_is_too_old() {
    let cluster = cluster().await;
    let old = create(&cluster, "a").await.resource_version().unwrap();
    let new = create(&cluster, "b").await.resource_version().unwrap();
    let id =
        admin(&cluster).inject(rule(&json!({"match": {"resource": "configmaps"}, "fault": "expireWatch"})));
    match watch(&cluster, &old).await.next().await.unwrap().unwrap() {
        WatchEvent::Error(status) => {
            assert_eq!((status.code, &*status.reason), (410, "Expired"));
            assert_eq!(status.message, format!("too old resource version: {old} ({new})"));
        }
        other => panic!("{other:?}"),
    }
    let mut events = watch(&cluster, &new).await;
    create(&cluster, "c").await;
    assert_eq!(added(&mut events).await, "c");
    admin(&cluster).remove_fault(id);
    assert_eq!(added(&mut watch(&cluster, &old).await).await, "b");
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_protobuf_ends_with_an_error_in_protobuf() {
    let cluster = cluster().await;
    let request = Request::get("/api/v1/configmaps?watch=1")
        .header("accept", "application/vnd.kubernetes.protobuf;stream=watch");
    let response = cluster.client().send(request.body(Body::empty()).unwrap()).await.unwrap();
    admin(&cluster).inject(Rule::new(ApiFault::ExpireWatch {}));
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410, "reason": "Expired",
        "message": "The resourceVersion for the provided watch is too old."
    });
    assert_eq!(bytes, protobuf::encode_event("ERROR", &protobuf::encode(&status).unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_held_tells_nothing_until_it_is_let_go() {
    let cluster = cluster().await;
    let mut before = watch(&cluster, "0").await;
    let id = admin(&cluster).inject(rule(&json!({"fault": "holdWatch"})));
    let mut after = watch(&cluster, "0").await;
    create(&cluster, "a").await;
    for events in [&mut before, &mut after] {
        let seen = tokio::time::timeout(Duration::from_secs(3600), events.next()).await;
        assert!(seen.is_err(), "{seen:?}");
    }
    assert_eq!(admin(&cluster).hits(id), Some(2));
    assert!(admin(&cluster).remove_fault(id));
    assert_eq!(added(&mut before).await, "a");
    assert_eq!(added(&mut after).await, "a");
}

#[tokio::test(start_paused = true)]
async fn what_a_watch_leaves_out_is_never_told_and_what_comes_behind_it_is() {
    let cluster = cluster().await;
    let version = create(&cluster, "a").await.resource_version().unwrap();
    let mut events = watch(&cluster, &version).await;
    let next = admin(&cluster).inject(rule(&json!({"fault": "skipWatch"})));
    create(&cluster, "b").await;
    while admin(&cluster).hits(next) != Some(1) {
        assert!(tokio::time::timeout(Duration::from_secs(1), events.next()).await.is_err());
    }
    create(&cluster, "c").await;
    assert_eq!(added(&mut events).await, "c");
    let all = admin(&cluster).inject(Rule::new(ApiFault::SkipWatch {}).at(Schedule::always()));
    create(&cluster, "d").await;
    create(&cluster, "e").await;
    assert!(tokio::time::timeout(Duration::from_secs(1), events.next()).await.is_err());
    admin(&cluster).remove_fault(all);
    create(&cluster, "f").await;
    assert_eq!(added(&mut events).await, "f");
}

#[tokio::test(start_paused = true)]
async fn a_hold_lasts_as_long_as_it_says() {
    let cluster = cluster().await;
    let mut events = watch(&cluster, "0").await;
    let before = Instant::now();
    admin(&cluster).inject(rule(&json!({"fault": {"holdWatch": {"for": "5s"}}})));
    create(&cluster, "a").await;
    assert_eq!(added(&mut events).await, "a");
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    create(&cluster, "b").await;
    assert_eq!(added(&mut events).await, "b");
    assert_eq!(before.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn what_a_watch_is_about_to_tell_is_lost_or_late_by_schedule() {
    let cluster = cluster().await;
    let version = create(&cluster, "a").await.resource_version().unwrap();
    let second = Schedule { after: 1, ..Schedule::default() };
    admin(&cluster)
        .inject(Rule::new(ApiFault::HoldWatch { lasting: Some(Duration::from_secs(9)) }).at(second));
    let third = Schedule { after: 2, ..Schedule::default() };
    admin(&cluster).inject(Rule::new(ApiFault::DropWatch { how: WatchEnd::Reset }).at(third));
    let mut events = watch(&cluster, &version).await;
    let before = Instant::now();
    let mut seen = Vec::new();
    for name in ["b", "c", "d", "e"] {
        create(&cluster, name).await;
        match events.try_next().await {
            Ok(Some(WatchEvent::Added(map))) => seen.push((map.name_any(), before.elapsed().as_secs())),
            Err(_) => break,
            other => panic!("{other:?}"),
        }
    }
    // The second is late. The third rule never saw it, so that the fourth piece is its third.
    assert_eq!(seen, [("b".to_owned(), 0), ("c".to_owned(), 9), ("d".to_owned(), 9)]);
    assert!(events.try_next().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_ends_while_a_watch_is_held() {
    let cluster = cluster().await;
    let mut events = watch(&cluster, "0").await;
    admin(&cluster).inject(rule(&json!({"fault": "holdWatch"})));
    cluster.stop().await;
    assert!(events.next().await.is_none());
}
