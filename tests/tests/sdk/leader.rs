//! Leader election: who works when a replica stops, dies, is cut off, or is robbed of its lease.

use std::{sync::Arc, time::Duration};

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kubewright_runtime::{
    CancellationToken, Controller, Error, Key, LeaderElection, Leadership, Manager, Outcome, Sharding, World,
    leader::{Elector, Fenced},
};
use kubewright_world::ClockSkew;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    harness::does,
    lab::{Lab, Only},
    ledger::Ledger,
    link::Link,
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

fn election(lab: &Lab, name: &str) -> LeaderElection {
    LeaderElection::lease(lab.namespace(), "operator").identity(name)
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

fn start(lab: &Lab, name: &str, seed: u64, controllers: impl IntoIterator<Item = Controller>) -> Replica {
    start_in(lab, name, seed, lab.world(seed), controllers)
}

fn start_in(
    lab: &Lab,
    name: &str,
    seed: u64,
    world: World,
    controllers: impl IntoIterator<Item = Controller>,
) -> Replica {
    let link = lab.another_link(seed);
    let mut manager = lab.manager_in(link.client(), world);
    manager.elect(election(lab, name));
    for controller in controllers {
        manager.add(controller);
    }
    let leadership = manager.leadership().expect("it elects");
    let shutdown = CancellationToken::new();
    let end = tokio::spawn(manager.run(shutdown.clone()));
    Replica { leadership, link, shutdown, end }
}

/// A leads, B stands by, and there are two objects.
async fn pair(lab: &Lab, ledger: &Ledger) -> (Replica, Replica) {
    for name in ["x", "y"] {
        lab.put("configmaps", name, json!({})).await;
    }
    let a = start(lab, "a", 1, [working("a", ledger)]);
    lab.settle().await;
    let b = start(lab, "b", 2, [working("b", ledger)]);
    lab.pass(seconds(10)).await;
    assert!(a.leadership.is_leader() && !b.leadership.is_leader());
    (a, b)
}

async fn lease(lab: &Lab) -> Value {
    lab.stored("leases", "operator").await.map(|lease| lease["spec"].clone()).unwrap_or_default()
}

/// Who worked since the last time, each once.
fn workers(ledger: &Ledger) -> Vec<String> {
    let mut workers: Vec<_> = ledger.take().into_values().flatten().collect();
    workers.sort();
    workers.dedup();
    workers
}

/// OS-14.
#[tokio::test(start_paused = true)]
async fn one_replica_works_and_its_lease_reads_as_client_gos_does() {
    let (lab, ledger) = (Lab::new().await, Ledger::default());
    let (a, b) = pair(&lab, &ledger).await;
    assert_eq!(workers(&ledger), ["a"]);
    let spec = lease(&lab).await;
    assert_eq!(spec["holderIdentity"], "a");
    assert_eq!((&spec["leaseDurationSeconds"], &spec["leaseTransitions"]), (&json!(15), &json!(0)));
    if !lab.is_real() {
        assert_eq!(spec["acquireTime"], "2026-01-01T00:00:00.000000Z");
    }
    assert_eq!(a.leadership.token().map(|token| token.0), Some(0));
    assert_eq!(b.leadership.token(), None);
    ledger.assert_no_overlap();
}

/// OS-14.
#[tokio::test(start_paused = true)]
async fn a_standby_takes_over_within_the_lease_duration_when_the_leader_dies() {
    let (lab, ledger) = (Lab::new().await, Ledger::default());
    let (a, b) = pair(&lab, &ledger).await;
    ledger.take();
    let before = lab.reads_of("configmaps");
    a.end.abort();
    let died = Instant::now();
    b.leadership.elected().await;
    // The lease's duration from the last renewal that was seen, and a look that was just missed.
    assert!(
        died.elapsed() > seconds(10)
            && died.elapsed() < Duration::from_millis(15_000 + 4_400) + lab.tolerance()
    );
    assert!(!a.leadership.is_leader());
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(ledger.take().into_keys().collect::<Vec<_>>(), ["x", "y"], "all that is there, at once");
    assert_eq!(lab.reads_of("configmaps"), before, "the caches were warm");
    assert_eq!(b.leadership.token().map(|token| token.0), Some(1));
    ledger.assert_no_overlap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_work_then_releases_the_lease_which_is_taken_at_the_next_look() {
    let (lab, ledger) = (Lab::new().await, Ledger::default());
    let (a, b) = pair(&lab, &ledger).await;
    a.shutdown.cancel();
    let stopped = Instant::now();
    assert!(matches!(a.end.await, Ok(Ok(()))));
    assert!(stopped.elapsed() < seconds(2));
    let spec = lease(&lab).await;
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&json!(""), &json!(1)));
    b.leadership.elected().await;
    assert!(stopped.elapsed() < Duration::from_millis(500 + 4_400) + lab.tolerance());
    assert_eq!(lease(&lab).await["leaseTransitions"], 1);
    lab.settle().await;
    ledger.assert_no_overlap();
    let mut events = lab.events_of("a", "core events").await;
    events.extend(lab.events_of("b", "core events").await);
    let mut told: Vec<_> =
        events.iter().map(|event| (event["reason"].clone(), event["message"].clone())).collect();
    told.sort_by_key(|(_, message)| message.to_string());
    let told: Vec<_> = told.iter().map(|(reason, message)| (reason.as_str(), message.as_str())).collect();
    let reason = Some("LeaderElection");
    let notes = ["a became leader", "a stopped leading", "b became leader"];
    assert_eq!(told, notes.map(|note| (reason, Some(note))));
}

#[tokio::test(start_paused = true)]
async fn when_the_api_server_is_away_nobody_leads_and_when_it_is_back_one_does_without_a_restart() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let ledger = Ledger::default();
    let (a, b) = pair(&lab, &ledger).await;
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
    let (lab, ledger) = (Lab::new().await, Ledger::default());
    let (a, b) = pair(&lab, &ledger).await;
    a.link.hold();
    let cut = Instant::now();
    while a.leadership.is_leader() {
        assert!(!b.leadership.is_leader());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(cut.elapsed() <= seconds(10) + lab.tolerance());
    b.leadership.elected().await;
    ledger.take();
    a.link.release();
    lab.pass(seconds(60)).await;
    assert_eq!(workers(&ledger), ["b"]);
    b.shutdown.cancel();
    a.leadership.elected().await;
    tokio::time::sleep(seconds(2)).await;
    assert!(workers(&ledger).contains(&"a".to_owned()));
    ledger.assert_no_overlap();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again_by_its_holder() {
    let (lab, ledger) = (Lab::new().await, Ledger::default());
    let (a, b) = pair(&lab, &ledger).await;
    for _ in 0..3 {
        lab.remove("leases", "operator").await;
        tokio::time::sleep(Duration::from_millis(2_100)).await;
        assert_eq!(lease(&lab).await["holderIdentity"], "a");
        lab.pass(seconds(30)).await;
        assert!(a.leadership.is_leader() && !b.leadership.is_leader());
    }
    assert_eq!(workers(&ledger), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_ends_the_work_at_the_next_renewal_and_is_waited_for() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let ledger = Ledger::default();
    let (a, b) = pair(&lab, &ledger).await;
    lab.put(
        "leases",
        "operator",
        json!({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60, "leaseTransitions": 7}}),
    )
    .await;
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    ledger.take();
    assert!(!a.leadership.is_leader());
    tokio::time::sleep(seconds(55)).await;
    assert!(ledger.take().is_empty());
    assert!(!a.leadership.is_leader() && !b.leadership.is_leader());
    tokio::time::sleep(seconds(12)).await;
    assert!(a.leadership.is_leader() != b.leadership.is_leader());
    assert_eq!(lease(&lab).await["leaseTransitions"], 8);
    assert_eq!(ledger.take().len(), 2);
    ledger.assert_no_overlap();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_comes_after_the_lease_is_lost_does_not_leave() {
    let lab = Lab::new().await;
    lab.put("configmaps", "x", json!({})).await;
    let results: Arc<Mutex<Vec<Option<Fenced>>>> = Arc::default();
    let told = results.clone();
    // A task that nobody ends with the reconcile: by every way that a context has to write.
    let careless = Controller::new(
        "test",
        does(move |ctx, key: &Key| {
            let (ctx, told, namespace) = (ctx.clone(), told.clone(), key.namespace.clone());
            Box::pin(async move {
                tokio::spawn(async move {
                    tokio::time::sleep(seconds(12)).await;
                    let mut late = ConfigMap::default();
                    late.metadata.name = Some("late".into());
                    late.metadata.namespace.clone_from(&namespace);
                    let written = ctx.create(&late).await;
                    told.lock().push(written.err().and_then(|error| error.fenced()));
                    let api = Api::<ConfigMap>::namespaced(
                        ctx.client().clone(),
                        namespace.as_deref().unwrap_or_default(),
                    );
                    let written = api.create(&PostParams::default(), &late).await.map_err(Error::from);
                    told.lock().push(written.err().and_then(|error| error.fenced()));
                    assert!(api.get("x").await.is_ok(), "a read passes");
                });
                Ok(Outcome::Done)
            })
        }),
    )
    .for_kind::<ConfigMap>();
    let a = start(&lab, "a", 1, [careless]);
    lab.settle().await;
    // All else reaches the server: only the lease cannot be renewed.
    a.link.hold_only("operator");
    tokio::time::sleep(seconds(20)).await;
    assert_eq!(*results.lock(), [Some(Fenced::Refused), Some(Fenced::Refused)]);
    assert_eq!(lab.stored("configmaps", "late").await, None);
}

#[tokio::test(start_paused = true)]
async fn replicas_whose_clocks_are_an_hour_apart_have_one_leader_at_a_time() {
    let Some(lab) = Lab::only_embedded(Only::MovedClock).await else { return };
    let ledger = Ledger::default();
    lab.put("configmaps", "x", json!({})).await;
    let a = start(&lab, "a", 1, [working("a", &ledger)]);
    tokio::time::sleep(seconds(3600)).await;
    // A simulated clock starts when it is made: b's is an hour behind a's.
    let b = start(&lab, "b", 2, [working("b", &ledger)]);
    tokio::time::sleep(seconds(600)).await;
    assert!(a.leadership.is_leader() && !b.leadership.is_leader());
    a.end.abort();
    let died = Instant::now();
    b.leadership.elected().await;
    assert!(died.elapsed() > seconds(10), "{:?}", died.elapsed());
    let late = start(&lab, "c", 3, [working("c", &ledger)]);
    tokio::time::sleep(seconds(600)).await;
    assert!(b.leadership.is_leader() && !late.leadership.is_leader());
    ledger.assert_no_overlap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_clock_is_set_leads_on_and_nobody_takes_over() {
    let Some(lab) = Lab::only_embedded(Only::MovedClock).await else { return };
    let ledger = Ledger::default();
    lab.put("configmaps", "x", json!({})).await;
    let (skew, skew_of_b) = (ClockSkew::default(), ClockSkew::default());
    let skewed_by = |skew, world: World| World { clock: world.clock.skewed_by(skew), ..world };
    let a = start_in(&lab, "a", 1, skewed_by(skew, lab.world(1)), [working("a", &ledger)]);
    lab.settle().await;
    let b = start_in(&lab, "b", 2, skewed_by(skew_of_b, lab.world(2)), [working("b", &ledger)]);
    tokio::time::sleep(seconds(10)).await;
    // Back and forth, by seconds and by years: first the leader's, then the other's.
    for skew in [skew, skew_of_b] {
        for hours in [1, -1, 24 * 365 * 10, -24 * 365 * 10, 0] {
            skew.set_ahead(SignedDuration::from_hours(hours));
            ledger.take();
            tokio::time::sleep(seconds(30)).await;
            let done = ledger.take().remove("x").unwrap_or_default();
            assert!(done.len() >= 15, "after {hours} h: {} reconciles in 30 s", done.len());
            assert!(done.iter().all(|replica| replica == "a"), "after {hours} h: {done:?}");
            assert!(a.leadership.is_leader() && !b.leadership.is_leader(), "after {hours} h");
        }
    }
    // Who dies in the wrong year is replaced in time.
    skew.set_ahead(SignedDuration::from_hours(24 * 365));
    a.end.abort();
    let died = Instant::now();
    b.leadership.elected().await;
    assert!((seconds(10)..seconds(20)).contains(&died.elapsed()), "{:?}", died.elapsed());
    ledger.assert_no_overlap();
}

#[tokio::test(start_paused = true)]
async fn what_is_on_every_replica_works_without_a_lease() {
    let (lab, ledger) = (Lab::new().await, Ledger::default());
    lab.put("configmaps", "x", json!({})).await;
    let _a = start(&lab, "a", 1, [working("a", &Ledger::default())]);
    lab.settle().await;
    let _b = start(&lab, "b", 2, [working("b", &ledger).on_every_replica()]);
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(workers(&ledger), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_standby_remembers_nothing_of_what_came_and_went() {
    let (lab, ledger) = (Lab::new().await, Ledger::default());
    let (a, b) = pair(&lab, &ledger).await;
    for number in 0..100 {
        let name = format!("gone-{number}");
        lab.put("configmaps", &name, json!({})).await;
        lab.remove("configmaps", &name).await;
    }
    lab.pass(seconds(60)).await;
    a.shutdown.cancel();
    b.leadership.elected().await;
    ledger.take();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(ledger.take().into_keys().collect::<Vec<_>>(), ["x", "y"]);
}

#[tokio::test(start_paused = true)]
async fn settings_that_cannot_work_are_an_error_of_run() {
    let lab = Lab::new().await;
    let run = |prepare: fn(&Lab, &mut Manager)| {
        let mut manager = lab.manager();
        prepare(&lab, &mut manager);
        async { manager.run(CancellationToken::new()).await.map_err(|error| error.to_string()) }
    };
    let refused = run(|lab, manager| {
        manager.elect(election(lab, "a").renew_deadline(seconds(20)));
    });
    let told = "leader election: leaseDuration must be greater than renewDeadline";
    assert_eq!(refused.await, Err(told.to_owned()));
    let both = run(|lab, manager| {
        manager.elect(election(lab, "a")).share(Sharding::ring(lab.namespace(), "ring"));
    });
    let told = "a manager elects one leader, or shares its keys in one ring; use two managers";
    assert_eq!(both.await, Err(told.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_elector_works_without_a_manager() {
    let (lab, ledger) = (Lab::new().await, Ledger::default());
    let compete = |name: &'static str, seed: u64| {
        let elector = Elector::new(lab.client(), lab.world(seed), election(&lab, name));
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
    lab.settle().await;
    let (_b, leadership, _) = compete("b", 2);
    lab.settle().await;
    stop.cancel();
    assert!(matches!(a.await, Ok(Ok(()))));
    leadership.elected().await;
    ledger.assert_no_overlap();
}

/// A worker that does not listen goes on beside the next leader: all that helps is to end the process.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_work_goes_on_without_the_lease_is_told_to_be_unhealthy() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let elector = Elector::new(lab.client(), lab.world(1), election(&lab, "a"));
    let (leadership, release) = (elector.leadership(), CancellationToken::new());
    let goes_on = release.clone();
    tokio::spawn(elector.run(CancellationToken::new(), move |_term| goes_on.clone().cancelled_owned()));
    leadership.elected().await;
    let tolerance = seconds(20);
    assert_eq!(leadership.check(tolerance), Ok(()));
    let thief =
        json!({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60, "leaseTransitions": 7}});
    lab.put("leases", "operator", thief).await;
    tokio::time::sleep(seconds(5)).await;
    assert!(!leadership.is_leader());
    assert_eq!(leadership.check(tolerance), Ok(()), "there is some time to end");
    tokio::time::sleep(seconds(20)).await;
    let told = leadership.check(tolerance).expect_err("it goes on");
    assert!(told.starts_with("the lease operator was lost 2"), "{told}");
    release.cancel();
    lab.settle().await;
    assert_eq!(leadership.check(tolerance), Ok(()), "it stands by");
}

/// A minute's worth of everything that can go wrong between three replicas and the server, over and over.
#[test]
fn never_two_lead_whatever_happens_and_in_the_end_one_does() {
    for seed in 0..4 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(troubled(seed));
    }
}

async fn troubled(seed: u64) {
    let Some(lab) = Lab::only_embedded(Only::Load).await else { return };
    let ledger = Ledger::default();
    let world = World::simulated(seed);
    for name in ["x", "y", "z"] {
        lab.put("configmaps", name, json!({})).await;
    }
    let mut replicas: Vec<Replica> = Vec::new();
    let mut names = 0;
    for _ in 0..120 {
        while replicas.len() < 3 {
            names += 1;
            let name = format!("r{names}");
            replicas.push(start(&lab, &name, seed * 1000 + names, [working(&name, &ledger)]));
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
