//! What runs an operator in production: metrics, readiness, namespaces, further clusters, and what runs beside controllers.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright_runtime::{
    CancellationToken, Controller, Defaults, Error, Key, LeaderElection, Manager, Metrics, Outcome, Phase,
    Sharding,
};
use serde_json::json;
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    harness::{Log, does, logging, run},
    lab::{Lab, OURS, Only, ROOT_CA},
    link::Cut,
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
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
    .selecting(OURS)
}

/// OS-15.
#[tokio::test(start_paused = true)]
async fn metrics_say_what_became_of_reconciles() {
    let Some(lab) = Lab::only_embedded(Only::ExactTimes).await else { return };
    for name in ["a", "later", "never"] {
        lab.put("configmaps", name, json!({})).await;
    }
    let mut manager = lab.manager();
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
    lab.settle().await;
    assert_eq!((result("success"), result("requeue_after"), result("error")), (1.0, 1.0, 1.0));
    assert_eq!(of("controller_runtime_terminal_reconcile_errors_total"), 1.0);
    assert_eq!(of("controller_runtime_reconcile_errors_total"), 1.0);
    assert_eq!(of("controller_runtime_active_workers"), 0.0);
    assert!((of("controller_runtime_reconcile_time_seconds_sum") - 1.0).abs() < 0.01);
    assert_eq!((queue("adds_total"), queue("retries_total")), (3.0, 1.0));
    assert_eq!(queue("queue_duration_seconds_count"), 3.0);
    assert!((queue("work_duration_seconds_sum") - 1.0).abs() < 0.01);
    assert_eq!(queue("unfinished_work_seconds"), 0.0);

    lab.put("configmaps", "panic", json!({})).await;
    tokio::time::sleep(Duration::from_millis(3)).await;
    assert_eq!(of("controller_runtime_reconcile_panics_total"), 1.0);
    assert_eq!(result("error"), 2.0, "controller-runtime counts a panic as an error");
    lab.remove("configmaps", "panic").await;
    tokio::time::sleep(seconds(3600)).await;
    assert_eq!(result("requeue_after"), 2.0);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn keys_wait_while_the_only_worker_is_busy_and_the_time_is_told() {
    let Some(lab) = Lab::only_embedded(Only::ExactTimes).await else { return };
    for name in ["a", "b", "c"] {
        lab.put("configmaps", name, json!({})).await;
    }
    let mut manager = lab.manager();
    manager.add(by_name());
    let metrics = manager.metrics().clone();
    let (_stop, _end) = start(manager);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let depth = "workqueue_depth{controller=\"web\",name=\"web\",priority=\"-100\"}";
    assert_eq!(value(&metrics, depth), 2.0);
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(value(&metrics, depth), 0.0);
    let waited = value(&metrics, "workqueue_queue_duration_seconds_sum{controller=\"web\",name=\"web\"}");
    assert!((waited - 3.0).abs() < 0.01, "b waited for a second, c for two: {waited}");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_takes_too_long_is_dropped_counted_and_tried_again() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "a", json!({})).await;
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
    let controller =
        Controller::new("test", slow).for_kind::<ConfigMap>().selecting(OURS).timeout(seconds(5));
    let running = run(&lab, [controller]);
    lab.until(seconds(10), || log.entries().len() == 2).await;
    lab.settle().await;
    let calls = log.entries();
    assert_eq!(calls.len(), 2);
    let between = calls[1] - calls[0];
    let back_off = Duration::from_millis(5);
    assert!(between >= seconds(5) && between < seconds(5) + back_off + lab.tolerance(), "{between:?}");
    let counts = running.counters.of("test");
    assert_eq!((counts.timeouts, counts.errors, counts.reconciles), (1, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn who_leads_is_told() {
    let lab = Lab::new().await;
    let mut manager = lab.manager();
    manager.elect(LeaderElection::lease(lab.namespace(), "web").identity("a"));
    manager.add(by_name());
    let metrics = manager.metrics().clone();
    let status = "leader_election_master_status{name=\"web\"}";
    assert_eq!(value(&metrics, status), 0.0);
    let (stop, end) = start(manager);
    lab.settle().await;
    assert_eq!(value(&metrics, status), 1.0);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
    assert_eq!(value(&metrics, status), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_replica_is_ready_when_its_caches_are_filled() {
    let lab = Lab::new().await;
    lab.link().uninstall("secrets");
    let mut manager = lab.manager();
    manager.add(logging(&Log::new()).for_kind::<ConfigMap>().reads::<Secret>());
    let (ready, alive) = (manager.readiness().clone(), manager.health().clone());
    let (_stop, _end) = start(manager);
    lab.settle().await;
    assert_eq!(ready.report("", "").status, 500);
    assert_eq!(ready.report("/informer-sync", "").text, "internal server error: not filled: secrets\n");
    assert_eq!(alive.report("", "").text, "ok");
    lab.link().install("secrets");
    lab.until(seconds(10), || ready.report("", "").text == "ok").await;
}

/// Writes the name of each key, and where it is from.
fn logging_places(log: &Log<String>) -> Controller {
    let log = log.clone();
    let reconciler = does(move |_, key: &Key| {
        log.push(format!("{} {}", key.namespace.as_deref().and_then(last_part).unwrap_or(""), key.name));
        Box::pin(async { Ok(Outcome::Done) })
    });
    Controller::new("test", reconciler)
}

/// The name of a further namespace of the lab, without the lab's own.
fn last_part(namespace: &str) -> Option<&str> {
    namespace.rsplit('-').next()
}

/// `a one` for a ConfigMap `one` in the namespace `a`; without the one that every namespace has.
fn places(maps: &[std::sync::Arc<ConfigMap>]) -> Vec<String> {
    let keys = maps.iter().map(|map| Key::of(&**map)).filter(|key| key.name != ROOT_CA);
    keys.map(|key| format!("{} {}", key.namespace.as_deref().and_then(last_part).unwrap_or(""), key.name))
        .collect()
}

/// OS-11.
#[tokio::test(start_paused = true)]
async fn only_the_namespaces_that_were_named_are_looked_at() {
    let (mut lab, log) = (Lab::new().await, Log::new());
    let mut namespaces = Vec::new();
    for name in ["a", "b", "c"] {
        namespaces.push(lab.another_namespace(name).await);
    }
    for namespace in &namespaces {
        lab.put_in(namespace, "configmaps", "one", json!({})).await;
    }
    let [a, b, c] = &namespaces[..] else { panic!("three") };
    let mut manager = Manager::new(lab.client(), lab.world(1));
    manager.watch_namespaces([c.clone(), a.clone()]);
    manager.add(logging_places(&log).for_kind::<ConfigMap>());
    let cache = manager.cache().clone();
    let (_stop, _end) = start(manager);
    lab.settle().await;
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(log.take()), ["a one", "c one"]);
    let asked = lab.requests();
    let elsewhere = format!("/{b}/");
    assert!(
        !asked.iter().any(|request| request == "GET /api/v1/configmaps" || request.contains(&elsewhere)),
        "{asked:?}"
    );
    for namespace in &namespaces {
        lab.put_in(namespace, "configmaps", "two", json!({})).await;
    }
    lab.settle().await;
    assert_eq!(sorted(log.take()), ["a two", "c two"]);
    let keys = |namespace| places(&cache.list::<ConfigMap>(namespace));
    assert_eq!(keys(None), ["a one", "a two", "c one", "c two"]);
    assert_eq!(keys(Some(c)), ["c one", "c two"]);
    assert!(keys(Some(b)).is_empty());
    assert!(cache.get::<ConfigMap>(&Key::namespaced(b, "one")).is_none());

    // A list of one namespace says nothing of another.
    lab.link().cut_watches(Cut::History);
    lab.settle().await;
    lab.pass(seconds(60)).await;
    assert_eq!(keys(None).len(), 4);
}

/// OS-11.
#[tokio::test(start_paused = true)]
async fn a_manager_that_names_no_namespace_looks_at_all() {
    let (mut lab, log) = (Lab::new().await, Log::new());
    let other = lab.another_namespace("other").await;
    lab.put("configmaps", "here", json!({})).await;
    lab.put_in(&other, "configmaps", "there", json!({})).await;
    let mut manager = Manager::new(lab.client(), lab.world(1));
    manager.add(logging(&log).for_kind::<ConfigMap>());
    let (_stop, _end) = start(manager);
    lab.until(seconds(5), || {
        let names = log.entries();
        ["here", "there"].iter().all(|name| names.iter().any(|seen| seen == name))
    })
    .await;
    assert_eq!(lab.requests(), ["GET /api/v1/configmaps", "GET /api/v1/configmaps"], "one list, one watch");
}

#[tokio::test(start_paused = true)]
async fn writes_outside_of_the_namespaces_leave_the_cache_alone() {
    let mut lab = Lab::new().await;
    let (here, there) = (lab.namespace().to_owned(), lab.another_namespace("other").await);
    lab.put("configmaps", "one", json!({})).await;
    let writes = does(move |ctx: &kubewright_runtime::Context, key: &Key| {
        let namespaces = [here.clone(), there.clone()];
        Box::pin(async move {
            for (namespace, is_here) in namespaces.into_iter().zip([true, false]) {
                let mut copy = ConfigMap::default();
                copy.metadata.name = Some(format!("copy-of-{}", key.name));
                copy.metadata.namespace = Some(namespace);
                if !key.name.starts_with("copy") {
                    ctx.create(&copy).await?;
                    let there = ctx.get::<ConfigMap>(&Key::of(&copy)).is_some();
                    assert_eq!(there, is_here, "its own write is seen at once where it looks");
                }
            }
            Ok(Outcome::Done)
        })
    });
    let mut manager = lab.manager();
    manager.add(Controller::new("test", writes).for_kind::<ConfigMap>());
    let counters = manager.counters().clone();
    let (_stop, _end) = start(manager);
    lab.settle().await;
    let counts = counters.of("test");
    assert_eq!((counts.panics, counts.errors, counts.writes), (0, 0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_controller_looks_at_two_clusters() {
    let (home, edge, log) = (Lab::new().await, Lab::new().await, Log::new());
    home.put("configmaps", "at-home", json!({})).await;
    edge.put("configmaps", "at-the-edge", json!({})).await;
    let mut manager = home.manager();
    manager.watch_namespaces([home.namespace().to_owned(), edge.namespace().to_owned()]);
    let member = manager.add_cluster("edge", edge.client());
    let (seen, from) = (log.clone(), member.clone());
    let mirror = does(move |ctx: &kubewright_runtime::Context, key: &Key| {
        // On a real Kubernetes both are the same cluster.
        let place = match (ctx.get::<ConfigMap>(key), from.cache().get::<ConfigMap>(key)) {
            (Some(_), _) => "home",
            (None, Some(_)) => "edge",
            (None, None) => "nowhere",
        };
        if key.name.starts_with("at-") {
            seen.push(format!("{} {place}", key.name));
        }
        Box::pin(async { Ok(Outcome::Done) })
    });
    let controller = Controller::new("mirror", mirror)
        .for_kind::<ConfigMap>()
        .watches_in(&member, |map: &ConfigMap| vec![Key::of(map)]);
    assert_eq!(controller.rights().iter().count(), 2, "rights are those at home: configmaps and events");
    manager.add(controller);
    let (stop, end) = start(manager);
    home.settle().await;
    edge.settle().await;
    let mut seen = log.take();
    seen.sort();
    seen.dedup();
    let edge_is = if home.is_real() { "home" } else { "edge" };
    assert_eq!(seen, ["at-home home".to_owned(), format!("at-the-edge {edge_is}")]);
    edge.remove("configmaps", "at-the-edge").await;
    edge.settle().await;
    assert_eq!(log.take().last().map(String::as_str), Some("at-the-edge nowhere"));
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
    let (lab, log) = (Lab::new().await, Log::new());
    lab.link().slow_down(seconds(2));
    lab.put("configmaps", "a", json!({})).await;
    let mut manager = lab.manager();
    for (name, phase) in
        [("leader", Phase::Leader), ("replica", Phase::EveryReplica), ("server", Phase::Server)]
    {
        manager.run_also(name, phase, noted(&log, name));
    }
    manager.add(logging(&log).for_kind::<ConfigMap>());
    let (stop, end) = start(manager);
    lab.settle().await;
    assert_eq!(log.take(), ["server begins"], "the others wait for the caches");
    lab.until(seconds(5), || log.entries().len() == 3).await;
    let mut begun = log.take();
    begun.sort();
    assert_eq!(begun, ["a", "leader begins", "replica begins"]);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
    assert_eq!(log.take(), ["replica ends", "leader ends", "server ends"]);
}

#[tokio::test(start_paused = true)]
async fn what_runs_on_the_leader_runs_for_each_of_its_terms() {
    let (lab, log) = (Lab::new().await, Log::new());
    let replica = |name: &'static str| {
        let mut manager = lab.manager();
        manager.elect(LeaderElection::lease(lab.namespace(), "web").identity(name));
        manager.run_also("work", Phase::Leader, noted(&log, name));
        start(manager)
    };
    let (first, end) = replica("a");
    lab.settle().await;
    let (_second, _end) = replica("b");
    lab.pass(seconds(20)).await;
    assert_eq!(log.take(), ["a begins"], "b stands by");
    first.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
    lab.until(seconds(5), || log.entries().len() == 2).await;
    assert_eq!(log.take(), ["a ends", "b begins"], "the lease is given back after the work has ended");
}

#[tokio::test(start_paused = true)]
async fn what_fails_ends_the_manager_with_its_error() {
    let lab = Lab::new().await;
    for phase in [Phase::Server, Phase::EveryReplica, Phase::Leader] {
        let mut manager = lab.manager();
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
    let lab = Lab::new().await;
    lab.put("configmaps", "a", json!({})).await;
    for (grace, is_error) in [(Duration::ZERO, false), (seconds(7), true)] {
        let mut manager = lab.manager();
        manager.graceful_shutdown(grace);
        manager.run_also("stubborn", Phase::EveryReplica, |_| std::future::pending());
        let (stop, end) = start(manager);
        lab.settle().await;
        let begun = Instant::now();
        stop.cancel();
        let result = end.await.expect("no panic");
        let late = begun.elapsed().saturating_sub(grace);
        assert!(begun.elapsed() >= grace && late < lab.tolerance(), "{late:?}");
        assert_eq!(result.is_err(), is_error);
    }
}

/// controller-runtime's `CacheSyncTimeout`; without one, a kind that comes later is waited for.
#[tokio::test(start_paused = true)]
async fn caches_that_are_not_filled_in_time_end_the_manager_with_the_kinds_and_the_reasons() {
    let lab = Lab::new().await;
    lab.link().uninstall("secrets");
    let mut manager = lab.manager();
    manager.defaults(Defaults::new().cache_sync_timeout(seconds(60)));
    manager.add(by_name().owns::<Secret>());
    let began = Instant::now();
    let error = manager.run(CancellationToken::new()).await.expect_err("Secrets are not served");
    assert!((seconds(60)..seconds(70)).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert_eq!(
        error.to_string(),
        "the caches of the controller web were not filled within 60s: \
         secrets: the API server does not serve it: is its CustomResourceDefinition installed?"
    );
    let mut filled = lab.manager();
    filled.add(by_name().cache_sync_timeout(seconds(60)));
    let (stop, end) = start(filled);
    tokio::time::sleep(seconds(600)).await;
    assert!(!end.is_finished());
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn what_a_controller_does_not_say_is_as_the_manager_says() {
    let lab = Lab::new().await;
    let mut manager = lab.manager();
    manager.defaults(Defaults::new().concurrency(4).concurrency_of::<Secret>(3));
    let of_secrets =
        |name| Controller::new(name, does(|_, _| Box::pin(async { Ok(Outcome::Done) }))).for_kind::<Secret>();
    manager.add(by_name()).add(of_secrets("by-kind")).add(of_secrets("other").concurrency(2));
    let workers = |name| {
        value(
            manager.metrics(),
            &format!(r#"controller_runtime_max_concurrent_reconciles{{controller="{name}"}}"#),
        )
    };
    assert_eq!((workers("web"), workers("by-kind"), workers("other")), (4.0, 3.0, 2.0));
    let mut wrong = lab.manager();
    wrong.defaults(Defaults::new().concurrency_of::<Secret>(0));
    let told = wrong.run(CancellationToken::new()).await.expect_err("refused").to_string();
    assert_eq!(told, "a concurrency of 0 would do nothing");
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_makes_no_sense_does_not_start() {
    let lab = Lab::new().await;
    let told = async |manager: Manager| {
        manager.run(CancellationToken::new()).await.expect_err("refused").to_string()
    };
    let mut one = lab.manager();
    one.share(Sharding::ring(lab.namespace(), "web"));
    one.run_also("work", Phase::Leader, |_| async { Ok(()) });
    assert_eq!(told(one).await, "replicas that share keys have no leader: let it run on every replica");
    let mut two = lab.manager();
    two.add(by_name());
    two.watch_namespaces(["a".to_owned()]);
    assert_eq!(told(two).await, "the namespaces to look at come before the controllers");
    let mut three = lab.manager();
    three.add(by_name().timeout(Duration::ZERO));
    assert_eq!(told(three).await, "controller web: a timeout of 0 lets no reconcile end");
}
