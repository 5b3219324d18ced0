//! Finalizers, conditions and statuses.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::{
    Context, Controller, Error, Guarded, Key, Outcome, Written,
    conditions::{NewCondition, Status},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    harness::{Log, Running, does, run},
    lab::Lab,
};

const FINALIZER: &str = "example.com/cleanup";

/// Guards Pods; cleans up as `works` says.
fn guarding(lab: &Lab, log: &Log<String>, works: &Arc<Mutex<bool>>) -> Running {
    let (log, works) = (log.clone(), works.clone());
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (log, works, ctx, key) = (log.clone(), *works.lock(), ctx.clone(), key.clone());
        Box::pin(async move {
            let Some(pod) = ctx.get::<Pod>(&key) else { return Ok(Outcome::Done) };
            let cleanup = || async {
                log.push("cleanup".to_owned());
                if works { Ok(()) } else { Err(Error::new("the cloud is away")) }
            };
            let guarded = ctx.guard(&*pod, FINALIZER, cleanup).await?;
            if guarded == Guarded::Alive {
                log.push("alive".to_owned());
            }
            Ok(Outcome::Done)
        })
    });
    run(lab, [Controller::new("test", reconciler).for_kind::<Pod>()])
}

fn condition<'a>(stored: &'a Value, type_: &str) -> &'a Value {
    let mut all = stored["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|condition| condition["type"] == type_).unwrap_or(&Value::Null)
}

/// OS-13.
#[tokio::test(start_paused = true)]
async fn a_cleanup_is_tried_until_it_succeeds_and_people_see_why_it_does_not() {
    let (lab, log, works) = (Lab::new().await, Log::new(), Arc::new(Mutex::new(false)));
    lab.put("pods", "a", json!({})).await;
    let _running = guarding(&lab, &log, &works);
    lab.settle().await;
    assert_eq!(log.take()[0], "alive");
    let stored = lab.stored("pods", "a").await.unwrap_or_default();
    assert_eq!(stored["metadata"]["finalizers"], json!([FINALIZER]));
    lab.remove("pods", "a").await;
    lab.until(Duration::from_secs(60), || log.entries().len() > 5).await;
    lab.settle().await;
    let stored = lab.stored("pods", "a").await.unwrap_or_default();
    let told = condition(&stored, "CleanupFailed");
    assert_eq!(told["message"], "example.com/cleanup: the cloud is away", "{stored}");
    assert_eq!(lab.events_of("test", "events").await.len(), 1, "one event, counted");
    *works.lock() = true;
    log.take();
    lab.until(Duration::from_secs(1000), || !log.entries().is_empty()).await;
    lab.settle().await;
    assert_eq!(log.take(), ["cleanup"]);
    assert!(lab.stored("pods", "a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_can_never_succeed_is_given_up_by_annotation() {
    let (lab, log, works) = (Lab::new().await, Log::new(), Arc::new(Mutex::new(false)));
    lab.put("pods", "a", json!({})).await;
    let _running = guarding(&lab, &log, &works);
    lab.settle().await;
    lab.remove("pods", "a").await;
    lab.settle().await;
    let mut pod = lab.stored("pods", "a").await.unwrap_or_default();
    pod["status"].take();
    pod["metadata"]["annotations"] = json!({"kubewright.dev/skip-cleanup": FINALIZER});
    lab.put("pods", "a", pod).await;
    lab.settle().await;
    assert!(lab.stored("pods", "a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_status_or_condition_that_says_so_already_is_not_written() {
    let (lab, log) = (Lab::new().await, Log::new());
    let seen = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (seen, ctx, key) = (seen.clone(), ctx.clone(), key.clone());
        Box::pin(async move {
            let Some(pod) = ctx.get::<Pod>(&key) else { return Ok(Outcome::Done) };
            let mut wanted = (*pod).clone();
            wanted.status.get_or_insert_default().phase = Some("Running".into());
            wanted.status.get_or_insert_default().reason = None;
            match ctx.ensure_status(&wanted).await? {
                Written::Updated { changed, .. } => seen.push(changed),
                _ => seen.push("unchanged".into()),
            }
            let pod = ctx.get::<Pod>(&key).ok_or_else(|| Error::new("gone"))?;
            let ready = NewCondition::new("Ready", Status::True, "Fine").of(&*pod);
            seen.push(format!("condition {}", ctx.set_condition(&*pod, &ready).await?.is_changed()));
            let live = ctx.live::<Pod>(&key).await?.and_then(|pod| pod.status?.phase);
            seen.push(format!("{live:?} {:?}", ctx.live::<Pod>(&key.sibling("none")).await?.is_some()));
            Ok(Outcome::Done)
        })
    });
    lab.put("pods", "a", json!({"status": {"phase": "Pending", "reason": "Slow"}})).await;
    let running =
        run(&lab, [Controller::new("test", reconciler).for_kind::<Pod>().own_events().never_paused()]);
    lab.settle().await;
    let lines = log.take();
    assert_eq!(lines[..2], [r#"{"phase":"Running","reason":null}"#, "condition true"]);
    assert_eq!(lines[2..5], [r#"Some("Running") false"#, "unchanged", "condition false"]);
    assert_eq!(running.counters.of("test").writes, 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_written_after_the_finalizer_was_added_is_no_conflict() {
    let (lab, log) = (Lab::new().await, Log::<String>::new());
    let seen = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (seen, ctx, key) = (seen.clone(), ctx.clone(), key.clone());
        Box::pin(async move {
            let Some(pod) = ctx.get::<Pod>(&key) else { return Ok(Outcome::Done) };
            ctx.guard(&*pod, FINALIZER, || async { Ok(()) }).await?;
            ctx.status(&*pod).condition(NewCondition::new("Ready", Status::True, "Fine")).await?;
            let mut fresh = (*ctx.get::<Pod>(&key).ok_or_else(|| Error::new("gone"))?).clone();
            fresh.metadata.labels.get_or_insert_default().insert("seen".into(), "yes".into());
            ctx.update(&fresh).await?;
            seen.push("done".to_owned());
            Ok(Outcome::Done)
        })
    });
    lab.put("pods", "a", json!({})).await;
    let running = run(&lab, [Controller::new("test", reconciler).for_kind::<Pod>()]);
    lab.settle().await;
    assert_eq!(log.take(), ["done"], "nothing was tried again");
    assert_eq!((running.counters.of("test").errors, running.counters.of("test").writes), (0, 3));
    let stored = lab.stored("pods", "a").await.unwrap_or_default();
    assert_eq!(stored["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(condition(&stored, "Ready")["status"], "True");
    lab.remove("pods", "a").await;
}
