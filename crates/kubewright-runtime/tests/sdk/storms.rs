//! Bad days: each is survived, with bounded work, and nothing is lost.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::{Controller, Error, Key, Outcome};
use serde_json::json;

use crate::{
    harness::{Log, does, logging, run, settle},
    server::{Cut, Server},
};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_storm_of_410_is_met_with_patience() {
    let (server, log) = (Server::new(), Log::new());
    server.put("configmaps", "a", json!({}));
    let _running = run(&server, [logging(&log).for_kind::<ConfigMap>()]);
    settle().await;
    server.expire(true);
    let before = server.requests().len();
    tokio::time::sleep(20 * MINUTE).await;
    let requests = server.requests().len() - before;
    assert!((20..150).contains(&requests), "{requests}");
    server.put("configmaps", "b", json!({}));
    server.expire(false);
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(log.take(), ["default/a", "default/b"]);
    server.put("configmaps", "c", json!({}));
    settle().await;
    assert_eq!(log.take(), ["default/c"], "it watches again");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_every_second_loses_nothing() {
    let (server, log) = (Server::new(), Log::new());
    let _running = run(&server, [logging(&log).for_kind::<ConfigMap>()]);
    settle().await;
    for second in 0..300 {
        server.put("configmaps", &format!("{second:03}"), json!({}));
        server.cut_watches(Cut::Connection);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(log.entries().len(), 300);
    let lists = server.requests().len();
    assert!(lists < 310, "one request a second: {lists}");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_for_minutes_is_caught_up_with() {
    let (server, log) = (Server::new(), Log::new());
    server.put("configmaps", "a", json!({}));
    server.put("configmaps", "b", json!({}));
    let _running = run(&server, [logging(&log).for_kind::<ConfigMap>()]);
    settle().await;
    log.take();
    server.refuse(503, "ServiceUnavailable", None);
    let before = server.requests().len();
    server.put("configmaps", "a", json!({"data": {"n": "1"}}));
    server.remove("configmaps", "b");
    tokio::time::sleep(10 * MINUTE).await;
    let requests = server.requests().len() - before;
    assert!((10..60).contains(&requests), "{requests}");
    assert!(log.take().is_empty());
    server.accept();
    tokio::time::sleep(MINUTE).await;
    let mut keys = log.take();
    keys.sort();
    assert_eq!(keys, ["default/a", "default/b"]);
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_at_the_start_is_waited_for() {
    let (server, log) = (Server::new(), Log::new());
    server.put("configmaps", "a", json!({}));
    server.refuse(403, "Forbidden", Some("configmaps"));
    let running = run(&server, [logging(&log).for_kind::<ConfigMap>()]);
    tokio::time::sleep(10 * MINUTE).await;
    assert!(log.take().is_empty());
    assert_eq!(running.cache.unsynced(), ["configmaps"], "and what is missing has a name");
    server.accept();
    tokio::time::sleep(MINUTE).await;
    assert_eq!(log.take(), ["default/a"]);
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_objects_at_the_start_take_one_list_and_one_reconcile_each() {
    let (server, log) = (Server::new(), Log::new());
    for name in 0..20_000 {
        server.put("configmaps", &format!("{name:05}"), json!({}));
    }
    let running = run(&server, [logging(&log).for_kind::<ConfigMap>().concurrency(8)]);
    settle().await;
    assert_eq!(log.entries().len(), 20_000);
    assert_eq!(running.counters.of("test").reconciles, 20_000);
    assert_eq!(server.requests().len(), 2, "a list and a watch");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_hangs_or_never_succeeds_holds_up_no_other_key() {
    let (server, log) = (Server::new(), Log::new());
    for name in ["fails", "hangs", "works"] {
        server.put("configmaps", name, json!({}));
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
    let running = run(&server, [controller.concurrency(2)]);
    tokio::time::sleep(60 * MINUTE).await;
    let count = |name: &str| log.entries().iter().filter(|key| *key == name).count();
    assert_eq!(count("works"), 60);
    assert_eq!(count("hangs"), 6, "each time it is dropped and tried again");
    assert!((18..30).contains(&count("fails")), "{}", count("fails"));
    assert_eq!(running.counters.of("test").timeouts, 5);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_a_year_makes_what_is_due_come_once() {
    let (server, log) = (Server::new(), Log::new());
    server.put("configmaps", "a", json!({}));
    let calls = log.clone();
    let reconciler = does(move |_, key: &Key| {
        calls.push(key.name.clone());
        Box::pin(async { Ok(Outcome::RequeueAfter(Duration::from_secs(3600))) })
    });
    let _running = run(&server, [Controller::new("test", reconciler).for_kind::<ConfigMap>()]);
    settle().await;
    log.take();
    tokio::time::advance(Duration::from_secs(365 * 24 * 3600)).await;
    settle().await;
    assert_eq!(log.take(), ["a"]);
}
