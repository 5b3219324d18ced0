//! Leader election: who works when a replica stops, dies, is cut off, or is robbed of its lease.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kubewright_runtime::{
    CancellationToken, Controller, Error, Key, LeaderElection, Leadership, Manager, Outcome, Sharding, World,
    leader::{Elector, Fenced},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    harness::{does, settle},
    link::{Ledger, Link},
    server::Server,
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// One replica of an operator that reconciles each ConfigMap every second.
struct Replica {
    leadership: Leadership,
    link: Link,
    shutdown: CancellationToken,
    end: JoinHandle<Result<(), Error>>,
}

fn election(name: &str) -> LeaderElection {
    LeaderElection::lease("default", "operator").identity(name)
}

/// A controller that works on each ConfigMap every second, for half a second.
fn working(name: &str, ledger: &Ledger) -> Controller {
    let (name, ledger) = (name.to_owned(), ledger.clone());
    Controller::new(
        "test",
        does(move |_, key: &Key| {
            let work = ledger.begin(&name, &key.name);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(500)).await;
                work.done();
                Ok(Outcome::RequeueAfter(seconds(1)))
            })
        }),
    )
    .for_kind::<ConfigMap>()
}

fn start(
    server: &Server,
    name: &str,
    seed: u64,
    controllers: impl IntoIterator<Item = Controller>,
) -> Replica {
    let link = Link::new(seed);
    let mut manager = Manager::new(link.client(server), World::simulated(seed));
    manager.elect(election(name));
    for controller in controllers {
        manager.add(controller);
    }
    let leadership = manager.leadership().expect("it elects");
    let shutdown = CancellationToken::new();
    let end = tokio::spawn(manager.run(shutdown.clone()));
    Replica { leadership, link, shutdown, end }
}

/// A leads, B stands by, and there are two objects.
async fn pair(server: &Server, ledger: &Ledger) -> (Replica, Replica) {
    for name in ["x", "y"] {
        server.put("configmaps", name, json!({}));
    }
    let a = start(server, "a", 1, [working("a", ledger)]);
    settle().await;
    let b = start(server, "b", 2, [working("b", ledger)]);
    tokio::time::sleep(seconds(10)).await;
    assert!(a.leadership.is_leader() && !b.leadership.is_leader());
    (a, b)
}

fn lease(server: &Server) -> Value {
    server.stored("leases", "operator").map(|lease| lease["spec"].clone()).unwrap_or_default()
}

/// Who worked since the last time, each once.
fn workers(ledger: &Ledger) -> Vec<String> {
    let mut workers: Vec<_> = ledger.take().into_values().flatten().collect();
    workers.sort();
    workers.dedup();
    workers
}

#[tokio::test(start_paused = true)]
async fn one_replica_works_and_its_lease_reads_as_client_gos_does() {
    let (server, ledger) = (Server::new(), Ledger::default());
    let (a, b) = pair(&server, &ledger).await;
    assert_eq!(workers(&ledger), ["a"]);
    let spec = lease(&server);
    assert_eq!(spec["holderIdentity"], "a");
    assert_eq!((&spec["leaseDurationSeconds"], &spec["leaseTransitions"]), (&json!(15), &json!(0)));
    assert_eq!(spec["acquireTime"], "2026-01-01T00:00:00.000000Z");
    assert_eq!(a.leadership.token().map(|token| token.0), Some(0));
    assert_eq!(b.leadership.token(), None);
    ledger.assert_no_overlap();
}

#[tokio::test(start_paused = true)]
async fn a_standby_takes_over_within_the_lease_duration_when_the_leader_dies() {
    let (server, ledger) = (Server::new(), Ledger::default());
    let (a, b) = pair(&server, &ledger).await;
    ledger.take();
    let lists = |server: &Server| {
        server.requests().iter().filter(|request| *request == "GET /api/v1/configmaps").count()
    };
    let before = lists(&server);
    a.end.abort();
    let died = Instant::now();
    b.leadership.elected().await;
    // The lease's duration from the last renewal that was seen, and a look that was just missed.
    assert!(died.elapsed() > seconds(10) && died.elapsed() < Duration::from_millis(15_000 + 4_400));
    assert!(!a.leadership.is_leader());
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(ledger.take().into_keys().collect::<Vec<_>>(), ["x", "y"], "all that is there, at once");
    assert_eq!(lists(&server), before, "the caches were warm");
    assert_eq!(b.leadership.token().map(|token| token.0), Some(1));
    ledger.assert_no_overlap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_work_then_releases_the_lease_which_is_taken_at_the_next_look() {
    let (server, ledger) = (Server::new(), Ledger::default());
    let (a, b) = pair(&server, &ledger).await;
    a.shutdown.cancel();
    let stopped = Instant::now();
    assert!(matches!(a.end.await, Ok(Ok(()))));
    assert!(stopped.elapsed() < seconds(2));
    let spec = lease(&server);
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&json!(""), &json!(1)));
    b.leadership.elected().await;
    assert!(stopped.elapsed() < Duration::from_millis(500 + 4_400));
    assert_eq!(lease(&server)["leaseTransitions"], 1);
    settle().await;
    ledger.assert_no_overlap();
    let events = server.names("events").into_iter().filter_map(|name| server.stored("events", &name));
    let mut told: Vec<_> = events.map(|event| (event["reason"].clone(), event["message"].clone())).collect();
    told.sort_by_key(|(_, message)| message.to_string());
    let told: Vec<_> = told.iter().map(|(reason, message)| (reason.as_str(), message.as_str())).collect();
    let reason = Some("LeaderElection");
    let notes = ["a became leader", "a stopped leading", "b became leader"];
    assert_eq!(told, notes.map(|note| (reason, Some(note))));
}

#[tokio::test(start_paused = true)]
async fn when_the_api_server_is_away_nobody_leads_and_when_it_is_back_one_does_without_a_restart() {
    let (server, ledger) = (Server::new(), Ledger::default());
    let (a, b) = pair(&server, &ledger).await;
    for replica in [&a, &b] {
        replica.link.hold();
    }
    tokio::time::sleep(seconds(11)).await;
    assert!(!a.leadership.is_leader() && !b.leadership.is_leader());
    ledger.take();
    tokio::time::sleep(seconds(300)).await;
    assert!(ledger.take().is_empty(), "nobody works");
    for replica in [&a, &b] {
        replica.link.release();
    }
    tokio::time::sleep(seconds(25)).await;
    assert!(a.leadership.is_leader() != b.leadership.is_leader());
    assert!(!a.end.is_finished() && !b.end.is_finished());
    assert_eq!(ledger.take().len(), 2);
    ledger.assert_no_overlap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_starts_and_stands_by_when_it_is_back() {
    let (server, ledger) = (Server::new(), Ledger::default());
    let (a, b) = pair(&server, &ledger).await;
    a.link.hold();
    let cut = Instant::now();
    while a.leadership.is_leader() {
        assert!(!b.leadership.is_leader());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(cut.elapsed() <= seconds(10));
    b.leadership.elected().await;
    ledger.take();
    a.link.release();
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(workers(&ledger), ["b"]);
    b.shutdown.cancel();
    a.leadership.elected().await;
    tokio::time::sleep(seconds(2)).await;
    assert!(workers(&ledger).contains(&"a".to_owned()));
    ledger.assert_no_overlap();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again_by_its_holder() {
    let (server, ledger) = (Server::new(), Ledger::default());
    let (a, b) = pair(&server, &ledger).await;
    for _ in 0..3 {
        server.remove("leases", "operator");
        tokio::time::sleep(Duration::from_millis(2_100)).await;
        assert_eq!(lease(&server)["holderIdentity"], "a");
        tokio::time::sleep(seconds(30)).await;
        assert!(a.leadership.is_leader() && !b.leadership.is_leader());
    }
    assert_eq!(workers(&ledger), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_ends_the_work_at_the_next_renewal_and_is_waited_for() {
    let (server, ledger) = (Server::new(), Ledger::default());
    let (a, b) = pair(&server, &ledger).await;
    server.put(
        "leases",
        "operator",
        json!({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60, "leaseTransitions": 7}}),
    );
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    ledger.take();
    assert!(!a.leadership.is_leader());
    tokio::time::sleep(seconds(55)).await;
    assert!(ledger.take().is_empty());
    assert!(!a.leadership.is_leader() && !b.leadership.is_leader());
    tokio::time::sleep(seconds(12)).await;
    assert!(a.leadership.is_leader() != b.leadership.is_leader());
    assert_eq!(lease(&server)["leaseTransitions"], 8);
    assert_eq!(ledger.take().len(), 2);
    ledger.assert_no_overlap();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_comes_after_the_lease_is_lost_does_not_leave() {
    let server = Server::new();
    server.put("configmaps", "x", json!({}));
    let results: Arc<Mutex<Vec<Option<Fenced>>>> = Arc::default();
    let told = results.clone();
    // A task that nobody ends with the reconcile: by every way that a context has to write.
    let careless = Controller::new(
        "test",
        does(move |ctx, _| {
            let (ctx, told) = (ctx.clone(), told.clone());
            Box::pin(async move {
                tokio::spawn(async move {
                    tokio::time::sleep(seconds(12)).await;
                    let mut late = ConfigMap::default();
                    late.metadata.name = Some("late".into());
                    late.metadata.namespace = Some("default".into());
                    let written = ctx.create(&late).await;
                    told.lock().push(written.err().and_then(|error| error.fenced()));
                    let api = Api::<ConfigMap>::namespaced(ctx.client().clone(), "default");
                    let written = api.create(&PostParams::default(), &late).await.map_err(Error::from);
                    told.lock().push(written.err().and_then(|error| error.fenced()));
                    assert!(api.get("x").await.is_ok(), "a read passes");
                });
                Ok(Outcome::Done)
            })
        }),
    )
    .for_kind::<ConfigMap>();
    let a = start(&server, "a", 1, [careless]);
    settle().await;
    // All else reaches the server: only the lease cannot be renewed.
    a.link.hold_only("operator");
    tokio::time::sleep(seconds(20)).await;
    assert_eq!(*results.lock(), [Some(Fenced::Refused), Some(Fenced::Refused)]);
    assert_eq!(server.stored("configmaps", "late"), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_on_every_replica_works_without_a_lease() {
    let (server, ledger) = (Server::new(), Ledger::default());
    server.put("configmaps", "x", json!({}));
    let _a = start(&server, "a", 1, [working("a", &Ledger::default())]);
    settle().await;
    let _b = start(&server, "b", 2, [working("b", &ledger).on_every_replica()]);
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(workers(&ledger), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_standby_remembers_nothing_of_what_came_and_went() {
    let (server, ledger) = (Server::new(), Ledger::default());
    let (a, b) = pair(&server, &ledger).await;
    for number in 0..100 {
        let name = format!("gone-{number}");
        server.put("configmaps", &name, json!({}));
        server.remove("configmaps", &name);
    }
    tokio::time::sleep(seconds(60)).await;
    a.shutdown.cancel();
    b.leadership.elected().await;
    ledger.take();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(ledger.take().into_keys().collect::<Vec<_>>(), ["x", "y"]);
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_work_are_an_error_of_run() {
    let server = Server::new();
    let run = |prepare: fn(&mut Manager)| {
        let mut manager = Manager::new(server.client(), World::simulated(1));
        prepare(&mut manager);
        async { manager.run(CancellationToken::new()).await.map_err(|error| error.to_string()) }
    };
    let refused = run(|manager| {
        manager.elect(election("a").renew_deadline(seconds(20)));
    });
    let told = "leader election: leaseDuration must be greater than renewDeadline";
    assert_eq!(refused.await, Err(told.to_owned()));
    let both = run(|manager| {
        manager.elect(election("a")).share(Sharding::ring("default", "ring"));
    });
    let told = "a manager elects one leader, or shares its keys in one ring; use two managers";
    assert_eq!(both.await, Err(told.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_elector_works_without_a_manager() {
    let (server, ledger) = (Server::new(), Ledger::default());
    let compete = |name: &'static str, seed: u64| {
        let elector = Elector::new(server.client(), World::simulated(seed), election(name));
        let (ledger, leadership, shutdown) = (ledger.clone(), elector.leadership(), CancellationToken::new());
        let run = elector.run(shutdown.clone(), move |term| {
            let ledger = ledger.clone();
            async move {
                let _leading = ledger.begin(name, "leading");
                term.run(std::future::pending::<()>()).await;
            }
        });
        (tokio::spawn(run), leadership, shutdown)
    };
    let (a, _, stop) = compete("a", 1);
    settle().await;
    let (_b, leadership, _) = compete("b", 2);
    settle().await;
    stop.cancel();
    assert!(matches!(a.await, Ok(Ok(()))));
    leadership.elected().await;
    ledger.assert_no_overlap();
}

/// A minute's worth of everything that can go wrong between three replicas and the server, over and over.
#[test]
fn never_two_lead_whatever_happens_and_in_the_end_one_does() {
    for seed in 0..12 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(troubled(seed));
    }
}

async fn troubled(seed: u64) {
    let (server, ledger) = (Server::new(), Ledger::default());
    let world = World::simulated(seed);
    for name in ["x", "y", "z"] {
        server.put("configmaps", name, json!({}));
    }
    let mut replicas: Vec<Replica> = Vec::new();
    let mut names = 0;
    for _ in 0..120 {
        while replicas.len() < 3 {
            names += 1;
            let name = format!("r{names}");
            replicas.push(start(&server, &name, seed * 1000 + names, [working(&name, &ledger)]));
        }
        let at = world.dice.below(3);
        match world.dice.below(12) {
            0 => replicas[at].link.hold(),
            1 | 2 => replicas[at].link.release(),
            3 => replicas[at].link.trouble(8),
            4 => replicas[at].link.trouble(0),
            5 if world.dice.below(3) == 0 => replicas.swap_remove(at).end.abort(),
            6 if world.dice.below(3) == 0 => replicas.swap_remove(at).shutdown.cancel(),
            _ => {}
        }
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let leaders = replicas.iter().filter(|replica| replica.leadership.is_leader()).count();
            assert!(leaders <= 1, "seed {seed}: {leaders} lead");
        }
    }
    for replica in &replicas {
        replica.link.trouble(0);
        replica.link.release();
    }
    tokio::time::sleep(seconds(60)).await;
    ledger.take();
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(replicas.iter().filter(|replica| replica.leadership.is_leader()).count(), 1, "seed {seed}");
    let worked = ledger.take();
    assert_eq!(worked.len(), 3, "seed {seed}: {worked:?}");
    ledger.assert_no_overlap();
}
