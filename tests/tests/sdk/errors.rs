//! Errors that people are shown on the object.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::{CancellationToken, Context, Controller, Error, ErrorPolicy, Key, Outcome};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    harness::{Log, does, run},
    lab::Lab,
};

/// What a reconcile comes to, next time.
type Next = Arc<Mutex<fn() -> Result<Outcome, Error>>>;

fn next(result: fn() -> Result<Outcome, Error>) -> Next {
    Arc::new(Mutex::new(result))
}

/// A controller of Pods named `test` that shows its errors, and does what `next` says.
fn showing(next: &Next, log: &Log<()>) -> Controller {
    let (next, log) = (next.clone(), log.clone());
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (result, log, is_there) = (*next.lock(), log.clone(), ctx.get::<Pod>(key).is_some());
        Box::pin(async move {
            if !is_there {
                return Ok(Outcome::Done);
            }
            log.push(());
            result()
        })
    });
    Controller::new("test", reconciler).for_kind::<Pod>().on_error(ErrorPolicy::default())
}

async fn stalled(lab: &Lab) -> Value {
    let stored = lab.stored("pods", "a").await.unwrap_or_default();
    let mut all = stored["status"]["conditions"].as_array().into_iter().flatten();
    all.find(|condition| condition["type"] == "Stalled").cloned().unwrap_or_default()
}

fn done() -> Result<Outcome, Error> {
    Ok(Outcome::Done)
}

fn bucket_unavailable() -> Result<Outcome, Error> {
    Err(Error::new("the cloud does not answer").reason("BucketUnavailable"))
}

fn bad_name() -> Result<Outcome, Error> {
    Err(Error::terminal("no bucket has such a name").reason("BadName"))
}

#[tokio::test(start_paused = true)]
async fn an_error_that_lasts_is_shown_with_its_reason_and_taken_back_by_the_next_success() {
    let (lab, log, next) = (Lab::new().await, Log::new(), next(bucket_unavailable));
    lab.put("pods", "a", json!({})).await;
    let running = run(&lab, [showing(&next, &log)]);
    lab.until(Duration::from_secs(60), || log.entries().len() > 5).await;
    lab.settle().await;
    let shown = stalled(&lab).await;
    let parts = [&shown["status"], &shown["reason"], &shown["message"]];
    assert_eq!(parts, [&json!("True"), &json!("BucketUnavailable"), &json!("the cloud does not answer")]);
    let events = lab.events_of("test", "events").await;
    assert_eq!(events.len(), 1, "one event, counted: {events:?}");
    assert_eq!((&events[0]["reason"], &events[0]["type"]), (&json!("BucketUnavailable"), &json!("Warning")));
    assert_eq!(running.counters.of("test").writes, 1, "it said the same each time");
    assert_eq!(running.counters.of("test").reconciles, running.counters.of("test").errors);

    *next.lock() = done;
    log.take();
    lab.until(Duration::from_secs(1000), || !log.entries().is_empty()).await;
    lab.settle().await;
    let shown = stalled(&lab).await;
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("False"), &json!("ReconcileSucceeded")));
    assert_eq!(log.take().len(), 1, "what was written wakes nobody");
}

#[tokio::test(start_paused = true)]
async fn what_another_process_showed_is_taken_back_too() {
    let (lab, log, next) = (Lab::new().await, Log::new(), next(done));
    let since = "2026-01-01T00:00:00Z";
    let shown = json!({"type": "Stalled", "status": "True", "reason": "BadName", "message": "no", "lastTransitionTime": since});
    lab.put("pods", "a", json!({"status": {"conditions": [shown]}})).await;
    let _running = run(&lab, [showing(&next, &log)]);
    lab.settle().await;
    assert_eq!(stalled(&lab).await["status"], "False");
}

#[tokio::test(start_paused = true)]
async fn a_conflict_that_passes_is_not_shown() {
    fn conflict() -> Result<Outcome, Error> {
        let answer = json!({"code": 409, "reason": "Conflict", "message": "somebody was faster"});
        let answer = kubewright_objects::from_value::<kube::core::Status>(answer)?;
        Err(kube::Error::Api(answer.boxed()).into())
    }
    let (lab, log, next) = (Lab::new().await, Log::new(), next(conflict));
    lab.put("pods", "a", json!({})).await;
    let running = run(&lab, [showing(&next, &log)]);
    lab.until(Duration::from_secs(60), || log.entries().len() > 3).await;
    *next.lock() = done;
    lab.until(Duration::from_secs(60), || running.counters.of("test").errors < log.entries().len() as u64)
        .await;
    lab.settle().await;
    assert_eq!(stalled(&lab).await, Value::Null);
    assert_eq!(lab.events_of("test", "events").await.len(), 0);
    assert_eq!(running.counters.of("test").writes, 0);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_shown_at_once_and_one_that_cannot_be_shown_is_still_the_result() {
    let (lab, log, next) = (Lab::new().await, Log::new(), next(bad_name));
    lab.put("pods", "a", json!({})).await;
    let running = run(&lab, [showing(&next, &log)]);
    lab.settle().await;
    assert_eq!(stalled(&lab).await["reason"], "BadName");
    assert_eq!(running.counters.of("test").terminal_errors, 1);
    running.shutdown.cancel();
    assert!(matches!(running.end.await, Ok(Ok(()))));

    lab.put("pods", "b", json!({})).await;
    let nobody = lab.link_as_service_account("default");
    let running = run(&lab, [showing(&next, &log).acting_as(nobody.client())]);
    lab.settle().await;
    let counts = running.counters.of("test");
    assert_eq!((counts.terminal_errors, counts.errors, counts.writes), (2, 2, 0), "of both pods");
    assert_eq!(lab.stored("pods", "b").await.unwrap_or_default()["status"]["conditions"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn the_declaration_implies_the_right_to_the_status_and_needs_an_own_kind() {
    let (lab, log, next) = (Lab::new().await, Log::new(), next(done));
    let told = |controller: &Controller| -> Vec<String> {
        controller.rights().iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect()
    };
    let controller = showing(&next, &log);
    assert!(told(&controller).contains(&"pods/status patch".to_owned()), "{:?}", told(&controller));
    let controller = controller.on_error(ErrorPolicy::default().events_only());
    assert!(!told(&controller).contains(&"pods/status patch".to_owned()), "{:?}", told(&controller));

    let mut manager = lab.manager();
    let reconciler = does(|_, _| Box::pin(async { Ok(Outcome::Done) }));
    manager.add(Controller::new("lost", reconciler).on_error(ErrorPolicy::default()));
    let refused = manager.run(CancellationToken::new()).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("on_error without for_kind")));
}
