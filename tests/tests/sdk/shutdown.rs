//! How a manager ends.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::{Controller, Error, GRACEFUL_SHUTDOWN, Key, Outcome};
use serde_json::json;
use tokio::{runtime::Handle, time::Instant};

use crate::{
    harness::{Log, does, run},
    lab::{Lab, Only},
};

/// A controller for ConfigMaps whose reconciles take `time` and are logged when they end.
fn slow(log: &Log<String>, time: Duration) -> Controller {
    let log = log.clone();
    Controller::new(
        "test",
        does(move |_, key: &Key| {
            let (log, name) = (log.clone(), key.name.clone());
            Box::pin(async move {
                tokio::time::sleep(time).await;
                log.push(name);
                Ok(Outcome::RequeueAfter(Duration::from_secs(1)))
            })
        }),
    )
    .for_kind::<ConfigMap>()
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_finishes_what_is_due_and_lets_nothing_more_in() {
    let (lab, log) = (Lab::new().await, Log::new());
    for name in ["a", "b", "c"] {
        lab.put("configmaps", name, json!({})).await;
    }
    let running = run(&lab, [slow(&log, Duration::from_secs(2))]);
    lab.settle().await;
    running.shutdown.cancel();
    lab.put("configmaps", "d", json!({})).await;
    assert!(matches!(running.end.await, Ok(Ok(()))));
    assert_eq!(log.entries(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_does_not_end_is_dropped_after_the_grace_period() {
    let Some(lab) = Lab::only_embedded(Only::ExactTimes).await else { return };
    let log = Log::new();
    lab.put("configmaps", "a", json!({})).await;
    let running = run(&lab, [slow(&log, Duration::from_secs(3600))]);
    lab.settle().await;
    let start = Instant::now();
    running.shutdown.cancel();
    assert!(matches!(running.end.await, Ok(Err(Error::ShutdownTimedOut(_)))));
    assert_eq!(start.elapsed(), GRACEFUL_SHUTDOWN);
    assert!(log.entries().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_still_waits_for_its_caches_ends_at_once() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.link().uninstall("configmaps");
    let running = run(&lab, [slow(&log, Duration::from_secs(2))]);
    lab.settle().await;
    let start = Instant::now();
    running.shutdown.cancel();
    assert!(matches!(running.end.await, Ok(Ok(()))));
    assert!(start.elapsed() < lab.tolerance());
}

#[tokio::test(start_paused = true)]
async fn every_task_ends_with_the_manager_whether_it_is_shut_down_or_dropped() {
    for drops in [false, true] {
        let Some(lab) = Lab::only_embedded(Only::Tasks).await else { return };
        let log = Log::new();
        for name in ["a", "b", "c"] {
            lab.put("configmaps", name, json!({})).await;
        }
        let before = Handle::current().metrics().num_alive_tasks();
        let stream = futures::stream::pending();
        let running = run(&lab, [slow(&log, Duration::from_secs(2)).source(stream).concurrency(2)]);
        lab.settle().await;
        assert!(Handle::current().metrics().num_alive_tasks() > before + 4);
        if drops {
            running.end.abort();
        } else {
            running.shutdown.cancel();
        }
        let _ = running.end.await;
        // The client's own task ends with the last clone of the client, which the cache holds.
        drop(running.cache);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(Handle::current().metrics().num_alive_tasks(), before);
        let requests = lab.requests().len();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(lab.requests().len(), requests);
        assert_eq!(log.entries().len(), if drops { 0 } else { 3 });
    }
}
