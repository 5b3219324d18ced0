//! Which events lead to which reconciles, and when.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_runtime::{Context, Controller, Event, Key, Outcome, Predicate, predicate};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    harness::{Log, does, logging, run, settle},
    server::Server,
};

/// A Secret that the ConfigMap `owner` controls.
fn owned_by(owner: &serde_json::Value) -> serde_json::Value {
    json!({"metadata": {"ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "controller": true,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    }]}})
}

#[tokio::test(start_paused = true)]
async fn every_object_that_is_there_is_reconciled_once_when_the_manager_starts() {
    let (server, log) = (Server::new(), Log::new());
    server.put("configmaps", "b", json!({}));
    server.put("configmaps", "a", json!({}));
    let _running = run(&server, [logging(&log).for_kind::<ConfigMap>()]);
    settle().await;
    assert_eq!(log.entries(), ["default/a", "default/b"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_answered_at_once() {
    let (server, log) = (Server::new(), Log::new());
    let start = Instant::now();
    let times = log.clone();
    let controller = Controller::new(
        "test",
        does(move |_, _| {
            times.push(start.elapsed());
            Box::pin(async { Ok(Outcome::Done) })
        }),
    );
    let _running = run(&server, [controller.for_kind::<ConfigMap>()]);
    settle().await;
    server.put("configmaps", "a", json!({}));
    settle().await;
    assert_eq!(log.entries(), [Duration::from_secs(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_changes_of_one_object_is_one_reconcile_more() {
    let (server, log) = (Server::new(), Log::new());
    let seen = log.clone();
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            let seen = seen.clone();
            Box::pin(async move {
                let value =
                    ctx.get::<ConfigMap>(key).and_then(|object| object.data.as_ref()?.get("n").cloned());
                seen.push(value.unwrap_or_default());
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(Outcome::Done)
            })
        }),
    );
    let _running = run(&server, [controller.for_kind::<ConfigMap>()]);
    settle().await;
    for n in 0..100 {
        server.put("configmaps", "a", json!({"data": {"n": n.to_string()}}));
        tokio::time::sleep(Duration::from_micros(10)).await;
    }
    settle().await;
    assert_eq!(log.entries(), ["0", "99"]);
}

#[tokio::test(start_paused = true)]
async fn two_workers_never_hold_one_key_and_two_keys_do_not_wait_for_one_another() {
    let (server, log) = (Server::new(), Log::new());
    let spans = log.clone();
    let controller = Controller::new(
        "test",
        does(move |_, key: &Key| {
            let (spans, name) = (spans.clone(), key.name.clone());
            Box::pin(async move {
                let start = Instant::now();
                tokio::time::sleep(Duration::from_millis(50)).await;
                spans.push((name, start, Instant::now()));
                Ok(Outcome::Done)
            })
        }),
    );
    let _running = run(&server, [controller.for_kind::<ConfigMap>().concurrency(4)]);
    settle().await;
    for round in 0..10 {
        for name in ["a", "b"] {
            server.put("configmaps", name, json!({"data": {"round": round.to_string()}}));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    settle().await;
    let overlapping = |same: bool| {
        let spans = log.entries();
        let pairs = spans.iter().enumerate().flat_map(|(i, a)| spans[i + 1..].iter().map(move |b| (a, b)));
        pairs.filter(|(a, b)| (a.0 == b.0) == same && a.1 < b.2 && b.1 < a.2).count()
    };
    assert_eq!(overlapping(true), 0);
    assert!(overlapping(false) > 0);
}

#[tokio::test(start_paused = true)]
async fn requeue_after_an_hour_comes_an_hour_later() {
    let (server, log) = (Server::new(), Log::new());
    let times = log.clone();
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, _| {
            times.push(ctx.world().clock.now());
            Box::pin(async { Ok(Outcome::RequeueAfter(Duration::from_secs(3600))) })
        }),
    );
    server.put("configmaps", "a", json!({}));
    let running = run(&server, [controller.for_kind::<ConfigMap>()]);
    tokio::time::sleep(Duration::from_secs(3 * 3600 + 60)).await;
    let times = log.entries();
    let hours: Vec<_> = times.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs()).collect();
    assert_eq!(hours, [3600, 3600, 3600]);
    assert_eq!(running.counters.of("test").requeues_after, 4);
}

#[tokio::test(start_paused = true)]
async fn what_happens_to_a_child_reconciles_its_owner() {
    let (server, log) = (Server::new(), Log::new());
    let owner = server.put("configmaps", "owner", json!({}));
    let _running = run(&server, [logging(&log).for_kind::<ConfigMap>().owns::<Secret>()]);
    settle().await;
    log.take();
    server.put("secrets", "child", owned_by(&owner));
    server.put("secrets", "stranger", json!({}));
    settle().await;
    assert_eq!(log.take(), ["default/owner"], "its creation");
    let mut changed = owned_by(&owner);
    changed["type"] = json!("x");
    server.put("secrets", "child", changed);
    settle().await;
    assert_eq!(log.take(), ["default/owner"], "its change");
    server.remove("secrets", "child");
    server.remove("secrets", "stranger");
    settle().await;
    assert_eq!(log.take(), ["default/owner"], "its deletion");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_changes_hands_reconciles_both_owners() {
    let (server, log) = (Server::new(), Log::new());
    let (a, b) = (server.put("configmaps", "a", json!({})), server.put("configmaps", "b", json!({})));
    server.put("secrets", "child", owned_by(&a));
    let _running = run(&server, [logging(&log).for_kind::<ConfigMap>().owns::<Secret>()]);
    settle().await;
    log.take();
    server.put("secrets", "child", owned_by(&b));
    settle().await;
    assert_eq!(log.entries(), ["default/a", "default/b"]);
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_the_object_itself_reaches_the_reconciler() {
    let (server, log) = (Server::new(), Log::new());
    let seen = log.clone();
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            seen.push((key.to_string(), ctx.get::<ConfigMap>(key).is_some()));
            Box::pin(async { Ok(Outcome::Done) })
        }),
    );
    server.put("configmaps", "a", json!({}));
    let _running = run(&server, [controller.for_kind::<ConfigMap>()]);
    settle().await;
    server.remove("configmaps", "a");
    settle().await;
    assert_eq!(log.entries(), [("default/a".to_owned(), true), ("default/a".to_owned(), false)]);
}

#[tokio::test(start_paused = true)]
async fn a_mapping_is_asked_about_before_and_after() {
    let (server, log) = (Server::new(), Log::new());
    let mapping =
        |secret: &Secret| vec![Key::namespaced("default", secret.type_.clone().unwrap_or_default())];
    let _running = run(&server, [logging(&log).watches::<Secret>(mapping)]);
    settle().await;
    server.put("secrets", "s", json!({"type": "one"}));
    settle().await;
    server.put("secrets", "s", json!({"type": "two"}));
    settle().await;
    server.remove("secrets", "s");
    settle().await;
    assert_eq!(log.entries(), ["default/one", "default/one", "default/two", "default/two"]);
}

#[tokio::test(start_paused = true)]
async fn a_predicate_holds_back_the_events_of_its_source_only() {
    let (server, log) = (Server::new(), Log::new());
    let labelled = Predicate::of::<Secret>(|event| match event {
        Event::Update { old, new } => old.type_ != new.type_,
        Event::Create(_) | Event::Delete(_) | Event::Generic(_) => false,
    });
    let controller = logging(&log)
        .for_kind::<ConfigMap>()
        .predicate(predicate::generation_changed())
        .watches(|secret: &Secret| vec![Key::of(secret)])
        .predicate(labelled);
    let _running = run(&server, [controller]);
    settle().await;
    server.put("configmaps", "a", json!({"metadata": {"generation": 1}}));
    server.put("secrets", "s", json!({"type": "one"}));
    settle().await;
    assert_eq!(log.take(), ["default/a"]);
    server.put("configmaps", "a", json!({"metadata": {"generation": 1}, "data": {"status": "x"}}));
    settle().await;
    assert!(log.take().is_empty());
    server.put("configmaps", "a", json!({"metadata": {"generation": 2}}));
    settle().await;
    server.put("secrets", "s", json!({"type": "two"}));
    settle().await;
    assert_eq!(log.take(), ["default/a", "default/s"]);
}

#[tokio::test(start_paused = true)]
async fn keys_from_a_stream_are_reconciled_and_its_end_ends_nothing() {
    let (server, log) = (Server::new(), Log::new());
    let keys = futures::stream::iter([Key::cluster("one"), Key::cluster("two")]);
    let _running = run(&server, [logging(&log).source(keys).for_kind::<ConfigMap>()]);
    settle().await;
    server.put("configmaps", "a", json!({}));
    settle().await;
    assert_eq!(log.entries(), ["one", "two", "default/a"]);
}

#[tokio::test(start_paused = true)]
async fn controllers_of_one_manager_share_a_watch() {
    let (server, log) = (Server::new(), Log::new());
    let other = {
        let log: Log<String> = log.clone();
        Controller::new(
            "other",
            does(move |_, key| {
                log.push(format!("other {key}"));
                Box::pin(async { Ok(Outcome::Done) })
            }),
        )
    };
    server.put("configmaps", "a", json!({}));
    let _running = run(&server, [logging(&log).for_kind::<ConfigMap>(), other.for_kind::<ConfigMap>()]);
    settle().await;
    assert_eq!(log.entries(), ["default/a", "other default/a"]);
    assert_eq!(
        server.requests(),
        ["GET /api/v1/configmaps", "GET /api/v1/configmaps"],
        "one list, one watch"
    );
}

/// Reconciles for a random time, again after a random time, and tells when.
fn restless(name: &str, log: &Log<String>) -> Controller {
    let (name, log) = (name.to_owned(), log.clone());
    Controller::new(
        name.clone(),
        does(move |ctx: &Context, key| {
            let (name, log) = (name.clone(), log.clone());
            Box::pin(async move {
                let pause = Duration::from_millis(ctx.world().dice.below(50) as u64);
                tokio::time::sleep(pause).await;
                log.push(format!("{name} {key} {}", ctx.world().clock.now()));
                Ok(Outcome::RequeueAfter(pause))
            })
        }),
    )
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_story() {
    async fn story() -> Vec<String> {
        let (server, log) = (Server::new(), Log::new());
        for name in ["a", "b", "c", "d", "e"] {
            server.put("configmaps", name, json!({}));
            server.put("secrets", name, json!({}));
        }
        let controllers = ["one", "two", "three"].map(|name| restless(name, &log).concurrency(3));
        let controllers = controllers.map(|controller| {
            controller.for_kind::<ConfigMap>().watches(|secret: &Secret| vec![Key::of(secret)])
        });
        let running = run(&server, controllers);
        settle().await;
        running.end.abort();
        log.entries()
    }
    let first = story().await;
    assert!(first.len() > 100, "{}", first.len());
    for _ in 0..10 {
        assert_eq!(first, story().await);
    }
}
