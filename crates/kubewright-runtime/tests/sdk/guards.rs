//! Finalizers, conditions and statuses.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::{
    Context, Controller, Ensured, Error, Guarded, Key, Outcome,
    conditions::{Status, Wanted},
};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    harness::{Log, Running, does, run, settle},
    server::Server,
};

const FINALIZER: &str = "example.com/cleanup";

/// Guards Pods; cleans up as `works` says.
fn guarding(server: &Server, log: &Log<String>, works: &Arc<Mutex<bool>>) -> Running {
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
    run(server, [Controller::new("test", reconciler).for_kind::<Pod>()])
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_is_tried_until_it_succeeds_and_people_see_why_it_does_not() {
    let (server, log, works) = (Server::new(), Log::new(), Arc::new(Mutex::new(false)));
    server.put("pods", "a", json!({}));
    let _running = guarding(&server, &log, &works);
    settle().await;
    assert_eq!(log.take()[0], "alive");
    let stored = server.stored("pods", "a").unwrap_or_default();
    assert_eq!(stored["metadata"]["finalizers"], json!([FINALIZER]));
    server.remove("pods", "a");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(log.take().len() > 5);
    let stored = server.stored("pods", "a").unwrap_or_default();
    assert_eq!(stored["status"]["conditions"][0]["type"], "CleanupFailed");
    assert_eq!(stored["status"]["conditions"][0]["message"], "example.com/cleanup: the cloud is away");
    assert_eq!(server.names("events").len(), 1, "one event, counted");
    *works.lock() = true;
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert_eq!(log.take(), ["cleanup"]);
    assert!(server.stored("pods", "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_can_never_succeed_is_given_up_by_annotation() {
    let (server, log, works) = (Server::new(), Log::new(), Arc::new(Mutex::new(false)));
    server.put("pods", "a", json!({}));
    let _running = guarding(&server, &log, &works);
    settle().await;
    server.remove("pods", "a");
    settle().await;
    let mut pod = server.stored("pods", "a").unwrap_or_default();
    pod["metadata"]["annotations"] = json!({"kubewright.dev/skip-cleanup": FINALIZER});
    server.put("pods", "a", pod);
    settle().await;
    assert!(server.stored("pods", "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_status_or_condition_that_says_so_already_is_not_written() {
    let (server, log) = (Server::new(), Log::new());
    let seen = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (seen, ctx, key) = (seen.clone(), ctx.clone(), key.clone());
        Box::pin(async move {
            let Some(pod) = ctx.get::<Pod>(&key) else { return Ok(Outcome::Done) };
            let mut wanted = (*pod).clone();
            wanted.status.get_or_insert_default().phase = Some("Running".into());
            wanted.status.get_or_insert_default().reason = None;
            match ctx.ensure_status(&wanted).await? {
                Ensured::Updated { changed, .. } => seen.push(changed),
                _ => seen.push("unchanged".into()),
            }
            let pod = ctx.get::<Pod>(&key).ok_or_else(|| Error::new("gone"))?;
            let ready = Wanted::new("Ready", Status::True, "Fine").of(&*pod);
            seen.push(format!("condition {}", ctx.set_condition(&*pod, &ready).await?));
            let live = ctx.live::<Pod>(&key).await?.and_then(|pod| pod.status?.phase);
            seen.push(format!(
                "{live:?} {:?}",
                ctx.live::<Pod>(&Key::namespaced("default", "none")).await?.is_some()
            ));
            Ok(Outcome::Done)
        })
    });
    server.put("pods", "a", json!({"status": {"phase": "Pending", "reason": "Slow"}}));
    let controller = Controller::new("test", reconciler).for_kind::<Pod>().own_events();
    let running = run(&server, [controller.never_paused()]);
    settle().await;
    let lines = log.take();
    assert_eq!(lines[..2], [r#"{"phase":"Running","reason":null}"#, "condition true"]);
    assert_eq!(lines[2..5], [r#"Some("Running") false"#, "unchanged", "condition false"]);
    assert_eq!(running.counters.of("test").writes, 2);
}
