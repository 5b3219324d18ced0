//! What runs an operator in production: metrics, readiness, namespaces, further clusters, and what runs beside controllers.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_runtime::{
    CancellationToken, Controller, Error, Key, LeaderElection, Manager, Metrics, Outcome, Phase, Sharding,
    World,
};
use serde_json::json;
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    harness::{Log, does, logging, run, settle},
    server::{Cut, Server},
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn manager(server: &Server) -> Manager {
    Manager::new(server.client(), World::simulated(1))
}

fn start(manager: Manager) -> (CancellationToken, JoinHandle<Result<(), Error>>) {
    let stop = CancellationToken::new();
    let end = tokio::spawn(manager.run(stop.clone()));
    (stop, end)
}

/// The value of a series in the text format.
fn value(metrics: &Metrics, series: &str) -> f64 {
    let text = metrics.text();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).parse().expect("a number")
}

/// Reconciles by name: `fail`, `never` and `panic` do so, `later` comes again after an hour, others take a second.
fn by_name() -> Controller {
    Controller::new(
        "web",
        does(|_, key: &Key| {
            let name = key.name.clone();
            Box::pin(async move {
                match name.as_str() {
                    "fail" => Err(Error::new("no")),
                    "never" => Err(Error::terminal("never")),
                    "panic" => panic!("this panic belongs to a test"),
                    "later" => Ok(Outcome::RequeueAfter(seconds(3600))),
                    _ => {
                        tokio::time::sleep(seconds(1)).await;
                        Ok(Outcome::Done)
                    }
                }
            })
        }),
    )
    .for_kind::<ConfigMap>()
}

#[tokio::test(start_paused = true)]
async fn metrics_say_what_became_of_reconciles() {
    let server = Server::new();
    for name in ["a", "later", "never"] {
        server.put("configmaps", name, json!({}));
    }
    let mut manager = manager(&server);
    manager.add(by_name().concurrency(3));
    let metrics = manager.metrics().clone();
    let zero = value(&metrics, "controller_runtime_reconcile_total{controller=\"web\",result=\"success\"}");
    assert_eq!(zero, 0.0, "it is told before it runs");
    let (stop, end) = start(manager);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let of = |series: &str| value(&metrics, &format!("{series}{{controller=\"web\"}}"));
    let result = |result: &str| {
        let series = format!("controller_runtime_reconcile_total{{controller=\"web\",result=\"{result}\"}}");
        value(&metrics, &series)
    };
    let queue =
        |series: &str| value(&metrics, &format!("workqueue_{series}{{controller=\"web\",name=\"web\"}}"));
    assert_eq!(of("controller_runtime_max_concurrent_reconciles"), 3.0);
    assert_eq!(of("controller_runtime_active_workers"), 1.0, "one is at `a` still");
    assert!((queue("unfinished_work_seconds") - 0.5).abs() < 0.01);
    assert!((queue("longest_running_processor_seconds") - 0.5).abs() < 0.01);
    settle().await;
    assert_eq!((result("success"), result("requeue_after"), result("error")), (1.0, 1.0, 1.0));
    assert_eq!(of("controller_runtime_terminal_reconcile_errors_total"), 1.0);
    assert_eq!(of("controller_runtime_reconcile_errors_total"), 1.0);
    assert_eq!(of("controller_runtime_active_workers"), 0.0);
    assert!((of("controller_runtime_reconcile_time_seconds_sum") - 1.0).abs() < 0.01);
    assert_eq!((queue("adds_total"), queue("retries_total")), (3.0, 1.0));
    assert_eq!(queue("queue_duration_seconds_count"), 3.0);
    assert!((queue("work_duration_seconds_sum") - 1.0).abs() < 0.01);
    assert_eq!(queue("unfinished_work_seconds"), 0.0);

    server.put("configmaps", "panic", json!({}));
    tokio::time::sleep(Duration::from_millis(3)).await;
    assert_eq!(of("controller_runtime_reconcile_panics_total"), 1.0);
    assert_eq!(result("error"), 2.0, "controller-runtime counts a panic as an error");
    server.remove("configmaps", "panic");
    tokio::time::sleep(seconds(3600)).await;
    assert_eq!(result("requeue_after"), 2.0);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn keys_wait_while_the_only_worker_is_busy_and_the_time_is_told() {
    let server = Server::new();
    for name in ["a", "b", "c"] {
        server.put("configmaps", name, json!({}));
    }
    let mut manager = manager(&server);
    manager.add(by_name());
    let metrics = manager.metrics().clone();
    let (_stop, _end) = start(manager);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let depth = "workqueue_depth{controller=\"web\",name=\"web\",priority=\"0\"}";
    assert_eq!(value(&metrics, depth), 2.0);
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(value(&metrics, depth), 0.0);
    let waited = value(&metrics, "workqueue_queue_duration_seconds_sum{controller=\"web\",name=\"web\"}");
    assert!((waited - 3.0).abs() < 0.01, "b waited for a second, c for two: {waited}");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_takes_too_long_is_dropped_counted_and_tried_again() {
    let (server, log) = (Server::new(), Log::new());
    server.put("configmaps", "a", json!({}));
    let calls = log.clone();
    let slow = does(move |_, _| {
        calls.push(Instant::now());
        let is_first = calls.entries().len() == 1;
        Box::pin(async move {
            if is_first {
                std::future::pending::<()>().await;
            }
            Ok(Outcome::Done)
        })
    });
    let controller = Controller::new("test", slow).for_kind::<ConfigMap>().timeout(seconds(5));
    let running = run(&server, [controller]);
    tokio::time::sleep(seconds(10)).await;
    let calls = log.entries();
    assert_eq!(calls.len(), 2);
    let between = calls[1] - calls[0];
    assert!(between >= seconds(5) && between < Duration::from_millis(5_010), "the limit and the back-off");
    let counts = running.counters.of("test");
    assert_eq!((counts.timeouts, counts.errors, counts.reconciles), (1, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn who_leads_is_told() {
    let server = Server::new();
    let mut manager = manager(&server);
    manager.elect(LeaderElection::lease("default", "web").identity("a"));
    manager.add(by_name());
    let metrics = manager.metrics().clone();
    let status = "leader_election_master_status{name=\"web\"}";
    assert_eq!(value(&metrics, status), 0.0);
    let (stop, end) = start(manager);
    settle().await;
    assert_eq!(value(&metrics, status), 1.0);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
    assert_eq!(value(&metrics, status), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_replica_is_ready_when_its_caches_are_filled() {
    let server = Server::new();
    server.uninstall("secrets");
    let mut manager = manager(&server);
    manager.add(logging(&Log::new()).for_kind::<ConfigMap>().reads::<Secret>());
    let (ready, alive) = (manager.readiness().clone(), manager.health().clone());
    let (_stop, _end) = start(manager);
    settle().await;
    assert_eq!(ready.report("", "").status, 500);
    assert_eq!(ready.report("/informer-sync", "").text, "internal server error: not filled: secrets\n");
    assert_eq!(alive.report("", "").text, "ok");
    server.install("secrets");
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(ready.report("", "").text, "ok");
}

#[tokio::test(start_paused = true)]
async fn only_the_namespaces_that_were_named_are_looked_at() {
    let (server, log) = (Server::new(), Log::new());
    for namespace in ["a", "b", "c"] {
        server.put_in(namespace, "configmaps", "one", json!({}));
    }
    let mut manager = manager(&server);
    manager.watch_namespaces(["c".to_owned(), "a".to_owned()]);
    manager.add(logging(&log).for_kind::<ConfigMap>());
    let cache = manager.cache().clone();
    let (_stop, _end) = start(manager);
    settle().await;
    assert_eq!(log.take(), ["a/one", "c/one"]);
    let asked = server.requests();
    assert!(
        !asked.iter().any(|request| request == "GET /api/v1/configmaps" || request.contains("/b/")),
        "{asked:?}"
    );
    for namespace in ["a", "b", "c"] {
        server.put_in(namespace, "configmaps", "two", json!({}));
    }
    settle().await;
    assert_eq!(log.take(), ["a/two", "c/two"]);
    let keys = |namespace| -> Vec<String> {
        cache.list::<ConfigMap>(namespace).iter().map(|map| Key::of(&**map).to_string()).collect()
    };
    assert_eq!(keys(None), ["a/one", "a/two", "c/one", "c/two"]);
    assert_eq!(keys(Some("c")), ["c/one", "c/two"]);
    assert!(keys(Some("b")).is_empty());
    assert!(cache.get::<ConfigMap>(&Key::namespaced("b", "one")).is_none());

    // A list of one namespace says nothing of another.
    server.cut_watches(Cut::History);
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(keys(None).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn writes_outside_of_the_namespaces_leave_the_cache_alone() {
    let server = Server::new();
    server.put_in("a", "configmaps", "one", json!({}));
    let writes = does(|ctx: &kubewright_runtime::Context, key: &Key| {
        Box::pin(async move {
            for namespace in ["a", "b"] {
                let mut copy = ConfigMap::default();
                copy.metadata.name = Some(format!("copy-of-{}", key.name));
                copy.metadata.namespace = Some(namespace.to_owned());
                if !key.name.starts_with("copy") {
                    ctx.create(&copy).await?;
                    let there = ctx.get::<ConfigMap>(&Key::of(&copy)).is_some();
                    assert_eq!(there, namespace == "a", "its own write is seen at once where it looks");
                }
            }
            Ok(Outcome::Done)
        })
    });
    let mut manager = manager(&server);
    manager.watch_namespaces(["a".to_owned()]);
    manager.add(Controller::new("test", writes).for_kind::<ConfigMap>());
    let counters = manager.counters().clone();
    let (_stop, _end) = start(manager);
    settle().await;
    let counts = counters.of("test");
    assert_eq!((counts.panics, counts.errors, counts.writes), (0, 0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_controller_looks_at_two_clusters() {
    let (home, edge, log) = (Server::new(), Server::new(), Log::new());
    home.put("configmaps", "here", json!({}));
    edge.put("configmaps", "there", json!({}));
    let mut manager = manager(&home);
    let member = manager.add_cluster("edge", edge.client());
    let (seen, from) = (log.clone(), member.clone());
    let mirror = does(move |ctx: &kubewright_runtime::Context, key: &Key| {
        let place = match (ctx.get::<ConfigMap>(key), from.cache().get::<ConfigMap>(key)) {
            (Some(_), None) => "home",
            (None, Some(_)) => "edge",
            _ => "nowhere",
        };
        seen.push(format!("{} {place}", key.name));
        Box::pin(async { Ok(Outcome::Done) })
    });
    let controller = Controller::new("mirror", mirror)
        .for_kind::<ConfigMap>()
        .watches_in(&member, |map: &ConfigMap| vec![Key::of(map)]);
    assert_eq!(controller.rights().iter().count(), 2, "rights are those at home: configmaps and events");
    manager.add(controller);
    let (stop, end) = start(manager);
    settle().await;
    assert_eq!(log.take(), ["here home", "there edge"]);
    edge.remove("configmaps", "there");
    settle().await;
    assert_eq!(log.take(), ["there nowhere"]);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

/// Says when it begins and ends.
fn noted(
    log: &Log<String>,
    name: &'static str,
) -> impl Fn(CancellationToken) -> futures::future::BoxFuture<'static, Result<(), Error>> + Send + Sync + 'static
{
    let log = log.clone();
    move |stop: CancellationToken| {
        let log = log.clone();
        Box::pin(async move {
            log.push(format!("{name} begins"));
            stop.cancelled().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
            log.push(format!("{name} ends"));
            Ok(())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn what_runs_beside_controllers_starts_in_order_and_ends_in_the_opposite_one() {
    let (server, log) = (Server::new(), Log::new());
    server.slow_down(seconds(2));
    server.put("configmaps", "a", json!({}));
    let mut manager = manager(&server);
    for (name, phase) in
        [("leader", Phase::Leader), ("replica", Phase::EveryReplica), ("server", Phase::Server)]
    {
        manager.run_also(name, phase, noted(&log, name));
    }
    manager.add(logging(&log).for_kind::<ConfigMap>());
    let (stop, end) = start(manager);
    settle().await;
    assert_eq!(log.take(), ["server begins"], "the others wait for the caches");
    tokio::time::sleep(seconds(5)).await;
    let mut begun = log.take();
    begun.sort();
    assert_eq!(begun, ["default/a", "leader begins", "replica begins"]);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
    assert_eq!(log.take(), ["replica ends", "leader ends", "server ends"]);
}

#[tokio::test(start_paused = true)]
async fn what_runs_on_the_leader_runs_for_each_of_its_terms() {
    let (server, log) = (Server::new(), Log::new());
    let replica = |name: &'static str| {
        let mut manager = manager(&server);
        manager.elect(LeaderElection::lease("default", "web").identity(name));
        manager.run_also("work", Phase::Leader, noted(&log, name));
        start(manager)
    };
    let (first, end) = replica("a");
    settle().await;
    let (_second, _end) = replica("b");
    tokio::time::sleep(seconds(20)).await;
    assert_eq!(log.take(), ["a begins"], "b stands by");
    first.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(log.take(), ["a ends", "b begins"], "the lease is given back after the work has ended");
}

#[tokio::test(start_paused = true)]
async fn what_fails_ends_the_manager_with_its_error() {
    let server = Server::new();
    for phase in [Phase::Server, Phase::EveryReplica, Phase::Leader] {
        let mut manager = manager(&server);
        manager.run_also("work", phase, |_| async {
            tokio::time::sleep(seconds(3)).await;
            Err(Error::new("the disk is full"))
        });
        let (_stop, end) = start(manager);
        let error = end.await.expect("no panic").expect_err("it failed");
        assert_eq!(error.to_string(), "the disk is full");
    }
}

#[tokio::test(start_paused = true)]
async fn a_grace_period_of_nothing_waits_for_nothing_and_another_is_kept() {
    let server = Server::new();
    server.put("configmaps", "a", json!({}));
    for (grace, is_error) in [(Duration::ZERO, false), (seconds(7), true)] {
        let mut manager = manager(&server);
        manager.graceful_shutdown(grace);
        manager.run_also("stubborn", Phase::EveryReplica, |_| std::future::pending());
        let (stop, end) = start(manager);
        settle().await;
        let begun = Instant::now();
        stop.cancel();
        let result = end.await.expect("no panic");
        assert_eq!((begun.elapsed(), result.is_err()), (grace, is_error));
    }
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_makes_no_sense_does_not_start() {
    let server = Server::new();
    let told = async |manager: Manager| {
        manager.run(CancellationToken::new()).await.expect_err("refused").to_string()
    };
    let mut one = manager(&server);
    one.share(Sharding::ring("default", "web"));
    one.run_also("work", Phase::Leader, |_| async { Ok(()) });
    assert_eq!(told(one).await, "replicas that share keys have no leader: let it run on every replica");
    let mut two = manager(&server);
    two.add(by_name());
    two.watch_namespaces(["a".to_owned()]);
    assert_eq!(told(two).await, "the namespaces to look at come before the controllers");
    let mut three = manager(&server);
    three.add(by_name().timeout(Duration::ZERO));
    assert_eq!(told(three).await, "controller web: a timeout of 0 lets no reconcile end");
}
