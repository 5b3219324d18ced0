//! Parts of kinds, and parts of objects, in the cache.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{api::PartialObjectMeta, core::Expression};
use kubewright_runtime::{Context, Controller, Error, Index, Key, Outcome};
use serde_json::json;

use crate::{
    harness::{Log, does, logging, run},
    lab::Lab,
};

#[tokio::test(start_paused = true)]
async fn an_index_follows_creations_changes_and_ends() {
    let (lab, log) = (Lab::new().await, Log::<String>::new());
    let by_color = Index::new("by-color", |map: &ConfigMap| {
        map.data
            .iter()
            .flatten()
            .filter(|(name, _)| *name == "color")
            .map(|(_, color)| color.clone())
            .collect()
    });
    let controller = logging(&log).for_kind::<ConfigMap>().indexed(&by_color);
    lab.put("configmaps", "a", json!({"data": {"color": "red"}})).await;
    lab.put("configmaps", "b", json!({"data": {"color": "red"}})).await;
    let _running = run(&lab, [controller]);
    lab.settle().await;
    let names = |color: &str| by_color.get(color).iter().map(|map| Key::of(&**map).name).collect::<Vec<_>>();
    assert_eq!(names("red"), ["a", "b"]);
    lab.put("configmaps", "a", json!({"data": {"color": "blue"}})).await;
    lab.remove("configmaps", "b").await;
    lab.settle().await;
    assert!(names("red").is_empty());
    assert_eq!(names("blue"), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_cached_in_part_is_patched_and_never_written_back() {
    let (lab, log) = (Lab::new().await, Log::new());
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
            let meta = ctx.get::<PartialObjectMeta<Secret>>(&key.sibling("s"));
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
    lab.put("configmaps", "a", json!({"data": {"big": "x".repeat(1000)}})).await;
    lab.put("secrets", "s", json!({})).await;
    let running = run(&lab, [controller]);
    lab.settle().await;
    assert_eq!(running.counters.of("test").panics, 0);
    assert!(log.entries().iter().all(|data| data == "None") && !log.entries().is_empty());
    let usage = running.cache.usage();
    let of = |name: &str| {
        usage.iter().find(|usage| usage.resource == name).map(|usage| (usage.objects, usage.bytes))
    };
    // One more than the test's own: the root CA's.
    assert!(of("configmaps").is_some_and(|(objects, bytes)| objects == 2 && bytes < 4000), "{usage:?}");
    assert_eq!(
        lab.stored("configmaps", "a").await.map(|map| map["data"]["big"].to_string().len()),
        Some(1002)
    );
}

#[tokio::test(start_paused = true)]
async fn a_selection_by_labels_is_asked_of_the_server_and_kept_by_writes() {
    let (lab, log) = (Lab::new().await, Log::new());
    let seen = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let (seen, ctx, key) = (seen.clone(), ctx.clone(), key.clone());
        Box::pin(async move {
            let mut other = ConfigMap::default();
            other.metadata.namespace.clone_from(&key.namespace);
            other.metadata.name = Some("other".into());
            if ctx.create(&other).await.is_ok() {
                seen.push(format!("{} {}", key.name, ctx.list::<ConfigMap>(None).len()));
            }
            Ok(Outcome::Done)
        })
    });
    lab.put("configmaps", "a", json!({"metadata": {"labels": {"app": "x"}}})).await;
    lab.put("configmaps", "b", json!({"metadata": {"labels": {"app": "y"}}})).await;
    let selection = Expression::Equal("app".into(), "x".into());
    let _running =
        run(&lab, [Controller::new("test", reconciler).for_kind::<ConfigMap>().labelled(selection)]);
    lab.settle().await;
    assert_eq!(log.take(), ["a 1"], "what was written outside of the selection is not in it");
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_watched_in_the_namespaces_that_it_is_asked_for() {
    let (mut lab, log) = (Lab::new().await, Log::new());
    let other = lab.another_namespace("other").await;
    lab.put("configmaps", "a", json!({})).await;
    let both = [lab.namespace().to_owned(), other.clone()];
    let running = run(&lab, [logging(&log).for_kind::<ConfigMap>().in_namespaces(both)]);
    lab.settle().await;
    assert!(running.cache.get::<ConfigMap>(&lab.key("a")).is_some());
    assert_eq!(lab.reads_of("configmaps"), 4, "{:?}", lab.requests());
    let scope = format!("in the namespaces {}, {other}", lab.namespace());
    assert_eq!(running.cache.usage()[0].scope, scope);
}

#[tokio::test(start_paused = true)]
async fn parts_that_do_not_fit_together_are_told_at_the_start() {
    let (lab, log) = (Lab::new().await, Log::<String>::new());
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
    let message = match run(&lab, [first, second]).end.await {
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
