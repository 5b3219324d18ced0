//! Why a reconcile is.

use std::time::Duration;

use futures::stream;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Reason};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    harness::{Log, does, run},
    lab::Lab,
};

/// A controller named `test` that logs the reasons of each reconcile, without the versions, and goes on as it is told next.
fn telling(log: &Log<String>, next: Vec<Result<Outcome, Error>>) -> Controller {
    let (log, next) = (log.clone(), Mutex::new(next.into_iter()));
    let reconciler = does(move |ctx: &Context, _: &Key| {
        let told = ctx.reasons().iter().map(|reason| match reason {
            Reason::Object(object) => {
                let version = object.resource_version().unwrap_or("none");
                object.to_string().replace(&format!(" at {version}"), "")
            }
            other => other.to_string(),
        });
        log.push(told.collect::<Vec<_>>().join("; "));
        let outcome = next.lock().next().unwrap_or(Ok(Outcome::Done));
        Box::pin(async move { outcome })
    });
    Controller::new("test", reconciler)
}

#[tokio::test(start_paused = true)]
async fn each_reconcile_knows_which_object_led_to_it() {
    let (lab, log) = (Lab::new().await, Log::new());
    let owner = lab.put("configmaps", "owner", json!({})).await;
    let _running = run(&lab, [telling(&log, Vec::new()).for_kind::<ConfigMap>().owns::<Secret>()]);
    lab.settle().await;
    let namespace = lab.namespace();
    assert_eq!(log.take(), [format!("ConfigMap {namespace}/owner listed")]);
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"], "controller": true}]);
    let child = json!({"metadata": {"ownerReferences": reference}});
    lab.put("secrets", "child", child.clone()).await;
    lab.settle().await;
    lab.put("secrets", "child", json!({"metadata": {"ownerReferences": reference}, "data": {"a": "MQ=="}}))
        .await;
    lab.settle().await;
    lab.remove("secrets", "child").await;
    lab.settle().await;
    let told = ["created", "updated", "deleted"].map(|change| format!("Secret {namespace}/child {change}"));
    assert_eq!(log.take(), told);
}

#[tokio::test(start_paused = true)]
async fn a_retry_a_requeue_and_a_source_are_reasons() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "a", json!({})).await;
    let failed = || Err(Error::new("not yet"));
    let next = vec![failed(), failed(), Ok(Outcome::RequeueAfter(Duration::from_secs(5))), Ok(Outcome::Done)];
    let key = lab.key("a");
    let later = stream::once(async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        key
    });
    let _running = run(&lab, [telling(&log, next).for_kind::<ConfigMap>().source(later)]);
    lab.until(Duration::from_mins(2), || log.entries().len() >= 5).await;
    let listed = format!("ConfigMap {}/a listed", lab.namespace());
    assert_eq!(log.take(), [&listed, "retry after a failure", "retry after 2 failures", "requeue", "source"]);
}

#[tokio::test(start_paused = true)]
async fn what_happens_while_a_key_is_worked_on_is_the_reason_of_the_next_reconcile() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "a", json!({})).await;
    let seen = log.clone();
    let reconciler = does(move |ctx: &Context, _: &Key| {
        seen.push(format!("{} and {}", ctx.reasons().iter().count(), ctx.reasons().omitted()));
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            Ok(Outcome::Done)
        })
    });
    let _running = run(&lab, [Controller::new("test", reconciler).for_kind::<ConfigMap>()]);
    lab.settle().await;
    for number in 0..10 {
        lab.put("configmaps", "a", json!({"data": {"number": number.to_string()}})).await;
    }
    lab.until(Duration::from_mins(1), || log.entries().len() >= 2).await;
    assert_eq!(log.take(), ["1 and 0", "4 and 6"]);
}
