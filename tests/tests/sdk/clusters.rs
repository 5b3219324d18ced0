//! Several clusters: in keys, in contexts, and as they come and go.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ObjectMeta};
use kubewright_runtime::{
    CancellationToken, Context, Controller, Error, EventType, Guarded, Key, LeaderElection, Manager, Outcome,
    rbac::Verb,
};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{
    applies::writes,
    harness::{Log, does},
    lab::{Lab, Only},
};

const FINALIZER: &str = "example.com/copied";

/// A cluster of its own for each of these; nothing on a real Kubernetes, which is one.
async fn labs<const N: usize>() -> Option<[Lab; N]> {
    let mut labs = Vec::new();
    for _ in 0..N {
        labs.push(Lab::only_embedded(Only::Undisturbed).await?);
    }
    labs.try_into().ok()
}

fn manager(labs: &[&Lab]) -> Manager {
    let mut manager = labs[0].manager();
    manager.watch_namespaces(labs.iter().map(|lab| lab.namespace().to_owned()));
    manager
}

fn start(manager: Manager) -> (CancellationToken, JoinHandle<Result<(), Error>>) {
    let stop = CancellationToken::new();
    (stop.clone(), tokio::spawn(manager.run(stop)))
}

fn copy_of(secret: &Secret) -> ConfigMap {
    let metadata = ObjectMeta {
        name: secret.metadata.name.clone(),
        namespace: secret.metadata.namespace.clone(),
        ..ObjectMeta::default()
    };
    let data = secret.data.iter().flatten().map(|(name, _)| (name.clone(), "copied".to_owned()));
    ConfigMap { metadata, data: Some(data.collect()), ..ConfigMap::default() }
}

/// Each Secret has a ConfigMap with its keys, and a finalizer, in its cluster.
fn copier(log: &Log<String>) -> Controller {
    let log = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let log = log.clone();
        Box::pin(async move {
            let Some(secret) = ctx.get::<Secret>(key) else {
                log.push(format!("{key} is gone"));
                return Ok(Outcome::Done);
            };
            assert_eq!(ctx.cluster(), key.cluster.as_deref());
            log.push(key.to_string());
            if ctx.guard(&*secret, FINALIZER, || async { Ok(()) }).await? == Guarded::Cleaned {
                return Ok(Outcome::Done);
            }
            let written = ctx.apply(&copy_of(&secret)).owned_by(&*secret).await?;
            assert!(ctx.get::<ConfigMap>(&Key::of(&*secret)).is_some(), "its own write is seen");
            if written.is_changed() {
                ctx.event(&*secret, EventType::Normal, "Copied", "its keys");
            }
            Ok(Outcome::Done)
        })
    });
    Controller::new("copier", reconciler)
        .for_kind::<Secret>()
        .applies::<ConfigMap>()
        .guards::<Secret>()
        .in_each_cluster()
}

#[tokio::test(start_paused = true)]
async fn a_controller_works_in_each_cluster_with_all_that_it_has_in_one() {
    let Some([home, east, west]) = labs().await else { return };
    for lab in [&home, &east, &west] {
        lab.put("secrets", "a", json!({"data": {"one": ""}})).await;
    }
    let log = Log::new();
    let mut manager = manager(&[&home, &east, &west]);
    manager.add_cluster("east", east.client());
    manager.add(copier(&log));
    manager.add_cluster("west", west.client());
    let (stop, end) = start(manager);
    east.settle().await;
    west.settle().await;
    let mut seen = log.take();
    seen.sort();
    let (in_east, in_west) = (format!("east:{}", east.key("a")), format!("west:{}", west.key("a")));
    assert_eq!(seen, [in_east.clone(), in_west], "each once: what it wrote itself does not wake it");
    assert!(home.stored("configmaps", "a").await.is_none());
    for lab in [&east, &west] {
        let copy = lab.stored("configmaps", "a").await.expect("a copy");
        assert_eq!(copy["data"], json!({"one": "copied"}));
        assert_eq!(lab.events_of("copier", "events").await.len(), 1);
    }
    assert!(home.events_of("copier", "events").await.is_empty());

    let mut same = east.stored("secrets", "a").await.unwrap_or_default();
    same["metadata"]["labels"] = json!({"seen": "again"});
    let before = writes(&east);
    east.put("secrets", "a", same).await;
    east.settle().await;
    let again = (log.take(), writes(&east) - before);
    assert_eq!(again, (vec![in_east.clone()], 0), "what is there is not written again");

    east.put("secrets", "a", json!({"data": {"one": "", "two": ""}})).await;
    east.remove("configmaps", "a").await;
    east.settle().await;
    assert!(log.take().iter().all(|key| *key == in_east));
    let copy = east.stored("configmaps", "a").await.expect("it came back");
    assert_eq!(copy["data"], json!({"one": "copied", "two": "copied"}));
    east.remove("secrets", "a").await;
    east.settle().await;
    assert!(east.stored("secrets", "a").await.is_none(), "its finalizer is gone");
    assert_eq!(log.take().last(), Some(&format!("{in_east} is gone")));
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn clusters_come_and_go_while_the_manager_runs() {
    let Some([home, edge]) = labs().await else { return };
    edge.put("secrets", "a", json!({})).await;
    let log = Log::new();
    let mut manager = manager(&[&home, &edge]);
    manager.add(copier(&log));
    let clusters = manager.clusters().clone();
    let (stop, end) = start(manager);
    home.settle().await;
    assert!(log.take().is_empty());

    clusters.add("edge", edge.client()).expect("the name is free");
    let taken = clusters.add("edge", edge.client()).expect_err("the name is taken").to_string();
    assert!(taken.contains("there is a cluster edge already"), "{taken}");
    assert!(clusters.add("", edge.client()).is_err());
    edge.settle().await;
    let key = format!("edge:{}", edge.key("a"));
    assert_eq!(log.take(), [key.as_str()]);

    assert!(clusters.remove("edge") && !clusters.remove("edge"));
    assert!(clusters.get("edge").is_none() && clusters.all().is_empty() && format!("{clusters:?}") == "[]");
    let before = edge.requests().len();
    edge.put("secrets", "a", json!({"data": {"one": ""}})).await;
    edge.pass(Duration::from_secs(600)).await;
    assert!(log.take().is_empty());
    assert_eq!(edge.requests()[before..].iter().filter(|line| line.contains("secrets")).count(), 0);

    clusters.add("edge", edge.client()).expect("the name is free again");
    edge.settle().await;
    assert_eq!(log.take(), [key.as_str()]);
    assert_eq!(edge.stored("configmaps", "a").await.expect("a copy")["data"], json!({"one": "copied"}));
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
    let ended = clusters.add("late", edge.client()).expect_err("nobody would look at it").to_string();
    assert!(ended.contains("the manager has ended"), "{ended}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_away_holds_up_nobody_else() {
    let Some([home, away, edge]) = labs().await else { return };
    for lab in [&away, &edge] {
        lab.put("secrets", "a", json!({})).await;
    }
    away.link().uninstall("secrets");
    let log = Log::new();
    let mut manager = manager(&[&home, &away, &edge]);
    manager.add(copier(&log));
    let clusters = manager.clusters().clone();
    let (stop, end) = start(manager);
    clusters.add("away", away.client()).expect("the name is free");
    clusters.add("edge", edge.client()).expect("the name is free");
    edge.settle().await;
    assert_eq!(log.take(), [format!("edge:{}", edge.key("a"))]);
    away.link().install("secrets");
    away.until(Duration::from_secs(600), || !log.entries().is_empty()).await;
    away.settle().await;
    assert_eq!(log.take(), [format!("away:{}", away.key("a"))]);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

/// Each Secret at home has a ConfigMap in each further cluster.
fn spreader(log: &Log<String>) -> Controller {
    let log = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let log = log.clone();
        Box::pin(async move {
            let Some(secret) = ctx.get::<Secret>(key) else { return Ok(Outcome::Done) };
            log.push(format!("{} to {}", key.name, ctx.clusters().join(", ")));
            for name in ctx.clusters() {
                let Some(there) = ctx.in_cluster(&name) else { continue };
                let copy = copy_of(&secret);
                there.apply(&copy).await?;
                assert!(there.get::<ConfigMap>(&Key::of(&copy)).is_some(), "its own write is seen");
                assert!(there.home().get::<Secret>(key).is_some());
            }
            Ok(Outcome::Done)
        })
    });
    Controller::new("spreader", reconciler)
        .for_kind::<Secret>()
        .watches_in_each(|map: &ConfigMap| vec![Key::of(map)])
        .writes_in_each::<ConfigMap>([Verb::Create, Verb::Patch])
}

#[tokio::test(start_paused = true)]
async fn an_object_at_home_has_children_in_each_cluster_whenever_it_comes() {
    let Some([home, east, west]) = labs().await else { return };
    home.put("secrets", "a", json!({"data": {"one": ""}})).await;
    let log = Log::new();
    let mut manager = manager(&[&home, &east, &west]);
    manager.add_cluster("east", east.client());
    manager.add(spreader(&log));
    let clusters = manager.clusters().clone();
    let (stop, end) = start(manager);
    home.settle().await;
    east.settle().await;
    assert_eq!(log.take().last().map(String::as_str), Some("a to east"));
    assert!(east.stored("configmaps", "a").await.is_some());
    east.settle().await;
    assert!(log.take().is_empty(), "what it wrote there does not wake it");

    clusters.add("west", west.client()).expect("the name is free");
    west.settle().await;
    assert_eq!(log.take(), ["a to east, west"]);
    assert!(west.stored("configmaps", "a").await.is_some());
    west.remove("configmaps", "a").await;
    west.settle().await;
    assert_eq!(log.take(), ["a to east, west"]);
    assert!(west.stored("configmaps", "a").await.is_some(), "it came back");
    clusters.remove("east");
    home.settle().await;
    assert_eq!(log.take(), ["a to west"]);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn rights_are_told_by_where_they_are_needed() {
    let told = |rights: &kubewright_runtime::rbac::Rights| -> Vec<String> {
        rights.iter().map(|(resource, verbs)| format!("{resource} {verbs}")).collect()
    };
    let log = Log::new();
    let (copies, spreads) = (copier(&log), spreader(&log));
    assert_eq!(told(&copies.rights()), [""; 0]);
    assert_eq!(
        told(&copies.rights_in_clusters()),
        [
            "configmaps create,delete,get,list,patch,watch",
            "secrets get,list,patch,watch",
            "secrets/finalizers update",
            "secrets/status patch",
            "events.k8s.io/events create,patch",
        ]
    );
    assert_eq!(told(&spreads.rights()), ["secrets list,watch", "events.k8s.io/events create,patch"]);
    assert_eq!(told(&spreads.rights_in_clusters()), ["configmaps create,get,list,patch,watch"]);
}

#[tokio::test(start_paused = true)]
async fn a_standby_works_in_no_cluster_before_it_leads() {
    let Some([home, edge]) = labs().await else { return };
    edge.put("secrets", "a", json!({})).await;
    let replica = |log: &Log<String>, link: &crate::link::Link, seed: u64, name: &str| {
        let mut manager = home.manager_by(link, seed);
        manager.watch_namespaces([home.namespace().to_owned(), edge.namespace().to_owned()]);
        manager.elect(LeaderElection::lease(home.namespace(), "copier").identity(name));
        manager.add(copier(log));
        manager
    };
    let (first_log, second_log) = (Log::new(), Log::new());
    let (first_link, second_link) = (home.another_link(1), home.another_link(2));
    let (first, second) =
        (replica(&first_log, &first_link, 1, "first"), replica(&second_log, &second_link, 2, "second"));
    let clusters = [first.clusters().clone(), second.clusters().clone()];
    let (stop_first, end_first) = start(first);
    home.settle().await;
    let (stop, end) = start(second);
    for (clusters, link) in clusters.iter().zip([edge.another_link(1), edge.another_link(2)]) {
        clusters.add("edge", link.client()).expect("the name is free");
    }
    edge.settle().await;
    let key = format!("edge:{}", edge.key("a"));
    assert_eq!((first_log.take(), second_log.take()), (vec![key.clone()], Vec::new()));
    stop_first.cancel();
    assert!(matches!(end_first.await, Ok(Ok(()))));
    edge.until(Duration::from_secs(60), || !second_log.entries().is_empty()).await;
    assert_eq!(second_log.take(), [key]);
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn a_key_of_another_cluster_is_no_absent_object() {
    let Some([home, edge]) = labs().await else { return };
    home.put("secrets", "a", json!({})).await;
    let log = Log::<String>::new();
    let told = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let told = told.clone();
        Box::pin(async move {
            let there = key.clone().in_cluster("edge");
            let error = ctx.live::<Secret>(&there).await.expect_err("it is another cluster");
            told.push(error.to_string());
            let deletion = ctx.delete::<Secret>(&there, DeleteParams::default()).await;
            assert!(deletion.is_err_and(|error| error.is_terminal()));
            assert!(ctx.patch::<Secret>(&there, json!({})).await.is_err());
            drop(ctx.get::<Secret>(&there));
            Ok(Outcome::Done)
        })
    });
    let mut manager = manager(&[&home, &edge]);
    manager.add_cluster("edge", edge.client());
    manager.add_cluster("other", edge.client());
    manager.add(Controller::new("test", reconciler).for_kind::<Secret>());
    let counters = manager.counters().clone();
    let (stop, end) = start(manager);
    home.until(Duration::from_secs(5), || counters.of("test").panics > 0).await;
    let said = log.take().remove(0);
    assert!(said.contains("is of the cluster edge, and the context is of the manager's own"), "{said}");
    assert!(home.stored("secrets", "a").await.is_some());
    stop.cancel();
    assert!(matches!(end.await, Ok(Ok(()))));
}

#[tokio::test(start_paused = true)]
async fn what_only_one_cluster_can_have_is_a_mistake() {
    let Some([home]) = labs().await else { return };
    let mut manager = home.manager();
    let index = kubewright_runtime::Index::new("by-name", |secret: &Secret| vec![Key::of(secret).name]);
    let nothing = || does(|_, _| Box::pin(async { Ok(Outcome::Done) }));
    manager.add(Controller::new("a", nothing()).for_kind::<Secret>().indexed(&index).in_each_cluster());
    let edge = manager.add_cluster("edge", home.client());
    drop(manager.add_cluster("edge", home.client()));
    manager.add(
        Controller::new("b", nothing())
            .for_kind::<Secret>()
            .watches_in(&edge, |map: &ConfigMap| vec![Key::of(map)])
            .in_each_cluster(),
    );
    let error = manager.run(CancellationToken::new()).await.expect_err("mistakes").to_string();
    for mistake in [
        "there is a cluster edge already",
        "controller a: an index of",
        "controller b: k8s_openapi::",
        "is watched in one cluster, by watches_in",
    ] {
        assert!(error.contains(mistake), "{error}");
    }
}
