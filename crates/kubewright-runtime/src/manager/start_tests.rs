//! A start with very many objects, against a server that knows nothing but lists and patches.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, client::Body};
use kubewright_world::World;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Manager;
use crate::{Context, Controller, Error, Key, Outcome, Reconciler};

const OBJECTS: usize = 50_000;
const WORKERS: usize = 8;

/// What was asked of the server.
#[derive(Default)]
struct Requests {
    lists: AtomicUsize,
    watches: AtomicUsize,
    writes: AtomicUsize,
    /// Requests that are being answered, and how many there were at most.
    busy: AtomicUsize,
    busiest: AtomicUsize,
}

impl Requests {
    async fn answer(self: Arc<Self>, request: Request<Body>) -> Response<Body> {
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.busiest.fetch_max(busy, Ordering::SeqCst);
        let query = request.uri().query().unwrap_or_default();
        let body = if *request.method() == Method::PATCH {
            let number = self.writes.fetch_add(1, Ordering::SeqCst);
            let name = request.uri().path().rsplit('/').next().unwrap_or_default();
            config_map(name, OBJECTS + number, true)
        } else if query.contains("watch=true") {
            self.watches.fetch_add(1, Ordering::SeqCst);
            // Nothing happens any more.
            return std::future::pending().await;
        } else {
            self.lists.fetch_add(1, Ordering::SeqCst);
            page(query)
        };
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.busy.fetch_sub(1, Ordering::SeqCst);
        Response::new(Body::from(body.to_string().into_bytes()))
    }
}

/// A part of the list, as `limit` and `continue` ask for it.
fn page(query: &str) -> Value {
    let number = |name: &str| {
        let value = query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.parse().ok())
    };
    let (from, limit) = (number("continue").unwrap_or(0), number("limit").unwrap_or(OBJECTS));
    let end = (from + limit).min(OBJECTS);
    let next = (end < OBJECTS).then(|| end.to_string());
    // Of one in ten there is something to write.
    let items: Vec<_> = (from..end).map(|n| config_map(&format!("{n:05}"), n + 1, n % 10 > 0)).collect();
    json!({"kind": "ConfigMapList", "apiVersion": "v1", "items": items,
        "metadata": {"resourceVersion": OBJECTS.to_string(), "continue": next}})
}

fn config_map(name: &str, version: usize, is_done: bool) -> Value {
    let data = if is_done { json!({"done": "yes"}) } else { Value::Null };
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {
        "name": name, "namespace": "default", "uid": format!("uid-of-{name}"), "resourceVersion": version.to_string()}})
}

struct Finish(Arc<AtomicUsize>);

impl Reconciler for Finish {
    async fn reconcile(&self, ctx: &Context, key: &Key) -> Result<Outcome, Error> {
        let map = ctx.get::<ConfigMap>(key).ok_or_else(|| Error::new("it is there"))?;
        if map.data.is_none() {
            ctx.patch::<ConfigMap>(key, json!({"data": {"done": "yes"}})).await?;
        }
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Outcome::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_thousand_objects_at_the_start_take_one_reconcile_each_by_as_many_workers_as_there_are() {
    let (asked, done) = (Arc::new(Requests::default()), Arc::new(AtomicUsize::new(0)));
    let server = asked.clone();
    let service = tower::service_fn(move |request| {
        let server = server.clone();
        async move { Ok::<_, Infallible>(server.answer(request).await) }
    });
    let mut manager = Manager::new(Client::new(service, "default"), World::simulated(1));
    let controller = Controller::new("test", Finish(done.clone())).for_kind::<ConfigMap>();
    manager.add(controller.concurrency(WORKERS));
    let (cache, counters) = (manager.cache().clone(), manager.counters().clone());
    let running = tokio::spawn(manager.run(CancellationToken::new()));

    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut most = 0;
    while done.load(Ordering::SeqCst) < OBJECTS {
        assert!(!running.is_finished());
        tokio::time::sleep(Duration::from_millis(50)).await;
        most = most.max(tasks());
    }
    tokio::time::sleep(Duration::from_secs(60)).await;

    let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
    let counts = counters.of("test");
    assert_eq!((counts.reconciles, counts.writes), (OBJECTS as u64, OBJECTS as u64 / 10));
    assert_eq!(count(&asked.writes), OBJECTS / 10, "and each write was one");
    assert_eq!((count(&asked.lists), count(&asked.watches)), (OBJECTS / 500, 1), "one list, page by page");
    assert!(count(&asked.busiest) <= WORKERS + 1, "the workers and the watch: {}", count(&asked.busiest));
    assert!(most <= WORKERS + 8, "no task for each object: {most}");
    let usage = cache.usage();
    assert_eq!(usage[0].objects, OBJECTS);
    assert!(usage[0].bytes < OBJECTS * 1000, "{usage:?}");
    running.abort();
}
