//! What a manager looks at and asks for beside what its controllers declare: other clusters, watches that reconciles begin,
//! leases.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_runtime::{
    CancellationToken, Context, Controller, Key, LeaderElection, Manager, Outcome, Watching, World,
};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    harness::{Log, does, logging, settle},
    link::Link,
    server::Server,
};

fn manager(server: &Server) -> Manager {
    Manager::new(server.client(), World::simulated(1))
}

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
}

fn lists<'a>(requests: &'a [String], resource: &str) -> Vec<&'a str> {
    let of = |request: &&str| request.ends_with(resource) || request.contains(&format!("{resource}?"));
    requests.iter().map(String::as_str).filter(of).collect()
}

#[tokio::test(start_paused = true)]
async fn the_namespaces_of_a_manager_are_those_of_its_other_clusters_and_of_watches_that_begin_later() {
    for clusters_first in [true, false] {
        let (home, edge, log) = (Server::new(), Server::new(), Log::new());
        home.put_in("a", "configmaps", "x", json!({}));
        home.put_in("b", "secrets", "hidden", json!({}));
        edge.put_in("b", "configmaps", "hidden", json!({}));
        let mut manager = manager(&home);
        let namespaces = ["a".to_owned()];
        let member = if clusters_first {
            let member = manager.add_cluster("edge", edge.client());
            manager.watch_namespaces(namespaces);
            member
        } else {
            manager.watch_namespaces(namespaces);
            manager.add_cluster("edge", edge.client())
        };
        manager.add(watching_secrets(&log).watches_in(&member, |map: &ConfigMap| vec![Key::of(map)]));
        let stop = CancellationToken::new();
        let end = tokio::spawn(manager.run(stop.clone()));
        settle().await;
        assert_eq!(log.take(), ["a/x"]);
        let (at_home, at_edge) = (home.requests(), edge.requests());
        for (requests, resource) in [(&at_home, "secrets"), (&at_edge, "configmaps")] {
            let asked = lists(requests, resource);
            assert!(
                !asked.is_empty() && asked.iter().all(|line| line.contains("/namespaces/a/")),
                "{asked:?}"
            );
        }
        stop.cancel();
        assert!(matches!(end.await, Ok(Ok(()))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_a_reconcile_began_is_replayed_when_the_replica_leads_again() {
    let (server, log, link) = (Server::new(), Log::new(), Link::new(1));
    server.put("configmaps", "own", json!({}));
    server.put("secrets", "first", json!({}));
    let mut manager = Manager::new(link.client(&server), World::simulated(1));
    manager.elect(LeaderElection::lease("default", "operator"));
    manager.add(watching_secrets(&log));
    let leadership = manager.leadership().expect("it elects");
    let stop = CancellationToken::new();
    let end = tokio::spawn(manager.run(stop.clone()));
    settle().await;
    assert_eq!(log.take(), ["default/own", "default/first"]);

    // The lease cannot be renewed; watches go on.
    link.hold_only("leases/operator");
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert!(!leadership.is_leader());
    server.put("secrets", "meanwhile", json!({}));
    settle().await;
    assert!(log.take().is_empty(), "it is not its turn");
    link.release();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(leadership.is_leader());
    let mut done = log.take();
    done.sort();
    assert_eq!(done, ["default/first", "default/meanwhile", "default/own"]);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_client_that_was_handed_in_are_counted() {
    let (home, edge, log) = (Server::new(), Server::new(), Log::<String>::new());
    let mut manager = manager(&home);
    manager.add_cluster("edge", edge.client());
    let metrics = manager.metrics().clone();
    manager.add(logging(&log).for_kind::<ConfigMap>());
    let stop = CancellationToken::new();
    let end = tokio::spawn(manager.run(stop.clone()));
    settle().await;
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
    let (server, log) = (Server::new(), Log::<String>::new());
    let mut manager = manager(&server);
    manager.elect(LeaderElection::lease("default", "operator"));
    manager.add(logging(&log).for_kind::<ConfigMap>());
    let stop = CancellationToken::new();
    let end = tokio::spawn(manager.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = server.requests().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let requests = server.requests().split_off(before);
    let renewal = "PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/operator";
    assert_eq!(requests, vec![renewal; 30], "every retry period of 2 s");
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}
