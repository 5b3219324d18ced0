//! Namespaces that come and go while the manager runs.

use std::{slice, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{Api, api::ListParams};
use kubewright_runtime::{
    CancellationToken, Context, Controller, Error, Index, Key, LeaderElection, Manager, Namespaces, Outcome,
};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{
    harness::{Log, does, logging},
    lab::{Lab, Only},
};

fn start(manager: Manager) -> (CancellationToken, JoinHandle<Result<(), Error>>) {
    let stop = CancellationToken::new();
    (stop.clone(), tokio::spawn(manager.run(stop)))
}

async fn end((stop, end): (CancellationToken, JoinHandle<Result<(), Error>>)) {
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

/// Notes each Secret and how many ConfigMaps it sees beside it; a Secret is looked at again every minute.
fn counting(log: &Log<String>) -> Controller {
    let log = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (log, ctx, key) = (log.clone(), ctx.clone(), key.clone());
        Box::pin(async move {
            let beside = ctx.list::<ConfigMap>(key.namespace.as_deref()).iter().filter(is_ours).count();
            let there = if ctx.get::<Secret>(&key).is_some() { "" } else { "no " };
            log.push(format!("{there}{key} beside {beside}"));
            Ok(Outcome::RequeueAfter(Duration::from_secs(60)))
        })
    });
    Controller::new("counting", reconciler).reads::<ConfigMap>().for_kind::<Secret>()
}

/// Whether it is a test's own, and not the root CA's.
fn is_ours(map: &&std::sync::Arc<ConfigMap>) -> bool {
    map.metadata.name.as_deref() != Some("kube-root-ca.crt")
}

#[tokio::test(start_paused = true)]
async fn namespaces_come_and_go_while_the_manager_runs() {
    let (mut lab, log) = (Lab::new().await, Log::new());
    let other = lab.another_namespace("other").await;
    let own = lab.namespace().to_owned();
    for namespace in [&own, &other] {
        lab.put_in(namespace, "secrets", "a", json!({})).await;
        lab.put_in(namespace, "configmaps", "b", json!({})).await;
    }
    let (namespaces, by_name) =
        (Namespaces::new([own.clone()]), Index::new("n", |secret: &Secret| vec![Key::of(secret).name]));
    let mut manager = lab.manager();
    manager.follow_namespaces(&namespaces);
    manager.add(counting(&log).indexed(&by_name));
    let cache = manager.cache().clone();
    let running = start(manager);
    lab.settle().await;
    let (here, there) = (format!("{own}/a beside 1"), format!("{other}/a beside 1"));
    assert_eq!(log.take(), slice::from_ref(&here));
    assert_eq!(cache.usage()[0].scope, "in namespaces that come and go");

    assert!(namespaces.add(&other).expect("a name") && !namespaces.add(&other).expect("a name"));
    lab.settle().await;
    assert_eq!(log.take(), slice::from_ref(&there), "what was there already is left in peace");
    assert_eq!(by_name.get("a").len(), 2);

    assert!(namespaces.remove(&other) && !namespaces.remove(&other));
    lab.settle().await;
    assert_eq!((by_name.get("a").len(), cache.list::<ConfigMap>(Some(&other)).len()), (1, 0));
    let before = lab.requests().len();
    lab.put_in(&other, "secrets", "c", json!({})).await;
    lab.pass(Duration::from_secs(61)).await;
    assert_eq!(log.take(), slice::from_ref(&here), "nothing is due there any more");
    let in_other = |line: &&String| line.contains(&other) && line.contains("secrets") && line.contains("GET");
    assert_eq!(lab.requests()[before..].iter().filter(in_other).count(), 0);

    namespaces.add(&other).expect("a name");
    lab.settle().await;
    let mut seen = log.take();
    seen.retain(|line| !line.starts_with(&format!("{own}/")));
    assert_eq!(seen, [there, format!("{other}/c beside 1")]);
    end(running).await;
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_namespace_wait_until_all_caches_of_their_controller_are_filled_there() {
    let Some(mut lab) = Lab::only_embedded(Only::Undisturbed).await else { return };
    let log = Log::new();
    let other = lab.another_namespace("other").await;
    lab.put("secrets", "a", json!({})).await;
    lab.put_in(&other, "secrets", "a", json!({})).await;
    lab.put_in(&other, "configmaps", "b", json!({})).await;
    let namespaces = Namespaces::new([lab.namespace()]);
    let mut manager = lab.manager();
    manager.follow_namespaces(&namespaces);
    manager.add(counting(&log));
    let running = start(manager);
    lab.settle().await;
    log.take();
    lab.link().refuse(403, "Forbidden", Some("configmaps"));
    namespaces.add(&other).expect("a name");
    lab.pass(Duration::from_secs(5)).await;
    lab.put("secrets", "a", json!({"data": {"x": ""}})).await;
    lab.put_in(&other, "secrets", "a", json!({"data": {"x": ""}})).await;
    lab.settle().await;
    assert_eq!(log.take(), [format!("{}/a beside 0", lab.namespace())], "others go on");
    lab.link().accept();
    let key = format!("{other}/a beside 1");
    lab.until(Duration::from_secs(60), || log.entries().contains(&key)).await;
    assert!(!log.take().contains(&format!("{other}/a beside 0")));
    end(running).await;
}

#[tokio::test(start_paused = true)]
async fn who_lives_elsewhere_is_woken_for_what_is_not_looked_at_any_more() {
    let (mut lab, log) = (Lab::new().await, Log::new());
    let other = lab.another_namespace("other").await;
    lab.put_in(&other, "configmaps", "b", json!({})).await;
    let namespaces = Namespaces::new([other.clone()]);
    let noted = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (log, ctx, key) = (noted.clone(), ctx.clone(), key.clone());
        Box::pin(async move {
            log.push(format!("{key}: {}", ctx.list::<ConfigMap>(None).iter().filter(is_ours).count()));
            Ok(Outcome::Done)
        })
    });
    let controller = Controller::new("far", reconciler)
        .for_kind::<Namespace>()
        .selecting(&format!("metadata.name={other}"))
        .watches(|map: &ConfigMap| map.metadata.namespace.iter().map(Key::cluster_scoped).collect());
    let mut manager = lab.manager();
    manager.follow_namespaces(&namespaces);
    manager.add(controller);
    let running = start(manager);
    lab.settle().await;
    assert_eq!(log.take().last(), Some(&format!("{other}: 1")));
    namespaces.remove(&other);
    lab.settle().await;
    assert_eq!(log.take(), [format!("{other}: 0")]);
    end(running).await;
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_follows_no_namespace_yet_is_ready() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.put("configmaps", "a", json!({})).await;
    let namespaces = Namespaces::default();
    let mut manager = lab.manager();
    manager.follow_namespaces(&namespaces);
    manager.add(logging(&log).for_kind::<ConfigMap>());
    let cache = manager.cache().clone();
    let running = start(manager);
    lab.settle().await;
    assert!(log.take().is_empty() && cache.unsynced().is_empty());
    assert_eq!(lab.reads_of("configmaps"), 0);
    namespaces.add(lab.namespace()).expect("a name");
    lab.until(Duration::from_secs(60), || !log.entries().is_empty()).await;
    end(running).await;
}

#[tokio::test(start_paused = true)]
async fn the_same_namespaces_are_followed_in_further_clusters() {
    let Some(home) = Lab::only_embedded(Only::Undisturbed).await else { return };
    let Some(edge) = Lab::only_embedded(Only::Undisturbed).await else { return };
    let log = Log::new();
    edge.put("secrets", "a", json!({})).await;
    let namespaces = Namespaces::default();
    let mut manager = home.manager();
    manager.follow_namespaces(&namespaces);
    manager.add_cluster("edge", edge.client());
    manager.add(counting(&log).in_each_cluster());
    let running = start(manager);
    edge.settle().await;
    assert!(log.take().is_empty());
    namespaces.add(edge.namespace()).expect("a name");
    edge.settle().await;
    assert_eq!(log.take(), [format!("edge:{} beside 0", edge.key("a"))]);
    namespaces.remove(edge.namespace());
    edge.pass(Duration::from_secs(600)).await;
    assert!(log.take().is_empty());
    end(running).await;
}

#[tokio::test(start_paused = true)]
async fn a_standby_works_in_a_namespace_that_came_meanwhile_when_it_leads() {
    let Some(lab) = Lab::only_embedded(Only::Undisturbed).await else { return };
    lab.put("secrets", "a", json!({})).await;
    let replica = |log: &Log<String>, seed: u64, name: &str| {
        let namespaces = Namespaces::default();
        let mut manager = lab.manager_by(&lab.another_link(seed), seed);
        manager.follow_namespaces(&namespaces);
        manager.elect(LeaderElection::lease(lab.namespace(), "counting").identity(name));
        manager.add(counting(log));
        (namespaces, manager)
    };
    let (first_log, second_log) = (Log::new(), Log::new());
    let (first, one) = replica(&first_log, 1, "first");
    let (second, two) = replica(&second_log, 2, "second");
    let one = start(one);
    lab.settle().await;
    let two = start(two);
    lab.settle().await;
    for namespaces in [first, second] {
        namespaces.add(lab.namespace()).expect("a name");
    }
    lab.settle().await;
    assert_eq!((first_log.take().len(), second_log.take().len()), (1, 0));
    end(one).await;
    lab.until(Duration::from_secs(60), || !second_log.entries().is_empty()).await;
    end(two).await;
}

#[tokio::test(start_paused = true)]
async fn under_faults_the_work_is_done_where_it_is_to_be_done() {
    for seed in 0..20 {
        let Some(mut lab) = Lab::only_embedded(Only::Undisturbed).await else { return };
        let (namespaces, log) = (Namespaces::default(), Log::new());
        let names = [
            lab.namespace().to_owned(),
            lab.another_namespace("one").await,
            lab.another_namespace("two").await,
        ];
        let link = lab.another_link(seed);
        let mut manager = lab.manager_by(&link, seed);
        manager.follow_namespaces(&namespaces);
        manager.add(counting(&log));
        let (cache, dice) = (manager.cache().clone(), lab.world(seed).dice);
        let running = start(manager);
        link.trouble(8);
        for step in 0..30 {
            let name = &names[dice.below(3)];
            match dice.below(3) {
                0 => drop(namespaces.add(name)),
                1 => drop(namespaces.remove(name)),
                _ => drop(lab.put_in(name, "secrets", &format!("s{step}"), json!({})).await),
            }
            tokio::time::sleep(Duration::from_millis(dice.below(400) as u64)).await;
        }
        link.trouble(0);
        lab.pass(Duration::from_secs(120)).await;
        log.take();
        lab.pass(Duration::from_secs(60)).await;
        let mut looked_at = log.take();
        looked_at.sort();
        looked_at.dedup();
        let mut wanted = Vec::new();
        for name in namespaces.all() {
            let secrets = Api::<Secret>::namespaced(lab.admin(), &name);
            let secrets = secrets.list(&ListParams::default()).await.expect("secrets");
            wanted.extend(secrets.iter().map(|secret| format!("{} beside 0", Key::of(secret))));
        }
        wanted.sort();
        assert_eq!(looked_at, wanted, "seed {seed}");
        assert_eq!(cache.list::<Secret>(None).len(), wanted.len(), "seed {seed}");
        end(running).await;
    }
}

#[tokio::test(start_paused = true)]
async fn namespaces_that_cannot_be_followed_are_told() {
    let lab = Lab::new().await;
    let namespaces = Namespaces::new(["Shop"]);
    let mut manager = lab.manager();
    manager.follow_namespaces(&namespaces);
    manager.watch_namespaces(["shop".to_owned()]);
    let error = manager.run(CancellationToken::new()).await.expect_err("mistakes").to_string();
    assert!(error.contains("\"Shop\" is no name of a namespace"), "{error}");
    assert!(error.contains("a manager that follows namespaces is told which to look at"), "{error}");
}
