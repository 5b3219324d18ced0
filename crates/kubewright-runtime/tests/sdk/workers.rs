//! How keys reach the workers: priorities, pauses, rate limits.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::{Controller, Error, Key, Outcome, predicate, workqueue::RateLimit};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    harness::{Log, does, logging, run, settle},
    server::Server,
};

/// Takes 100 ms for each key.
fn slow(log: &Log<String>) -> Controller {
    let log = log.clone();
    let reconciler = does(move |_, key: &Key| {
        log.push(key.name.clone());
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(Outcome::Done)
        })
    });
    Controller::new("test", reconciler)
}

#[tokio::test(start_paused = true)]
async fn a_change_overtakes_the_objects_that_were_there_at_the_start() {
    let (server, log) = (Server::new(), Log::new());
    (0..20).for_each(|name| drop(server.put("configmaps", &format!("{name:02}"), json!({}))));
    let _running = run(&server, [slow(&log).for_kind::<ConfigMap>()]);
    tokio::time::sleep(Duration::from_millis(250)).await;
    server.put("configmaps", "new", json!({}));
    server.put("configmaps", "15", json!({"data": {}}));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let names = log.entries();
    assert_eq!(names[..6], ["00", "01", "02", "15", "new", "03"]);
    assert_eq!(names.len(), 21, "and each is worked on once");
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_is_left_alone_and_reconciled_as_soon_as_it_is_not() {
    let (server, log) = (Server::new(), Log::new());
    let paused = json!({"metadata": {"annotations": {"kubewright.dev/paused": "true"}}});
    server.put("configmaps", "a", paused.clone());
    server.put("configmaps", "b", json!({"metadata": {"annotations": {"kubewright.dev/paused": "false"}}}));
    let controller = logging(&log).for_kind::<ConfigMap>().predicate(predicate::generation_changed());
    let running = run(&server, [controller]);
    settle().await;
    assert_eq!(log.take(), ["default/b"]);
    server.put("configmaps", "a", json!({"metadata": {}}));
    settle().await;
    assert_eq!(log.take(), ["default/a"], "though its generation did not change");
    server.put("configmaps", "a", paused);
    server.remove("configmaps", "a");
    settle().await;
    assert_eq!(log.take(), ["default/a"], "its end is seen");
    assert_eq!(running.counters.of("test").reconciles, 3);
}

#[tokio::test(start_paused = true)]
async fn the_annotation_that_pauses_can_be_another_or_none() {
    let (server, log) = (Server::new(), Log::new());
    let annotations = |name: &str| json!({"metadata": {"annotations": {name: "true"}}});
    server.put("configmaps", "ours", annotations("example.com/hands-off"));
    server.put("configmaps", "usual", annotations("kubewright.dev/paused"));
    let _running = run(&server, [logging(&log).for_kind::<ConfigMap>().paused_by("example.com/hands-off")]);
    settle().await;
    assert_eq!(log.take(), ["default/usual"]);
    let _running = run(&server, [logging(&log).for_kind::<ConfigMap>().never_paused()]);
    settle().await;
    assert_eq!(log.take(), ["default/ours", "default/usual"]);
}

#[tokio::test(start_paused = true)]
async fn retries_come_back_as_fast_as_the_rate_limit_says() {
    let (server, log) = (Server::new(), Log::new());
    let (times, start) = (log.clone(), Instant::now());
    let failing = does(move |_, _| {
        times.push(start.elapsed().as_secs());
        Box::pin(async { Err(Error::new("not yet")) })
    });
    (0..4).for_each(|name| drop(server.put("configmaps", &name.to_string(), json!({}))));
    let limit = RateLimit::per_key(Duration::from_secs(1), Duration::from_secs(2)).overall(0.1, 2);
    let _running = run(&server, [Controller::new("test", failing).for_kind::<ConfigMap>().rate_limit(limit)]);
    tokio::time::sleep(Duration::from_secs(35)).await;
    // Four first tries; two retries at once (after their second), then one in ten seconds.
    assert_eq!(log.entries(), [0, 0, 0, 0, 1, 1, 10, 20, 30]);
}
