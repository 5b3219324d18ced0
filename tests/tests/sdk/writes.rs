//! Writes, and what the cache knows of them.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use kubewright_runtime::{Context, Controller, Deletion, Error, EventType, Key, Outcome, Written, finalizer};
use serde_json::json;

use crate::{
    harness::{Log, Running, does, run},
    lab::{Lab, Only, ROOT_CA},
    link::Cut,
};

fn config(key: &Key, n: u32) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(key.name.clone()),
            namespace: key.namespace.clone(),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("n".to_owned(), n.to_string())])),
        ..ConfigMap::default()
    }
}

fn number(object: &ConfigMap) -> u32 {
    object.data.as_ref().and_then(|data| data.get("n")?.parse().ok()).unwrap_or(0)
}

/// Counts `a` up to 10, one write per reconcile, and logs what each reconcile saw.
fn counting(log: &Log<u32>) -> Controller {
    let log = log.clone();
    Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            let log = log.clone();
            Box::pin(async move {
                let Some(object) = ctx.get::<ConfigMap>(key) else {
                    log.push(0);
                    ctx.create(&config(key, 1)).await?;
                    return Ok(Outcome::RequeueAfter(Duration::from_millis(1)));
                };
                let n = number(&object);
                log.push(n);
                if n < 10 {
                    ctx.patch::<ConfigMap>(key, json!({"data": {"n": (n + 1).to_string()}})).await?;
                }
                Ok(Outcome::RequeueAfter(Duration::from_millis(1)))
            })
        }),
    )
}

#[tokio::test(start_paused = true)]
async fn no_reconcile_sees_a_state_older_than_its_own_last_write() {
    for (delay, latency) in [(0, 0), (0, 5), (500, 0), (500, 5)] {
        let (lab, log) = (Lab::new().await, Log::new());
        lab.link().delay_watches(Duration::from_millis(delay));
        lab.link().slow_down(Duration::from_millis(latency));
        let start = futures::stream::iter([lab.key("a")]);
        let running = run(&lab, [counting(&log).for_kind::<ConfigMap>().source(start)]);
        let is_counted = || log.entries().iter().filter(|n| **n == 10).count() > 3;
        lab.until(Duration::from_secs(2), is_counted).await;
        let seen = log.entries();
        assert_eq!(
            seen[..11],
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
            "watch {delay} ms, answers {latency} ms late"
        );
        assert!(seen[11..].iter().all(|n| *n == 10), "{seen:?}");
        assert_eq!(running.counters.of("test").writes, 10, "each step was written once");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_stays_away_while_the_watch_still_tells_of_it() {
    let (lab, log) = (Lab::new().await, Log::new());
    let seen = log.clone();
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            let seen = seen.clone();
            Box::pin(async move {
                seen.push(ctx.get::<ConfigMap>(key).is_some());
                if seen.entries().len() == 1 {
                    ctx.create(&config(key, 1)).await?;
                    ctx.patch::<ConfigMap>(key, json!({"data": {"n": "2"}})).await?;
                    let deletion = ctx.delete::<ConfigMap>(key, DeleteParams::default()).await?;
                    assert_eq!(deletion, Deletion::Gone);
                    let again = ctx.delete::<ConfigMap>(key, DeleteParams::default()).await?;
                    assert_eq!(again, Deletion::Absent);
                }
                assert!(ctx.get::<ConfigMap>(key).is_none());
                Ok(Outcome::RequeueAfter(Duration::from_millis(10)))
            })
        }),
    );
    lab.link().delay_watches(Duration::from_millis(500));
    let start = futures::stream::iter([lab.key("a")]);
    let running = run(&lab, [controller.for_kind::<ConfigMap>().source(start)]);
    lab.until(Duration::from_secs(2), || log.entries().len() > 100).await;
    assert!(log.entries().iter().all(|seen| !seen), "{:?}", log.entries());
    assert_eq!(running.counters.of("test").panics, 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_comes_during_a_list_is_kept_or_dropped_as_the_server_has_it() {
    let Some(lab) = Lab::only_embedded(Only::ExactTimes).await else { return };
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            Box::pin(async move {
                ctx.create(&config(key, 1)).await?;
                Ok(Outcome::Done)
            })
        }),
    );
    let (send, receive) = tokio::sync::mpsc::channel::<Key>(8);
    let keys =
        futures::stream::unfold(receive, |mut keys| async { keys.recv().await.map(|key| (key, keys)) });
    let running = run(&lab, [controller.reads::<ConfigMap>().source(keys).concurrency(2)]);
    lab.settle().await;
    // The watch is told that it fell behind after 0.3 s, pauses for 0.1 s or a little more, and then lists for 0.3 s.
    // `goes` is created and gone before the server looks, `stays` is created afterwards; both answers come late.
    lab.link().slow_down(Duration::from_millis(300));
    lab.link().cut_watches(Cut::History);
    let create = async |name: &str| send.send(lab.key(name)).await.is_ok();
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert!(create("goes").await);
    tokio::time::sleep(Duration::from_millis(10)).await;
    lab.remove("configmaps", "goes").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(create("stays").await);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let known: Vec<_> =
        running.cache.list::<ConfigMap>(None).iter().map(|object| Key::of(&**object).name).collect();
    let known: Vec<_> = known.into_iter().filter(|name| name != ROOT_CA).collect();
    assert_eq!(known, ["stays"]);
    let asked = |name: &str| {
        let get = format!("GET /api/v1/namespaces/{}/configmaps/{name}", lab.namespace());
        lab.requests().contains(&get)
    };
    assert!(asked("goes"), "neither list nor watch could tell");
}

#[tokio::test(start_paused = true)]
async fn ensure_creates_changes_what_differs_and_then_writes_nothing() {
    let (lab, log) = (Lab::new().await, Log::new());
    let did = log.clone();
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            let did = did.clone();
            Box::pin(async move {
                let Some(owner) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
                let mut desired = Secret::default();
                desired.metadata.name = Some("child".into());
                desired.metadata.namespace.clone_from(&key.namespace);
                desired.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
                did.push(match ctx.ensure(&desired, Some(&*owner)).await? {
                    Written::Created(_) => "created".to_owned(),
                    Written::Updated { changed, .. } => changed,
                    Written::Unchanged(_) => "unchanged".to_owned(),
                });
                Ok(Outcome::Done)
            })
        }),
    );
    lab.put("configmaps", "owner", json!({"data": {"n": "1"}})).await;
    let running = run(&lab, [controller.for_kind::<ConfigMap>().owns::<Secret>().own_events()]);
    lab.settle().await;
    assert_eq!(log.take(), ["created", "unchanged"]);
    let mut stored = lab.stored("secrets", "child").await.unwrap_or_default();
    assert_eq!(stored["metadata"]["ownerReferences"][0]["name"], "owner");
    // Somebody adds what is not desired: left alone.
    stored["metadata"]["labels"]["theirs"] = json!("x");
    stored["immutable"] = json!(true);
    lab.put("secrets", "child", stored.clone()).await;
    lab.settle().await;
    assert_eq!(log.take(), ["unchanged"]);
    // Somebody changes what is desired: put right, and nothing else.
    stored["metadata"]["labels"]["app"] = json!("other");
    lab.put("secrets", "child", stored).await;
    lab.settle().await;
    assert_eq!(log.take(), [r#"metadata.labels.app: "other" -> "web""#, "unchanged"]);
    let stored = lab.stored("secrets", "child").await.unwrap_or_default();
    assert_eq!(stored["metadata"]["labels"], json!({"app": "web", "theirs": "x"}));
    assert_eq!(stored["immutable"], true);
    assert_eq!(running.counters.of("test").writes, 2);
}

/// RT-06, RT-08: reads answer with the object or nothing, writes with the object as it is stored.
#[tokio::test(start_paused = true)]
async fn a_write_of_the_status_writes_nothing_else() {
    let (lab, log) = (Lab::new().await, Log::new());
    let answers = log.clone();
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            let answers = answers.clone();
            Box::pin(async move {
                let Some(pod) = ctx.get::<Pod>(key) else { return Ok(Outcome::Done) };
                let mut changed = (*pod).clone();
                changed.spec.get_or_insert_default().active_deadline_seconds = Some(5);
                changed.status.get_or_insert_default().phase = Some("Running".into());
                let stored = ctx.update_status(&changed).await?;
                let deadline = stored.spec.and_then(|spec| spec.active_deadline_seconds);
                answers.push((deadline, stored.status.and_then(|status| status.phase)));
                let none = key.sibling("none");
                assert!(ctx.get::<Pod>(&none).is_none() && ctx.live::<Pod>(&none).await?.is_none());
                Ok(Outcome::Done)
            })
        }),
    );
    lab.put("pods", "a", json!({"status": {"phase": "Pending"}})).await;
    let _running = run(&lab, [controller.for_kind::<Pod>()]);
    lab.settle().await;
    // It asked for more than was written, so it is woken by its own write.
    let mut told = log.take();
    told.dedup();
    assert_eq!(told, [(None, Some("Running".to_owned()))]);
    let stored = lab.stored("pods", "a").await.unwrap_or_default();
    assert_eq!(stored["status"]["phase"], "Running");
    assert_eq!(stored["spec"].get("activeDeadlineSeconds"), None);
}

#[tokio::test(start_paused = true)]
async fn ensure_takes_no_object_from_another_controller() {
    let (lab, log) = (Lab::new().await, Log::new());
    let errors = log.clone();
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            let errors = errors.clone();
            Box::pin(async move {
                let Some(owner) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
                let mut desired = Secret::default();
                desired.metadata.name = Some("child".into());
                desired.metadata.namespace.clone_from(&key.namespace);
                match ctx.ensure(&desired, Some(&*owner)).await {
                    Ok(_) => errors.push("unchanged".to_owned()),
                    Err(error) => errors.push(error.to_string()),
                }
                Ok(Outcome::Done)
            })
        }),
    );
    let first = lab.put("configmaps", "first", json!({})).await;
    lab.put("configmaps", "owner", json!({})).await;
    let uid = &first["metadata"]["uid"];
    let first =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "first", "uid": uid, "controller": true});
    lab.put("secrets", "child", json!({"metadata": {"ownerReferences": [first]}})).await;
    let _running = run(&lab, [controller.for_kind::<ConfigMap>().reads::<Secret>()]);
    lab.settle().await;
    assert_eq!(
        log.entries(),
        [
            "unchanged".to_owned(),
            format!(
                "Secret {}/child is controlled by ConfigMap first, not by ConfigMap owner",
                lab.namespace()
            ),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_the_object_until_the_reconciler_lets_it_go() {
    const NAME: &str = "example.com/cleanup";
    let (lab, log) = (Lab::new().await, Log::new());
    let steps = log.clone();
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            let steps = steps.clone();
            Box::pin(async move {
                let Some(object) = ctx.get::<ConfigMap>(key) else {
                    steps.push("gone");
                    return Ok(Outcome::Done);
                };
                if object.metadata.deletion_timestamp.is_some() {
                    steps.push("cleanup");
                    ctx.remove_finalizer(&*object, NAME).await?;
                    assert!(ctx.get::<ConfigMap>(key).is_none(), "the last finalizer was the end");
                } else if !finalizer::has(&*object, NAME) {
                    steps.push("hold");
                    ctx.add_finalizer(&*object, NAME).await?;
                }
                Ok(Outcome::Done)
            })
        }),
    );
    lab.put("configmaps", "a", json!({})).await;
    let running = run(&lab, [controller.for_kind::<ConfigMap>()]);
    lab.settle().await;
    lab.remove("configmaps", "a").await;
    lab.settle().await;
    assert_eq!(log.entries(), ["hold", "cleanup", "gone"]);
    assert!(lab.stored("configmaps", "a").await.is_none());
    assert_eq!(running.counters.of("test").panics, 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_somebody_else_changed_is_not_overwritten() {
    let (lab, log) = (Lab::new().await, Log::new());
    let results = log.clone();
    let other = Api::<ConfigMap>::namespaced(lab.admin(), lab.namespace());
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            let (results, other) = (results.clone(), other.clone());
            Box::pin(async move {
                let Some(object) = ctx.get::<ConfigMap>(key) else { return Ok(Outcome::Done) };
                if number(&object) == 0 {
                    other.replace("a", &PostParams::default(), &config(key, 7)).await?;
                    let result: Result<ConfigMap, Error> = ctx.update(&*object).await;
                    results.push(result.is_err_and(|error| error.is_conflict()));
                }
                Ok(Outcome::Done)
            })
        }),
    );
    lab.put("configmaps", "a", json!({})).await;
    let _running = run(&lab, [controller.for_kind::<ConfigMap>()]);
    lab.settle().await;
    assert_eq!(log.entries(), [true]);
    assert_eq!(lab.stored("configmaps", "a").await.unwrap_or_default()["data"]["n"], "7");
}

#[tokio::test(start_paused = true)]
async fn a_classic_event_names_its_source_and_is_counted_in_place() {
    let lab = Lab::new().await;
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            Box::pin(async move {
                if let Some(object) = ctx.get::<ConfigMap>(key) {
                    ctx.event(&*object, EventType::Normal, "Arrived", "the train is here");
                }
                Ok(Outcome::Done)
            })
        }),
    );
    lab.put("configmaps", "a", json!({})).await;
    let _running = run(&lab, [controller.core_events().for_kind::<ConfigMap>()]);
    for n in 0..2 {
        lab.settle().await;
        lab.put("configmaps", "a", json!({"data": {"n": n.to_string()}})).await;
    }
    lab.settle().await;
    let events = lab.events_of("test", "core events").await;
    assert_eq!(events.len(), 1, "{events:?}");
    let event = &events[0];
    assert_eq!((&event["count"], &event["message"]), (&json!(3), &json!("the train is here")));
    assert_eq!(
        (&event["source"]["component"], &event["reportingComponent"]),
        (&json!("test"), &json!("test"))
    );
    assert_eq!(event["involvedObject"]["name"], "a");
    if !lab.is_real() {
        assert_eq!(event["firstTimestamp"], "2026-01-01T00:00:00Z");
    }
}

/// A controller says four times the same of a ConfigMap.
async fn late_four_times(lab: &Lab) -> Running {
    let controller = Controller::new(
        "test",
        does(move |ctx: &Context, key| {
            Box::pin(async move {
                if let Some(object) = ctx.get::<ConfigMap>(key) {
                    ctx.event(&*object, EventType::Warning, "Late", "the train is late");
                }
                Ok(Outcome::Done)
            })
        }),
    );
    lab.put("configmaps", "a", json!({})).await;
    let running = run(lab, [controller.for_kind::<ConfigMap>()]);
    for n in 0..3 {
        lab.settle().await;
        lab.put("configmaps", "a", json!({"data": {"n": n.to_string()}})).await;
    }
    lab.settle().await;
    running
}

#[tokio::test(start_paused = true)]
async fn a_series_of_events_starts_anew_after_six_minutes() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let _running = late_four_times(&lab).await;
    tokio::time::sleep(Duration::from_secs(361)).await;
    lab.put("configmaps", "a", json!({"data": {"n": "99"}})).await;
    lab.settle().await;
    assert_eq!(lab.events_of("test", "events").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_repeats_is_one_series() {
    let lab = Lab::new().await;
    let running = late_four_times(&lab).await;
    let events = lab.events_of("test", "events").await;
    assert_eq!(events.len(), 1, "{events:?}");
    let event = &events[0];
    assert_eq!(event["series"]["count"], 4);
    assert_eq!(event["regarding"]["name"], "a");
    assert_eq!((&event["type"], &event["reportingController"]), (&json!("Warning"), &json!("test")));
    if !lab.is_real() {
        assert_eq!(event["eventTime"], "2026-01-01T00:00:00.000000Z");
    }
    assert_eq!(running.counters.of("test").writes, 0, "events are not counted");
}
