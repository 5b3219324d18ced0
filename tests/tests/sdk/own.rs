//! What a reconcile wrote does not wake its own key, and everything else does.

use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome};
use serde_json::json;

use crate::{
    harness::{Log, does, run},
    lab::{Lab, OURS, Only},
    link::Cut,
};

/// Gives each ConfigMap a Secret that says `value`, and says in the ConfigMap's labels what it saw.
async fn mirror(ctx: &Context, key: &Key) -> Result<Outcome, Error> {
    let Some(map) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
    let value = map.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default();
    let secret = Secret {
        metadata: ObjectMeta {
            name: map.metadata.name.clone(),
            namespace: map.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        data: Some([("value".to_owned(), ByteString(value.clone().into_bytes()))].into()),
        ..Secret::default()
    };
    ctx.ensure(&secret, Some(&*map)).await?;
    let seen = map.metadata.labels.as_ref().and_then(|labels| labels.get("seen"));
    if seen != Some(&value) {
        ctx.patch::<ConfigMap>(key, json!({"metadata": {"labels": {"seen": value}}})).await?;
    }
    Ok(Outcome::Done)
}

/// A controller named `test` that logs its keys and mirrors.
fn mirroring(log: &Log<String>) -> Controller {
    let log = log.clone();
    let reconciler = does(move |ctx, key| {
        log.push(key.name.clone());
        Box::pin(mirror(ctx, key))
    });
    Controller::new("test", reconciler)
}

fn value(text: &str) -> serde_json::Value {
    json!({"data": {"value": text}})
}

/// A controller of ConfigMaps that patches `key` to `n` in its first reconcile, and logs each.
fn patching(log: &Log<String>) -> Controller {
    let log = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| -> BoxFuture<'_, _> {
        let first = log.entries().is_empty();
        log.push(key.name.clone());
        Box::pin(async move {
            if first {
                ctx.patch::<ConfigMap>(key, json!({"data": {"mine": "1"}})).await?;
            }
            Ok(Outcome::Done)
        })
    });
    Controller::new("test", reconciler).for_kind::<ConfigMap>().selecting(OURS)
}

#[tokio::test(start_paused = true)]
async fn a_change_takes_one_reconcile_whenever_watch_and_answer_come() {
    for (watch, answer) in [(0, 0), (0, 50), (200, 0), (200, 50), (50, 50)] {
        let (lab, log) = (Lab::new().await, Log::new());
        lab.link().delay_watches(Duration::from_millis(watch));
        lab.link().slow_down(Duration::from_millis(answer));
        let running = run(&lab, [mirroring(&log).for_kind::<ConfigMap>().owns::<Secret>().concurrency(4)]);
        lab.settle().await;
        for name in ["a", "b", "c"] {
            lab.put("configmaps", name, value("1")).await;
        }
        lab.settle().await;
        for name in ["a", "b", "c"] {
            let mut changed = lab.stored("configmaps", name).await.expect("it is there");
            changed["data"]["value"] = json!("2");
            lab.put("configmaps", name, changed).await;
        }
        lab.settle().await;
        assert_eq!(log.take(), ["a", "b", "c", "a", "b", "c"], "watch {watch} ms, answers {answer} ms late");
        assert_eq!(running.counters.of("test").writes, 12);
        lab.remove("secrets", "a").await;
        lab.settle().await;
        assert_eq!(log.take(), ["a"], "what others do to an owned object is put right");
        assert_eq!(lab.stored("secrets", "a").await.expect("it is there again")["data"]["value"], "Mg==");
    }
}

#[tokio::test(start_paused = true)]
async fn a_foreign_write_between_what_was_seen_and_what_was_written_wakes() {
    for (watch, answer) in [(200, 0), (200, 50), (0, 50)] {
        let (lab, log) = (Lab::new().await, Log::new());
        lab.put("configmaps", "a", json!({})).await;
        let foreign = Api::<ConfigMap>::namespaced(lab.admin(), lab.namespace());
        let calls = log.clone();
        let reconciler = does(move |ctx: &Context, key: &Key| {
            let (foreign, calls) = (foreign.clone(), calls.clone());
            Box::pin(async move {
                let seen = ctx.get::<ConfigMap>(key).and_then(|map| map.data.clone()).unwrap_or_default();
                calls.push(seen.into_keys().collect::<Vec<_>>().join(","));
                if calls.entries().len() == 1 {
                    let theirs = Patch::Merge(json!({"data": {"theirs": "1"}}));
                    foreign.patch("a", &PatchParams::default(), &theirs).await?;
                    ctx.patch::<ConfigMap>(key, json!({"data": {"mine": "1"}})).await?;
                }
                Ok(Outcome::Done)
            })
        });
        lab.link().delay_watches(Duration::from_millis(watch));
        lab.link().slow_down(Duration::from_millis(answer));
        let _running = run(&lab, [Controller::new("test", reconciler).for_kind::<ConfigMap>()]);
        lab.settle().await;
        assert_eq!(log.take(), ["", "mine,theirs"], "watch {watch} ms, answers {answer} ms late");
    }
}

#[tokio::test(start_paused = true)]
async fn other_controllers_and_other_keys_hear_of_a_write() {
    let (lab, log, others) = (Lab::new().await, Log::new(), Log::new());
    let also = |map: &ConfigMap| {
        let map_key = Key::of(map);
        vec![Key::of(map), map_key.sibling(format!("of-{}", map_key.name))]
    };
    let mine = patching(&log).watches(also).selecting(OURS).concurrency(2);
    let heard = others.clone();
    let theirs = Controller::new(
        "other",
        does(move |_, key| {
            heard.push(key.name.clone());
            Box::pin(async { Ok(Outcome::Done) })
        }),
    );
    lab.link().delay_watches(Duration::from_millis(100));
    lab.link().slow_down(Duration::from_millis(50));
    let _running = run(&lab, [mine, theirs.for_kind::<ConfigMap>().selecting(OURS)]);
    lab.settle().await;
    lab.put("configmaps", "a", json!({})).await;
    lab.settle().await;
    assert_eq!(log.take(), ["a", "of-a", "of-a"]);
    assert_eq!(others.take(), ["a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn who_wants_to_hear_of_own_writes_does() {
    for all in [false, true] {
        let (lab, log) = (Lab::new().await, Log::new());
        lab.put("configmaps", "a", json!({})).await;
        let controller = patching(&log);
        let controller = if all { controller.all_own_events() } else { controller.own_events() };
        let running = run(&lab, [controller]);
        lab.settle().await;
        assert_eq!(log.take(), ["a", "a"]);
        assert_eq!(running.counters.of("test").writes, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_what_was_asked_for_wakes() {
    for answer in [0, 50] {
        let (lab, log) = (Lab::new().await, Log::new());
        lab.put("configmaps", "a", json!({})).await;
        lab.link().change_writes(|object| object["data"]["mine"] = json!("2"));
        lab.link().slow_down(Duration::from_millis(answer));
        let _running = run(&lab, [patching(&log)]);
        lab.settle().await;
        assert_eq!(log.take(), ["a", "a"], "a webhook made something else of it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_was_lost_wakes() {
    let Some(lab) = Lab::only_embedded(Only::ExactTimes).await else { return };
    let log = Log::new();
    lab.put("configmaps", "a", json!({})).await;
    let calls = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let calls = calls.clone();
        Box::pin(async move {
            calls.push(key.name.clone());
            if calls.entries().len() == 1 {
                let write = ctx.patch::<ConfigMap>(key, json!({"data": {"mine": "1"}}));
                assert!(tokio::time::timeout(Duration::from_millis(5), write).await.is_err());
            }
            Ok(Outcome::Done)
        })
    });
    lab.link().slow_down(Duration::from_millis(10));
    let _running = run(&lab, [Controller::new("test", reconciler).for_kind::<ConfigMap>()]);
    lab.settle().await;
    assert_eq!(log.take(), ["a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_after_the_reconcile_is_over_wakes() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "a", json!({})).await;
    let calls = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        calls.push(key.name.clone());
        let (first, ctx, key) = (calls.entries().len() == 1, ctx.clone(), key.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if first {
                ctx.patch::<ConfigMap>(&key, json!({"data": {"mine": "1"}})).await.expect("patched");
            }
        });
        Box::pin(async { Ok(Outcome::Done) })
    });
    let _running = run(&lab, [Controller::new("test", reconciler).for_kind::<ConfigMap>()]);
    lab.settle().await;
    assert_eq!(log.take(), ["a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn an_own_deletion_wakes() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "a", json!({})).await;
    lab.put("configmaps", "held", json!({"metadata": {"finalizers": ["example.com/held"]}})).await;
    let calls = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let calls = calls.clone();
        Box::pin(async move {
            let there = ctx.get::<ConfigMap>(key);
            let ends = there.as_ref().is_some_and(|map| map.metadata.deletion_timestamp.is_some());
            calls.push(format!("{} {} {ends}", key.name, there.is_some()));
            if there.is_some() && !ends {
                ctx.delete::<ConfigMap>(key, DeleteParams::default()).await?;
            } else if let Some(map) = there {
                ctx.remove_finalizer(&*map, "example.com/held").await?;
            }
            Ok(Outcome::Done)
        })
    });
    let _running = run(&lab, [Controller::new("test", reconciler).for_kind::<ConfigMap>()]);
    lab.settle().await;
    let mut seen = log.take();
    seen.sort();
    assert_eq!(
        seen,
        ["a false false", "a true false", "held false false", "held true false", "held true true"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_that_may_hide_a_foreign_write_wakes() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "a", json!({})).await;
    lab.link().delay_watches(Duration::from_millis(500));
    let running = run(&lab, [patching(&log)]);
    lab.until(Duration::from_millis(100), || running.counters.of("test").writes == 1).await;
    assert_eq!(log.take(), ["a"]);
    log.push("wrote".to_owned());
    // The watch has not told of the write yet, and never will.
    lab.link().cut_watches(Cut::History);
    lab.until(Duration::from_secs(1), || log.entries().len() > 1).await;
    lab.settle().await;
    assert_eq!(log.take(), ["wrote", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_fails_after_its_write_is_tried_again() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "a", json!({})).await;
    let calls = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let calls = calls.clone();
        Box::pin(async move {
            calls.push(key.name.clone());
            if calls.entries().len() == 1 {
                ctx.patch::<ConfigMap>(key, json!({"data": {"mine": "1"}})).await?;
                return Err(Error::new("not yet"));
            }
            Ok(Outcome::Done)
        })
    });
    let running = run(&lab, [Controller::new("test", reconciler).for_kind::<ConfigMap>()]);
    lab.settle().await;
    assert_eq!(log.take(), ["a", "a"]);
    assert_eq!(running.counters.of("test").errors, 1);
}

#[tokio::test(start_paused = true)]
async fn a_plan_for_later_is_not_made_void_by_the_own_write() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let log = Log::new();
    lab.put("configmaps", "a", json!({})).await;
    let calls = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let calls = calls.clone();
        Box::pin(async move {
            calls.push(key.name.clone());
            let n = calls.entries().len().to_string();
            ctx.patch::<ConfigMap>(key, json!({"data": {"n": n}})).await?;
            Ok(Outcome::RequeueAfter(Duration::from_secs(60)))
        })
    });
    let _running = run(&lab, [Controller::new("test", reconciler).for_kind::<ConfigMap>()]);
    tokio::time::sleep(Duration::from_secs(601)).await;
    assert_eq!(log.take().len(), 11, "once a minute, although each of them writes something else");
}
