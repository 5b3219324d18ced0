//! Which events lead to which reconciles, and when.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kubewright_runtime::{Context, Controller, Event, Key, Outcome, Predicate, predicate};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    harness::{Log, does, logging, run},
    lab::{Lab, Only},
};

/// A Secret that the ConfigMap `owner` controls.
fn owned_by(owner: &serde_json::Value) -> serde_json::Value {
    json!({"metadata": {"ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "controller": true,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    }]}})
}

/// A Secret with a label.
fn labelled(value: &str) -> serde_json::Value {
    json!({"metadata": {"labels": {"for": value}}})
}

fn label(secret: &Secret) -> String {
    secret.metadata.labels.as_ref().and_then(|labels| labels.get("for").cloned()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn every_object_that_is_there_is_reconciled_once_when_the_manager_starts() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "b", json!({})).await;
    lab.put("configmaps", "a", json!({})).await;
    let _running = run(&lab, [logging(&log).for_kind::<ConfigMap>()]);
    lab.settle().await;
    assert_eq!(log.entries(), ["a", "b"]);
}

/// RT-01.
#[tokio::test(start_paused = true)]
async fn an_event_is_answered_at_once() {
    let (lab, log) = (Lab::new().await, Log::new());
    let start = Instant::now();
    let times = log.clone();
    let controller = Controller::new(
        "test",
        does(move |_, _| {
            times.push(start.elapsed());
            Box::pin(async { Ok(Outcome::Done) })
        }),
    );
    let _running = run(&lab, [controller.for_kind::<ConfigMap>()]);
    lab.settle().await;
    lab.put("configmaps", "a", json!({})).await;
    let written = start.elapsed();
    lab.settle().await;
    let times = log.entries();
    assert_eq!(times.len(), 1);
    let took = times[0].saturating_sub(written);
    assert!(took < lab.tolerance(), "{took:?}");
}

/// RT-09.
#[tokio::test(start_paused = true)]
async fn a_burst_of_changes_of_one_object_is_one_reconcile_more() {
    let (lab, log) = (Lab::new().await, Log::new());
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
    let _running = run(&lab, [controller.for_kind::<ConfigMap>()]);
    lab.settle().await;
    let began = Instant::now();
    for n in 0..100 {
        lab.put("configmaps", "a", json!({"data": {"n": n.to_string()}})).await;
    }
    let burst = began.elapsed();
    lab.settle().await;
    let seen = log.entries();
    assert_eq!(seen.last().map(String::as_str), Some("99"));
    // A reconcile takes a tenth of a second, and the hundred writes take no time, or a little.
    assert!(seen.len() as u128 <= 2 + burst.as_millis() / 100, "{seen:?} in {burst:?}");
}

/// RT-09.
#[tokio::test(start_paused = true)]
async fn two_workers_never_hold_one_key_and_two_keys_do_not_wait_for_one_another() {
    let (lab, log) = (Lab::new().await, Log::new());
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
    let _running = run(&lab, [controller.for_kind::<ConfigMap>().concurrency(4)]);
    lab.settle().await;
    for round in 0..10 {
        for name in ["a", "b"] {
            lab.put("configmaps", name, json!({"data": {"round": round.to_string()}})).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    lab.settle().await;
    let overlapping = |same: bool| {
        let spans = log.entries();
        let pairs = spans.iter().enumerate().flat_map(|(i, a)| spans[i + 1..].iter().map(move |b| (a, b)));
        pairs.filter(|(a, b)| (a.0 == b.0) == same && a.1 < b.2 && b.1 < a.2).count()
    };
    assert_eq!(overlapping(true), 0);
    assert!(overlapping(false) > 0);
}

/// RT-04, OS-16.
#[tokio::test(start_paused = true)]
async fn requeue_after_an_hour_comes_an_hour_later() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let log = Log::new();
    let times = log.clone();
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, _| {
            times.push(ctx.world().clock.now());
            Box::pin(async { Ok(Outcome::RequeueAfter(Duration::from_secs(3600))) })
        }),
    );
    lab.put("configmaps", "a", json!({})).await;
    let running = run(&lab, [controller.for_kind::<ConfigMap>()]);
    tokio::time::sleep(Duration::from_secs(3 * 3600 + 60)).await;
    let times = log.entries();
    let hours: Vec<_> = times.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs()).collect();
    assert_eq!(hours, [3600, 3600, 3600]);
    assert_eq!(running.counters.of("test").requeues_after, 4);
}

/// RT-02.
#[tokio::test(start_paused = true)]
async fn what_happens_to_a_child_reconciles_its_owner() {
    let (lab, log) = (Lab::new().await, Log::new());
    let owner = lab.put("configmaps", "owner", json!({})).await;
    let _running = run(&lab, [logging(&log).for_kind::<ConfigMap>().owns::<Secret>()]);
    lab.settle().await;
    log.take();
    lab.put("secrets", "child", owned_by(&owner)).await;
    lab.put("secrets", "stranger", json!({})).await;
    lab.settle().await;
    assert_eq!(log.take(), ["owner"], "its creation");
    let mut changed = owned_by(&owner);
    changed["stringData"] = json!({"n": "1"});
    lab.put("secrets", "child", changed).await;
    lab.settle().await;
    assert_eq!(log.take(), ["owner"], "its change");
    lab.remove("secrets", "child").await;
    lab.remove("secrets", "stranger").await;
    lab.settle().await;
    assert_eq!(log.take(), ["owner"], "its deletion");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_changes_hands_reconciles_both_owners() {
    let (lab, log) = (Lab::new().await, Log::new());
    let (a, b) = (lab.put("configmaps", "a", json!({})).await, lab.put("configmaps", "b", json!({})).await);
    lab.put("secrets", "child", owned_by(&a)).await;
    let _running = run(&lab, [logging(&log).for_kind::<ConfigMap>().owns::<Secret>()]);
    lab.settle().await;
    log.take();
    lab.put("secrets", "child", owned_by(&b)).await;
    lab.settle().await;
    assert_eq!(log.entries(), ["a", "b"]);
}

/// RT-05.
#[tokio::test(start_paused = true)]
async fn the_deletion_of_the_object_itself_reaches_the_reconciler() {
    let (lab, log) = (Lab::new().await, Log::new());
    let seen = log.clone();
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            seen.push((key.name.clone(), ctx.get::<ConfigMap>(key).is_some()));
            Box::pin(async { Ok(Outcome::Done) })
        }),
    );
    lab.put("configmaps", "a", json!({})).await;
    let _running = run(&lab, [controller.for_kind::<ConfigMap>()]);
    lab.settle().await;
    lab.remove("configmaps", "a").await;
    lab.settle().await;
    assert_eq!(log.entries(), [("a".to_owned(), true), ("a".to_owned(), false)]);
}

#[tokio::test(start_paused = true)]
async fn a_mapping_is_asked_about_before_and_after() {
    let (lab, log) = (Lab::new().await, Log::new());
    let namespace = lab.namespace().to_owned();
    let mapping = move |secret: &Secret| vec![Key::namespaced(&namespace, label(secret))];
    let _running = run(&lab, [logging(&log).watches::<Secret>(mapping)]);
    lab.settle().await;
    lab.put("secrets", "s", labelled("one")).await;
    lab.settle().await;
    lab.put("secrets", "s", labelled("two")).await;
    lab.settle().await;
    lab.remove("secrets", "s").await;
    lab.settle().await;
    assert_eq!(log.entries(), ["one", "one", "two", "two"]);
}

/// RT-03.
#[tokio::test(start_paused = true)]
async fn a_predicate_holds_back_the_events_of_its_source_only() {
    let (lab, log) = (Lab::new().await, Log::new());
    let relabelled = Predicate::of::<Secret>(|event| match event {
        Event::Update { old, new } => label(old) != label(new),
        Event::Create(_) | Event::Delete(_) | Event::Generic(_) => false,
    });
    let controller = logging(&log)
        .for_kind::<Pod>()
        .predicate(predicate::generation_changed())
        .watches(|secret: &Secret| vec![Key::of(secret)])
        .predicate(relabelled);
    let _running = run(&lab, [controller]);
    lab.settle().await;
    let mut pod = lab.put("pods", "a", json!({})).await;
    lab.put("secrets", "s", labelled("one")).await;
    lab.settle().await;
    assert_eq!(log.take(), ["a"]);
    lab.put("pods", "a", json!({"status": {"reason": "Slow"}})).await;
    lab.settle().await;
    assert!(log.take().is_empty());
    pod["status"].take();
    pod["spec"]["containers"][0]["image"] = json!("another");
    lab.put("pods", "a", pod).await;
    lab.settle().await;
    lab.put("secrets", "s", labelled("two")).await;
    lab.settle().await;
    assert_eq!(log.take(), ["a", "s"]);
}

#[tokio::test(start_paused = true)]
async fn keys_from_a_stream_are_reconciled_and_its_end_ends_nothing() {
    let (lab, log) = (Lab::new().await, Log::new());
    let keys = futures::stream::iter([Key::cluster_scoped("one"), Key::cluster_scoped("two")]);
    let _running = run(&lab, [logging(&log).source(keys).for_kind::<ConfigMap>()]);
    lab.settle().await;
    lab.put("configmaps", "a", json!({})).await;
    lab.settle().await;
    assert_eq!(log.entries(), ["one", "two", "a"]);
}

#[tokio::test(start_paused = true)]
async fn controllers_of_one_manager_share_a_watch() {
    let (lab, log) = (Lab::new().await, Log::new());
    let other = {
        let log: Log<String> = log.clone();
        Controller::new(
            "other",
            does(move |_, key| {
                log.push(format!("other {}", key.name));
                Box::pin(async { Ok(Outcome::Done) })
            }),
        )
    };
    lab.put("configmaps", "a", json!({})).await;
    let _running = run(&lab, [logging(&log).for_kind::<ConfigMap>(), other.for_kind::<ConfigMap>()]);
    lab.settle().await;
    assert_eq!(log.entries(), ["a", "other a"]);
    assert_eq!(lab.reads_of("configmaps"), 2, "one list, one watch");
    assert_eq!(lab.requests().len(), 2);
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
                log.push(format!("{name} {} {}", key.name, ctx.world().clock.now()));
                Ok(Outcome::RequeueAfter(pause))
            })
        }),
    )
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_story() {
    async fn story() -> Vec<String> {
        let Some(lab) = Lab::only_embedded(Only::ExactTimes).await else { return Vec::new() };
        let log = Log::new();
        for name in ["a", "b", "c", "d", "e"] {
            lab.put("configmaps", name, json!({})).await;
            lab.put("secrets", name, json!({})).await;
        }
        let controllers = ["one", "two", "three"].map(|name| restless(name, &log).concurrency(3));
        let controllers = controllers.map(|controller| {
            controller.for_kind::<ConfigMap>().watches(|secret: &Secret| vec![Key::of(secret)])
        });
        let running = run(&lab, controllers);
        lab.settle().await;
        running.end.abort();
        log.entries()
    }
    let first = story().await;
    if first.is_empty() {
        return;
    }
    assert!(first.len() > 100, "{}", first.len());
    for _ in 0..10 {
        assert_eq!(first, story().await);
    }
}
