//! What happens when something goes wrong.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_runtime::{Context, Controller, Error, Key, Outcome, Predicate, workqueue::RateLimit};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    harness::{Log, does, logging, run},
    lab::{Lab, OURS, Only},
};

/// A controller that fails `failures` times in a row, succeeds once, and fails again after the next event; with the
/// times of its calls.
fn failing(log: &Log<Duration>, failures: usize, error: fn() -> Error) -> Controller {
    let (log, start) = (log.clone(), Instant::now());
    Controller::new(
        "test",
        does(move |_, _| {
            let succeeds = log.entries().len() == failures;
            log.push(start.elapsed());
            Box::pin(async move { if succeeds { Ok(Outcome::Done) } else { Err(error()) } })
        }),
    )
}

#[tokio::test(start_paused = true)]
async fn the_back_off_grows_and_starts_anew_after_a_success() {
    let Some(lab) = Lab::only_embedded(Only::ExactTimes).await else { return };
    let log = Log::new();
    lab.put("configmaps", "a", json!({})).await;
    let running = run(&lab, [failing(&log, 4, || Error::new("not yet")).for_kind::<ConfigMap>()]);
    lab.settle().await;
    let millis =
        |times: &[Duration]| -> Vec<_> { times.windows(2).map(|t| (t[1] - t[0]).as_millis()).collect() };
    assert_eq!(millis(&log.take()), [5, 10, 20, 40]);
    assert_eq!(running.counters.of("test").errors, 4);
    // The next call is no longer the fifth one: it fails, and waits 5 ms again.
    (0..5).for_each(|_| log.push(Duration::ZERO));
    lab.put("configmaps", "a", json!({"data": {"n": "1"}})).await;
    tokio::time::sleep(Duration::from_millis(6)).await;
    assert_eq!(millis(&log.entries()[5..]), [5]);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_counted_and_waits_for_the_next_event() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "a", json!({})).await;
    let running = run(&lab, [failing(&log, 99, || Error::terminal("never")).for_kind::<ConfigMap>()]);
    lab.settle().await;
    lab.pass(Duration::from_secs(10_000)).await;
    assert_eq!(log.entries().len(), 1);
    assert_eq!(running.counters.of("test").terminal_errors, 1);
    lab.put("configmaps", "a", json!({"data": {"n": "1"}})).await;
    lab.settle().await;
    assert_eq!(log.entries().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_counted_and_retried_and_the_others_go_on() {
    let (lab, log) = (Lab::new().await, Log::new());
    let calls = log.clone();
    let controller = Controller::new(
        "test",
        does(move |_, key: &Key| {
            calls.push(key.name.clone());
            let panics = key.name == "a" && calls.entries().iter().filter(|name| *name == "a").count() < 3;
            Box::pin(async move {
                assert!(!panics, "this panic belongs to a test");
                Ok(Outcome::Done)
            })
        }),
    );
    lab.put("configmaps", "a", json!({})).await;
    lab.put("configmaps", "b", json!({})).await;
    let running = run(&lab, [controller.for_kind::<ConfigMap>().selecting(OURS)]);
    lab.settle().await;
    assert_eq!(log.entries(), ["a", "b", "a", "a"]);
    let counts = running.counters.of("test");
    assert_eq!(
        (counts.panics, counts.reconciles, counts.errors),
        (2, 4, 2),
        "controller-runtime counts a panic as an error"
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_mapping_loses_its_event_only() {
    let (lab, log) = (Lab::new().await, Log::new());
    let mapping = |secret: &Secret| {
        assert!(secret.metadata.name.as_deref() != Some("bad"), "this panic belongs to a test");
        vec![Key::of(secret)]
    };
    let running = run(&lab, [logging(&log).watches::<Secret>(mapping)]);
    lab.settle().await;
    lab.put("secrets", "bad", json!({})).await;
    lab.put("secrets", "good", json!({})).await;
    lab.settle().await;
    assert_eq!(log.entries(), ["good"]);
    assert_eq!(running.counters.of("test").panics, 1);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_ends_the_manager_with_an_error() {
    let (lab, log) = (Lab::new().await, Log::new());
    let keys = futures::stream::poll_fn(|_| panic!("this panic belongs to a test"));
    let running = run(&lab, [logging(&log).source(keys)]);
    let end = running.end.await.ok();
    assert!(matches!(end, Some(Err(Error::Panicked { .. }))), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_yet_holds_up_its_own_controller_only() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.link().uninstall("secrets");
    lab.put("configmaps", "a", json!({})).await;
    let waiting = {
        let log: Log<String> = log.clone();
        Controller::new(
            "waiting",
            does(move |_, key| {
                log.push(format!("waiting {}", key.name));
                Box::pin(async { Ok(Outcome::Done) })
            }),
        )
    };
    let _running =
        run(&lab, [waiting.for_kind::<ConfigMap>().owns::<Secret>(), logging(&log).for_kind::<ConfigMap>()]);
    lab.settle().await;
    lab.pass(Duration::from_secs(600)).await;
    assert_eq!(log.take(), ["a"]);
    lab.link().install("secrets");
    lab.until(Duration::from_secs(8), || !log.entries().is_empty()).await;
    assert_eq!(log.take(), ["waiting a"]);
}

#[tokio::test(start_paused = true)]
async fn reading_a_kind_that_was_not_declared_fails_loudly() {
    let (lab, log) = (Lab::new().await, Log::new());
    let seen = log.clone();
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, _| {
            seen.push(ctx.list::<Secret>(None).len());
            Box::pin(async { Ok(Outcome::Done) })
        }),
    );
    lab.put("configmaps", "a", json!({})).await;
    let running = run(&lab, [controller.for_kind::<ConfigMap>()]);
    lab.settle().await;
    assert!(log.entries().is_empty());
    assert!(running.counters.of("test").panics > 0);
}

#[tokio::test(start_paused = true)]
async fn a_controller_put_together_wrongly_is_refused_with_every_mistake() {
    let (lab, log) = (Lab::new().await, Log::new());
    let wrong = logging(&log)
        .owns::<Secret>()
        .for_kind::<ConfigMap>()
        .predicate(Predicate::of::<Secret>(|_| true))
        .for_kind::<Secret>()
        .concurrency(0)
        .rate_limit(RateLimit::default().overall(0.0, 1))
        .paused_by("")
        .resync(Duration::ZERO)
        .watches(|map: &ConfigMap| vec![Key::of(map)])
        .selecting("metadata.name=settings");
    let running = run(&lab, [logging(&log).for_kind::<ConfigMap>(), wrong]);
    let message = match running.end.await {
        Ok(Err(Error::Misconfigured(message))) => message,
        other => panic!("{other:?}"),
    };
    for mistake in [
        "comes before for_kind",
        "another kind",
        "one own kind",
        "concurrency",
        "overall rate limit",
        "never_paused()",
        "resync period",
        "same name",
        "field selector",
    ] {
        assert!(message.contains(mistake), "{message}");
    }
    assert!(lab.requests().is_empty(), "nothing started");
}
