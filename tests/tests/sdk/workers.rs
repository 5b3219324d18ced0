//! How keys reach the workers: priorities, pauses, rate limits.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::{Controller, Error, Key, Outcome, predicate, workqueue::RateLimit};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    harness::{Log, does, logging, run},
    lab::{Lab, OURS, Only},
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
    let (lab, log) = (Lab::new().await, Log::new());
    for name in 0..20 {
        lab.put("configmaps", &format!("{name:02}"), json!({})).await;
    }
    let _running = run(&lab, [slow(&log).for_kind::<ConfigMap>()]);
    lab.until(Duration::from_secs(1), || log.entries().len() == 3).await;
    lab.put("configmaps", "15", json!({"data": {"n": "1"}})).await;
    lab.put("configmaps", "new", json!({})).await;
    lab.until(Duration::from_secs(10), || log.entries().len() >= 21).await;
    lab.settle().await;
    let names = log.entries();
    let at = |name: &str| names.iter().position(|key| key == name).unwrap_or(usize::MAX);
    assert!(at("15") < at("new") && at("new") < 8, "{names:?}");
    assert_eq!(names.len(), 21, "and each is worked on once");
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_is_left_alone_and_reconciled_as_soon_as_it_is_not() {
    let (lab, log) = (Lab::new().await, Log::new());
    let paused = json!({"metadata": {"annotations": {"kubewright.dev/paused": "true"}}});
    lab.put("configmaps", "a", paused.clone()).await;
    lab.put("configmaps", "b", json!({"metadata": {"annotations": {"kubewright.dev/paused": "false"}}}))
        .await;
    let controller =
        logging(&log).for_kind::<ConfigMap>().selecting(OURS).predicate(predicate::generation_changed());
    let running = run(&lab, [controller]);
    lab.settle().await;
    assert_eq!(log.take(), ["b"]);
    lab.put("configmaps", "a", json!({"metadata": {}})).await;
    lab.settle().await;
    assert_eq!(log.take(), ["a"], "though its generation did not change");
    lab.put("configmaps", "a", paused).await;
    lab.remove("configmaps", "a").await;
    lab.settle().await;
    assert_eq!(log.take(), ["a"], "its end is seen");
    assert_eq!(running.counters.of("test").reconciles, 3);
}

#[tokio::test(start_paused = true)]
async fn the_annotation_that_pauses_can_be_another_or_none() {
    let (lab, log) = (Lab::new().await, Log::new());
    let annotations = |name: &str| json!({"metadata": {"annotations": {name: "true"}}});
    lab.put("configmaps", "ours", annotations("example.com/hands-off")).await;
    lab.put("configmaps", "usual", annotations("kubewright.dev/paused")).await;
    let _running = run(&lab, [logging(&log).for_kind::<ConfigMap>().paused_by("example.com/hands-off")]);
    lab.settle().await;
    assert_eq!(log.take(), ["usual"]);
    let _running = run(&lab, [logging(&log).for_kind::<ConfigMap>().never_paused()]);
    lab.settle().await;
    assert_eq!(log.take(), ["ours", "usual"]);
}

/// RT-04.
#[tokio::test(start_paused = true)]
async fn retries_come_back_as_fast_as_the_rate_limit_says() {
    let Some(lab) = Lab::only_embedded(Only::ExactTimes).await else { return };
    let log = Log::new();
    let (times, start) = (log.clone(), Instant::now());
    let failing = does(move |_, _| {
        times.push(start.elapsed().as_secs());
        Box::pin(async { Err(Error::new("not yet")) })
    });
    for name in 0..4 {
        lab.put("configmaps", &name.to_string(), json!({})).await;
    }
    let limit = RateLimit::per_key(Duration::from_secs(1), Duration::from_secs(2)).overall(0.1, 2);
    let _running = run(&lab, [Controller::new("test", failing).for_kind::<ConfigMap>().rate_limit(limit)]);
    tokio::time::sleep(Duration::from_secs(35)).await;
    // Four first tries; two retries at once (after their second), then one in ten seconds.
    assert_eq!(log.entries(), [0, 0, 0, 0, 1, 1, 10, 20, 30]);
}
