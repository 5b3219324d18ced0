//! Where keys come from: kinds that come and go, metadata, streams, timers, posts.

use std::{sync::Arc, time::Duration};

use futures::stream;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewright_runtime::{
    Context, Controller, DynamicKind, Event, Key, Outcome, Predicate, Watching, World,
    sources::{self, Every, Http, Jitter},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::Instant,
};

use crate::{
    harness::{Log, does, logging, run},
    lab::{Lab, Only},
};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn an_optional_kind_comes_and_goes_with_its_definition() {
    let (lab, log) = (Lab::new().await, Log::new());
    lab.link().uninstall("secrets");
    lab.put("configmaps", "a", json!({})).await;
    let of_secret = |secret: &Secret| vec![Key::of(secret)];
    let running = run(&lab, [logging(&log).for_kind::<ConfigMap>().watches::<Secret>(of_secret).optional()]);
    lab.settle().await;
    assert_eq!(log.take(), ["a"], "it does not wait");
    assert!(running.cache.unsynced().is_empty(), "and is ready");
    for _ in 0..2 {
        lab.link().install("secrets");
        lab.put("secrets", "s", json!({})).await;
        lab.until(MINUTE, || !log.entries().is_empty()).await;
        assert_eq!(log.take(), ["s"]);
        lab.link().uninstall("secrets");
        lab.until(MINUTE, || !log.entries().is_empty()).await;
        assert_eq!(log.take(), ["s"], "its objects end with the kind");
        assert!(running.cache.list::<Secret>(None).is_empty());
        lab.remove("secrets", "s").await;
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_watched_and_read() {
    let (lab, log) = (Lab::new().await, Log::new());
    let seen = log.clone();
    let reconciler = does(move |ctx: &Context, key: &Key| {
        let secret = ctx.get::<PartialObjectMeta<Secret>>(key);
        seen.push(format!("{:?}", secret.and_then(|secret| secret.metadata.labels.clone())));
        Box::pin(async { Ok(Outcome::Done) })
    });
    let controller = Controller::new("test", reconciler)
        .watches_metadata::<Secret>(|secret| vec![Key::of(secret)])
        .predicate(kubewright_runtime::predicate::labels_changed());
    let _running = run(&lab, [controller]);
    lab.put("secrets", "a", json!({"metadata": {"labels": {"app": "x"}}, "data": {"k": "dg=="}})).await;
    lab.settle().await;
    assert_eq!(log.take(), [r#"Some({"app": "x"})"#]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_starts_later_looks_at_the_namespaces_of_the_manager() {
    for typed in [true, false] {
        let (mut lab, log) = (Lab::new().await, Log::new());
        let other = lab.another_namespace("other").await;
        lab.put("secrets", "here", json!({})).await;
        lab.put_in(&other, "secrets", "there", json!({})).await;
        let _running = run(&lab, [switched(&log, typed)]);
        lab.put("configmaps", "on", json!({})).await;
        lab.until(MINUTE, || log.entries().iter().any(|line| line == "here")).await;
        lab.settle().await;
        assert!(log.entries().iter().all(|line| line != "there"), "{:?}", log.entries());
        let elsewhere = lab.requests().into_iter().find(|line| line.ends_with("/api/v1/secrets"));
        assert_eq!(elsewhere, None, "rights in the namespace are enough");
    }
}

/// Watches Secrets while there is a ConfigMap `on`.
fn switched(log: &Log<String>, typed: bool) -> Controller {
    enum Either {
        Typed(Watching<Secret>),
        Dynamic(Watching<DynamicObject>),
    }
    let (log, watching) = (log.clone(), Arc::new(Mutex::new(None)));
    let reconciler = does(move |ctx: &Context, key: &Key| {
        log.push(key.name.clone());
        let mut watching = watching.lock();
        if ctx.get::<ConfigMap>(&key.sibling("on")).is_none() {
            *watching = None;
        } else if watching.is_none() {
            *watching = Some(if typed {
                Either::Typed(ctx.watch::<Secret>(|secret| vec![Key::of(secret)]))
            } else {
                let kind = DynamicKind::namespaced(ApiResource::erase::<Secret>(&()));
                Either::Dynamic(ctx.kind(&kind).watch(|secret: &DynamicObject| vec![Key::of(secret)]))
            });
        }
        let synced = match &*watching {
            Some(Either::Typed(watching)) => watching.is_synced(),
            Some(Either::Dynamic(watching)) => watching.is_synced(),
            None => false,
        };
        log.push(format!("watching: {synced}"));
        Box::pin(async { Ok(Outcome::Done) })
    });
    Controller::new("test", reconciler).for_kind::<ConfigMap>()
}

#[tokio::test(start_paused = true)]
async fn a_watch_starts_and_stops_while_the_controller_works() {
    for typed in [true, false] {
        let (lab, log) = (Lab::new().await, Log::new());
        lab.link().uninstall("secrets");
        let _running = run(&lab, [switched(&log, typed)]);
        lab.settle().await;
        lab.put("configmaps", "on", json!({})).await;
        lab.settle().await;
        assert_eq!(log.take(), ["on", "watching: false"]);
        lab.link().install("secrets");
        lab.put("secrets", "a", json!({})).await;
        lab.until(MINUTE, || log.entries().len() == 2).await;
        assert_eq!(log.take(), ["a", "watching: true"]);
        lab.remove("configmaps", "on").await;
        lab.settle().await;
        log.take();
        lab.put("secrets", "b", json!({})).await;
        let before = lab.requests().len();
        lab.pass(10 * MINUTE).await;
        assert!(log.take().is_empty());
        assert_eq!(lab.requests()[before..].iter().filter(|line| line.contains("secrets")).count(), 0);
        lab.put("configmaps", "on", json!({})).await;
        lab.until(MINUTE, || log.entries().len() == 6).await;
        let keys: Vec<_> = log.take().into_iter().filter(|line| !line.starts_with("watching")).collect();
        assert_eq!(keys, ["on", "a", "b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_timer_ticks_with_its_jitter_whatever_the_clock_does() {
    let Some(lab) = Lab::only_embedded(Only::MovedClock).await else { return };
    let log = Log::new();
    let start = Instant::now();
    let times = log.clone();
    let reconciler = does(move |_, _| {
        times.push(start.elapsed().as_secs_f64());
        Box::pin(async { Ok(Outcome::Done) })
    });
    let timer = Every::new(100 * MINUTE).jitter(Jitter(0.1)).at_once();
    let keys = timer.keys(&World::simulated(7), || vec![Key::cluster_scoped("all")]);
    let _running = run(&lab, [Controller::new("test", reconciler).source(keys)]);
    tokio::time::sleep(1000 * MINUTE).await;
    let times = log.take();
    assert!((9..=11).contains(&times.len()) && times[0] < 1.0, "{times:?}");
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.iter().all(|pause| (5400.0..6601.0).contains(pause)), "{pauses:?}");
    assert!(pauses.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 1.0), "{pauses:?}");
    tokio::time::advance(Duration::from_secs(365 * 24 * 3600)).await;
    lab.settle().await;
    assert_eq!(log.take().len(), 1, "what was missed is not made up for");
}

#[tokio::test(start_paused = true)]
async fn everything_is_reconciled_again_when_the_resync_is_due() {
    let Some(lab) = Lab::only_embedded(Only::LongTimes).await else { return };
    let log = Log::new();
    lab.put("configmaps", "a", json!({})).await;
    let _running = run(&lab, [logging(&log).for_kind::<ConfigMap>().resync(10 * MINUTE)]);
    tokio::time::sleep(105 * MINUTE).await;
    assert!((10..=12).contains(&log.entries().len()), "{:?}", log.entries());
}

#[tokio::test(start_paused = true)]
async fn a_channel_and_objects_from_elsewhere_lead_to_reconciles() {
    let (lab, log) = (Lab::new().await, Log::new());
    let (sender, keys) = sources::channel(2);
    let map = |name: &str| {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        Arc::new(map)
    };
    let only_generic_b = Predicate::of::<ConfigMap>(
        |event| matches!(event, Event::Generic(map) if map.metadata.name.as_deref() == Some("b")),
    );
    let objects = sources::objects(stream::iter(["a", "b"].map(map)), only_generic_b, |map: &ConfigMap| {
        vec![Key::of(map)]
    });
    let _running = run(&lab, [logging(&log).source(keys).source(objects)]);
    for name in ["one", "two", "three"] {
        assert!(sender.send(Key::cluster_scoped(name)).await.is_ok());
    }
    lab.settle().await;
    let mut keys = log.take();
    keys.sort();
    assert_eq!(keys, ["b", "one", "three", "two"]);
}

#[tokio::test]
async fn who_posts_a_key_has_it_reconciled() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::by_the_wall().await;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (sender, mut reconciled) = tokio::sync::mpsc::unbounded_channel();
    let reconciler = does(move |_, key: &Key| {
        drop(sender.send(key.name.clone()));
        Box::pin(async { Ok(Outcome::Done) })
    });
    let controller = Controller::new("test", reconciler).source(Http::on(listener).bearer_token("t").keys());
    let _running = run(&lab, [controller]);
    for (token, status) in [("wrong", "401"), ("t", "202")] {
        let mut connection = TcpStream::connect(address).await?;
        let request =
            format!("POST /default/web HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
        connection.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    assert_eq!(reconciled.recv().await.as_deref(), Some("web"));
    Ok(())
}
