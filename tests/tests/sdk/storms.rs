//! Bad days: each is survived, with bounded work, and nothing is lost.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_runtime::{CancellationToken, Context, Controller, Error, Key, Outcome, World};
use kubewright_world::ClockSkew;
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

/// Makes a Secret of each ConfigMap.
fn twins() -> Controller {
    let reconciler = does(|ctx: &Context, key: &Key| {
        let (ctx, key) = (ctx.clone(), key.clone());
        Box::pin(async move {
            let Some(map) = ctx.get::<ConfigMap>(&key) else { return Ok(Outcome::Done) };
            let mut twin = Secret { type_: Some("Opaque".to_owned()), ..Secret::default() };
            twin.metadata.name = Some(key.name.clone());
            twin.metadata.namespace.clone_from(&key.namespace);
            twin.metadata.labels = Some([("twin".to_owned(), "yes".to_owned())].into());
            ctx.ensure(&twin, Some(&*map)).await?;
            Ok(Outcome::Done)
        })
    });
    Controller::new("test", reconciler)
        .for_kind::<ConfigMap>()
        .selecting(OURS)
        .owns::<Secret>()
        .concurrency(8)
}

/// KA, Beyond 5: what it finds again takes one list of each kind, page by page so that no answer holds all of it, and a write for
/// each object that somebody changed meanwhile, but no others.
#[tokio::test(start_paused = true)]
async fn with_ten_thousand_objects_a_controller_that_starts_anew_lists_once_and_writes_what_differs() {
    let Some(lab) = Lab::only_embedded(Only::Load).await else { return };
    for number in 0..5_000 {
        lab.put("configmaps", &format!("{number:05}"), json!({})).await;
    }
    let first = run(&lab, [twins()]);
    lab.settle().await;
    first.shutdown.cancel();
    first.end.await.expect("it ends").expect("without an error");
    assert_eq!(lab.names("secrets").await.len(), 5_000, "of each kind so many");
    let is_write = |line: &&String| !line.starts_with("GET ");
    assert_eq!(lab.requests().iter().filter(is_write).count(), 5_000);

    lab.remove("secrets", "00042").await;
    lab.put("secrets", "04711", json!({"metadata": {"labels": {"twin": "no"}}})).await;
    let before = lab.requests().len();
    let second = run(&lab, [twins()]);
    lab.settle().await;
    let requests = lab.requests().split_off(before);
    let path = |name: &str| format!("/api/v1/namespaces/{}/secrets{name}", lab.namespace());
    let mut writes: Vec<_> = requests.iter().filter(is_write).cloned().collect();
    writes.sort();
    assert_eq!(writes, ["/00042", "/04711"].map(|name| format!("PATCH {}", path(name))));
    for kind in ["configmaps", "secrets"] {
        let reads = requests.iter().filter(|line| line.starts_with("GET ") && line.ends_with(kind)).count();
        // Of the ConfigMaps one page more: the root CA is among what is looked through.
        assert!((11..=12).contains(&reads), "the pages of one list of {kind}, and a watch: {reads}");
    }
    assert_eq!(second.counters.of("test").reconciles, 5_000, "each once");
    second.shutdown.cancel();
    second.end.await.expect("it ends").expect("without an error");
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
    let skew = ClockSkew::default();
    let clock = world.clock.skewed_by(skew);
    let mut manager = lab.manager_in(lab.client(), World { clock, ..world });
    manager.add(Controller::new("test", reconciler).for_kind::<ConfigMap>().selecting(OURS));
    let _running = tokio::spawn(manager.run(CancellationToken::new()));
    lab.settle().await;
    // The back-off is at its longest after that.
    tokio::time::sleep(60 * MINUTE).await;
    for years in [1, -1, 50, -20, 0] {
        skew.set_ahead(SignedDuration::from_hours(years * 365 * 24));
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
