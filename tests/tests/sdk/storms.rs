//! Bad days: each is survived, with bounded work, and nothing is lost.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::{CancellationToken, Controller, Error, Key, Outcome, World};
use serde_json::json;

use crate::{
    harness::{Log, does, logging, run},
    lab::{Lab, OURS, Only},
    lines::Lines,
    link::Cut,
};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_storm_of_410_is_met_with_patience() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let log = Log::new();
    lab.put("configmaps", "a", json!({})).await;
    let _running = run(&lab, [logging(&log).for_kind::<ConfigMap>()]);
    lab.settle().await;
    let lines = Lines::listen();
    lab.link().expire(true);
    let before = lab.requests().len();
    tokio::time::sleep(20 * MINUTE).await;
    let requests = lab.requests().len() - before;
    assert!((20..150).contains(&requests), "{requests}");
    assert!(lines.take().len() <= 5, "at once, and every five minutes");
    lab.put("configmaps", "b", json!({})).await;
    lab.link().expire(false);
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(log.take(), ["a", "b"]);
    lab.put("configmaps", "c", json!({})).await;
    lab.settle().await;
    assert_eq!(log.take(), ["c"], "it watches again");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_every_second_loses_nothing() {
    let (lab, log) = (Lab::new().await, Log::new());
    let _running = run(&lab, [logging(&log).for_kind::<ConfigMap>()]);
    lab.settle().await;
    let lines = Lines::listen();
    let seconds = if lab.is_real() { 10 } else { 300 };
    for second in 0..seconds {
        lab.put("configmaps", &format!("{second:03}"), json!({})).await;
        lab.link().cut_watches(Cut::Connection);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    lab.settle().await;
    assert_eq!(log.entries().len(), seconds);
    let requests = lab.requests().len();
    assert!(requests < seconds + 10, "one request a second: {requests}");
    assert_eq!(lines.take(), [""; 0], "connections end, that is no news");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_for_minutes_is_caught_up_with() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let log = Log::new();
    lab.put("configmaps", "a", json!({})).await;
    lab.put("configmaps", "b", json!({})).await;
    let mut manager = lab.manager_of(lab.link().client(), 1);
    let metrics = manager.metrics().clone();
    manager.add(logging(&log).for_kind::<ConfigMap>());
    let _running = tokio::spawn(manager.run(CancellationToken::new()));
    lab.settle().await;
    log.take();
    let lines = Lines::listen();
    lab.link().refuse(503, "ServiceUnavailable", None);
    let before = lab.requests().len();
    lab.put("configmaps", "a", json!({"data": {"n": "1"}})).await;
    lab.remove("configmaps", "b").await;
    tokio::time::sleep(10 * MINUTE).await;
    let requests = lab.requests().len() - before;
    assert!((10..60).contains(&requests), "{requests}");
    assert!(log.take().is_empty());
    let told = lines.take();
    assert!((1..=3).contains(&told.len()), "at once, and every five minutes: {told:#?}");
    let refused = "rest_client_requests_total{code=\"503\",host=\"unknown\",method=\"GET\"}";
    assert!(metrics.text().contains(refused), "{}", metrics.text());
    lab.link().accept();
    tokio::time::sleep(MINUTE).await;
    let mut keys = log.take();
    keys.sort();
    assert_eq!(keys, ["a", "b"]);
    let told = lines.take();
    assert!(told.len() == 1 && told[0].contains("the watch works again"), "{told:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_at_the_start_is_waited_for() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "a", json!({})).await;
    lab.link().refuse(403, "Forbidden", Some("configmaps"));
    let running = run(&lab, [logging(&log).for_kind::<ConfigMap>()]);
    lab.pass(10 * MINUTE).await;
    assert!(log.take().is_empty());
    assert_eq!(running.cache.unsynced(), ["configmaps"], "and what is missing has a name");
    lab.link().accept();
    lab.until(MINUTE, || !log.entries().is_empty()).await;
    assert_eq!(log.take(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn five_thousand_objects_at_the_start_take_one_list_and_one_reconcile_each() {
    let Some(lab) = Lab::only_embedded(Only::Load).await else { return };
    let log = Log::new();
    for name in 0..5_000 {
        lab.put("configmaps", &format!("{name:05}"), json!({})).await;
    }
    let running = run(&lab, [logging(&log).for_kind::<ConfigMap>().selecting(OURS).concurrency(8)]);
    lab.settle().await;
    assert_eq!(log.entries().len(), 5_000);
    assert_eq!(running.counters.of("test").reconciles, 5_000);
    assert!(lab.requests().len() < 15, "a list, page by page, and a watch");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_hangs_or_never_succeeds_holds_up_no_other_key() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let log = Log::new();
    for name in ["fails", "hangs", "works"] {
        lab.put("configmaps", name, json!({})).await;
    }
    let calls = log.clone();
    let reconciler = does(move |_, key: &Key| {
        calls.push(key.name.clone());
        let name = key.name.clone();
        Box::pin(async move {
            match name.as_str() {
                "hangs" => std::future::pending().await,
                "fails" => Err(Error::new("never")),
                _ => Ok(Outcome::RequeueAfter(Duration::from_secs(60))),
            }
        })
    });
    let controller = Controller::new("test", reconciler).for_kind::<ConfigMap>().timeout(10 * MINUTE);
    let running = run(&lab, [controller.concurrency(2)]);
    tokio::time::sleep(60 * MINUTE).await;
    let count = |name: &str| log.entries().iter().filter(|key| *key == name).count();
    assert_eq!(count("works"), 60);
    assert_eq!(count("hangs"), 6, "each time it is dropped and tried again");
    assert!((18..30).contains(&count("fails")), "{}", count("fails"));
    assert_eq!(running.counters.of("test").timeouts, 5);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_a_year_makes_what_is_due_come_once() {
    let Some(lab) = Lab::only_embedded(Only::MovedClock).await else { return };
    let log = Log::new();
    lab.put("configmaps", "a", json!({})).await;
    let calls = log.clone();
    let reconciler = does(move |_, key: &Key| {
        calls.push(key.name.clone());
        Box::pin(async { Ok(Outcome::RequeueAfter(Duration::from_secs(3600))) })
    });
    let _running = run(&lab, [Controller::new("test", reconciler).for_kind::<ConfigMap>()]);
    lab.settle().await;
    log.take();
    tokio::time::advance(Duration::from_secs(365 * 24 * 3600)).await;
    lab.settle().await;
    assert_eq!(log.take(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_changes_nothing_of_what_is_due() {
    let Some(lab) = Lab::only_embedded(Only::MovedClock).await else { return };
    let log = Log::new();
    for name in ["works", "fails"] {
        lab.put("configmaps", name, json!({})).await;
    }
    let calls = log.clone();
    let reconciler = does(move |_, key: &Key| {
        calls.push(key.name.clone());
        let fails = key.name == "fails";
        Box::pin(
            async move { if fails { Err(Error::new("never")) } else { Ok(Outcome::RequeueAfter(MINUTE)) } },
        )
    });
    let world = lab.world(1);
    let (clock, hand) = world.clock.settable();
    let mut manager = lab.manager_in(lab.client(), World { clock, ..world });
    manager.add(Controller::new("test", reconciler).for_kind::<ConfigMap>().selecting(OURS));
    let _running = tokio::spawn(manager.run(CancellationToken::new()));
    lab.settle().await;
    // The back-off is at its longest after that.
    tokio::time::sleep(60 * MINUTE).await;
    for years in [1, -1, 50, -20, 0] {
        hand.set_ahead(SignedDuration::from_hours(years * 365 * 24));
        log.take();
        tokio::time::sleep(60 * MINUTE).await;
        let calls = log.take();
        let count = |name: &str| calls.iter().filter(|call| *call == name).count();
        assert_eq!(count("works"), 60, "after {years} years");
        assert!((3..=4).contains(&count("fails")), "after {years} years: {}", count("fails"));
    }
    // The watch goes on too.
    lab.put("configmaps", "new", json!({})).await;
    lab.settle().await;
    assert_eq!(log.take(), ["new"]);
}
