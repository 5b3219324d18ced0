//! What a manager looks at and asks for beside what its controllers declare: other clusters, watches that reconciles begin,
//! leases.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_runtime::{
    CancellationToken, Context, Controller, Key, LeaderElection, Manager, Outcome, Watching,
};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    harness::{Log, does, logging, run},
    lab::{Lab, OURS, Only},
};

/// A controller that watches Secrets as soon as it has something to do, and logs the keys.
fn watching_secrets(log: &Log<String>) -> Controller {
    let (log, held) = (log.clone(), Arc::new(Mutex::new(None::<Watching<Secret>>)));
    Controller::new(
        "test",
        does(move |ctx: &Context, key: &Key| {
            held.lock().get_or_insert_with(|| ctx.watch::<Secret>(|secret| vec![Key::of(secret)]));
            log.push(key.to_string());
            Box::pin(async { Ok(Outcome::Done) })
        }),
    )
    .for_kind::<ConfigMap>()
    .selecting(OURS)
}

#[tokio::test(start_paused = true)]
async fn the_namespaces_of_a_manager_are_those_of_its_other_clusters_and_of_watches_that_begin_later() {
    for clusters_first in [true, false] {
        let (mut home, edge, log) = (Lab::new().await, Lab::new().await, Log::new());
        let elsewhere = home.another_namespace("elsewhere").await;
        home.put("configmaps", "x", json!({})).await;
        home.put_in(&elsewhere, "secrets", "hidden", json!({})).await;
        let mut manager = Manager::new(home.client(), home.world(1));
        let namespaces = [home.namespace().to_owned(), edge.namespace().to_owned()];
        let member = if clusters_first {
            let member = manager.add_cluster("edge", edge.client());
            manager.watch_namespaces(namespaces.clone());
            member
        } else {
            manager.watch_namespaces(namespaces.clone());
            manager.add_cluster("edge", edge.client())
        };
        let controller = watching_secrets(&log).watches_in(&member, |map: &ConfigMap| vec![Key::of(map)]);
        manager.add(controller.selecting(OURS));
        let stop = CancellationToken::new();
        let end = tokio::spawn(manager.run(stop.clone()));
        home.settle().await;
        assert!(log.take().contains(&home.key("x").to_string()));
        for (requests, resource) in [(home.requests(), "/secrets"), (edge.requests(), "/configmaps")] {
            let asked: Vec<&String> = requests.iter().filter(|line| line.ends_with(resource)).collect();
            let is_scoped = |line: &&String| {
                namespaces.iter().any(|namespace| line.contains(&format!("/namespaces/{namespace}/")))
            };
            assert!(!asked.is_empty() && asked.iter().all(is_scoped), "{asked:?}");
        }
        stop.cancel();
        assert!(matches!(end.await, Ok(Ok(()))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_a_reconcile_began_is_replayed_when_the_replica_leads_again() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "own", json!({})).await;
    lab.put("secrets", "first", json!({})).await;
    let mut manager = lab.manager();
    manager.elect(LeaderElection::lease(lab.namespace(), "operator"));
    manager.add(watching_secrets(&log));
    let leadership = manager.leadership().expect("it elects");
    let stop = CancellationToken::new();
    let end = tokio::spawn(manager.run(stop.clone()));
    lab.settle().await;
    let key = |name: &str| lab.key(name).to_string();
    assert_eq!(log.take(), [key("own"), key("first")]);

    // The lease cannot be renewed; watches go on.
    lab.link().hold_only("leases/operator");
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert!(!leadership.is_leader());
    lab.put("secrets", "meanwhile", json!({})).await;
    lab.settle().await;
    assert!(log.take().is_empty(), "it is not its turn");
    lab.link().release();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(leadership.is_leader());
    let mut done = log.take();
    done.sort();
    assert_eq!(done, [key("first"), key("meanwhile"), key("own")]);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_client_that_was_handed_in_are_counted() {
    let (home, edge, log) = (Lab::new().await, Lab::new().await, Log::<String>::new());
    let mut manager = home.manager();
    manager.add_cluster("edge", edge.client());
    let metrics = manager.metrics().clone();
    manager.add(logging(&log).for_kind::<ConfigMap>());
    let stop = CancellationToken::new();
    let end = tokio::spawn(manager.run(stop.clone()));
    home.settle().await;
    let text = metrics.text();
    assert!(
        text.contains("rest_client_requests_total{code=\"200\",host=\"unknown\",method=\"GET\"} "),
        "{text}"
    );
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_has_nothing_to_do_writes_its_lease_by_the_clock_and_asks_for_nothing_else() {
    let Some(lab) = Lab::only_embedded(Only::ExactTimes).await else { return };
    let log = Log::<String>::new();
    let mut manager = lab.manager();
    manager.elect(LeaderElection::lease(lab.namespace(), "operator"));
    manager.add(logging(&log).for_kind::<ConfigMap>());
    let stop = CancellationToken::new();
    let end = tokio::spawn(manager.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = lab.requests().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let requests = lab.requests().split_off(before);
    let renewal = format!("PUT /apis/coordination.k8s.io/v1/namespaces/{}/leases/operator", lab.namespace());
    assert_eq!(requests, vec![renewal; 30], "every retry period of 2 s");
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_caches_were_never_filled_does_nothing_when_it_is_stopped() {
    let (lab, log) = (Lab::new().await, Log::<String>::new());
    lab.put("configmaps", "a", json!({})).await;
    lab.link().refuse(403, "Forbidden", Some("secrets"));
    let controller = logging(&log).for_kind::<ConfigMap>().selecting(OURS).reads::<Secret>();
    let running = run(&lab, [controller]);
    lab.settle().await;
    assert!(log.entries().is_empty(), "it waits");
    running.shutdown.cancel();
    assert!(matches!(running.end.await, Ok(Ok(()))));
    assert!(log.entries().is_empty(), "it would have taken what it cannot see for not there");
}
