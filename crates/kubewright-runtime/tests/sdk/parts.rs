//! Parts of kinds, and parts of objects, in the cache.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{api::PartialObjectMeta, core::Expression};
use kubewright_runtime::{Context, Controller, Error, Index, Key, Outcome};
use serde_json::json;

use crate::{
    harness::{Log, does, logging, run, settle},
    server::Server,
};

fn key(name: &str) -> Key {
    Key::namespaced("default", name)
}

#[tokio::test(start_paused = true)]
async fn an_index_follows_creations_changes_and_ends() {
    let (server, log) = (Server::new(), Log::<String>::new());
    let by_color = Index::new("by-color", |map: &ConfigMap| {
        map.data
            .iter()
            .flatten()
            .filter(|(name, _)| *name == "color")
            .map(|(_, color)| color.clone())
            .collect()
    });
    let controller = logging(&log).for_kind::<ConfigMap>().indexed(&by_color);
    server.put("configmaps", "a", json!({"data": {"color": "red"}}));
    server.put("configmaps", "b", json!({"data": {"color": "red"}}));
    let _running = run(&server, [controller]);
    settle().await;
    let names = |color: &str| by_color.get(color).iter().map(|map| Key::of(&**map).name).collect::<Vec<_>>();
    assert_eq!(names("red"), ["a", "b"]);
    server.put("configmaps", "a", json!({"data": {"color": "blue"}}));
    server.remove("configmaps", "b");
    settle().await;
    assert!(names("red").is_empty());
    assert_eq!(names("blue"), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_cached_in_part_is_patched_and_never_written_back() {
    let (server, log) = (Server::new(), Log::new());
    let seen = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (seen, ctx, key) = (seen.clone(), ctx.clone(), key.clone());
        Box::pin(async move {
            let Some(map) = ctx.get::<ConfigMap>(&key) else { return Ok(Outcome::Done) };
            seen.push(format!("{:?}", map.data));
            let refused = ctx.update(&*map).await.err();
            assert!(
                refused
                    .is_some_and(|error| error.is_terminal() && error.to_string().contains("patch or apply"))
            );
            assert!(ctx.ensure(&*map, None).await.is_err());
            let meta = ctx.get::<PartialObjectMeta<Secret>>(&Key::namespaced("default", "s"));
            if let Some(meta) = meta {
                assert!(ctx.update(&*meta).await.is_err());
            }
            let patched: ConfigMap =
                ctx.patch(&key, json!({"metadata": {"labels": {"seen": "yes"}}})).await?;
            assert_eq!(patched.data.map(|data| data.len()), Some(1), "the answer is whole");
            Ok(Outcome::Done)
        })
    });
    let controller = Controller::new("test", reconciler)
        .for_kind::<ConfigMap>()
        .projected(|map: &mut ConfigMap| map.data = None)
        .watches_metadata::<Secret>(|_| Vec::new());
    server.put("configmaps", "a", json!({"data": {"big": "x".repeat(1000)}}));
    server.put("secrets", "s", json!({}));
    let running = run(&server, [controller]);
    settle().await;
    assert_eq!(running.counters.of("test").panics, 0);
    assert!(log.entries().iter().all(|data| data == "None") && !log.entries().is_empty());
    let usage = running.cache.usage();
    let of = |name: &str| {
        usage.iter().find(|usage| usage.resource == name).map(|usage| (usage.objects, usage.bytes))
    };
    assert!(of("configmaps").is_some_and(|(objects, bytes)| objects == 1 && bytes < 2000), "{usage:?}");
    assert_eq!(server.stored("configmaps", "a").map(|map| map["data"]["big"].to_string().len()), Some(1002));
}

#[tokio::test(start_paused = true)]
async fn a_selection_by_labels_is_asked_of_the_server_and_kept_by_writes() {
    let (server, log) = (Server::new(), Log::new());
    let seen = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (seen, ctx, key) = (seen.clone(), ctx.clone(), key.clone());
        Box::pin(async move {
            let mut other = ConfigMap::default();
            other.metadata.namespace = Some("default".into());
            other.metadata.name = Some("other".into());
            if ctx.create(&other).await.is_ok() {
                seen.push(format!("{key} {}", ctx.list::<ConfigMap>(None).len()));
            }
            Ok(Outcome::Done)
        })
    });
    server.put("configmaps", "a", json!({"metadata": {"labels": {"app": "x"}}}));
    server.put("configmaps", "b", json!({"metadata": {"labels": {"app": "y"}}}));
    let selection = Expression::Equal("app".into(), "x".into());
    let _running =
        run(&server, [Controller::new("test", reconciler).for_kind::<ConfigMap>().labelled(selection)]);
    settle().await;
    assert_eq!(log.take(), ["default/a 1"], "what was written outside of the selection is not in it");
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_watched_in_the_namespaces_that_it_is_asked_for() {
    let (server, log) = (Server::new(), Log::new());
    server.put("configmaps", "a", json!({}));
    let running =
        run(&server, [logging(&log).for_kind::<ConfigMap>().in_namespaces(["default", "kube-system"])]);
    settle().await;
    assert!(running.cache.get::<ConfigMap>(&key("a")).is_some());
    let lists = server.requests().iter().filter(|line| line.contains("/namespaces/")).count();
    assert_eq!(lists, 4, "{:?}", server.requests());
    assert_eq!(running.cache.usage()[0].scope, "in the namespaces default, kube-system");
}

#[tokio::test(start_paused = true)]
async fn parts_that_do_not_fit_together_are_told_at_the_start() {
    let (server, log) = (Server::new(), Log::<String>::new());
    let index = Index::new("i", |_: &Secret| Vec::new());
    let first = logging(&log).for_kind::<ConfigMap>();
    let mut second = logging(&log)
        .for_kind::<ConfigMap>()
        .labelled(Expression::Exists("app".into()))
        .projected(|_: &mut Secret| ())
        .indexed(&index)
        .reads::<Secret>()
        .in_namespaces([""; 0]);
    second =
        second.watches(|map: &ConfigMap| vec![Key::of(map)]).projected(|map: &mut ConfigMap| map.data = None);
    let message = match run(&server, [first, second]).end.await {
        Ok(Err(Error::Misconfigured(message))) => message,
        other => panic!("{other:?}"),
    };
    for mistake in [
        "a projection of",
        "an index of",
        "names none",
        "with the label selector app here",
        "project it there",
    ] {
        assert!(message.contains(mistake), "{mistake}: {message}");
    }
}
